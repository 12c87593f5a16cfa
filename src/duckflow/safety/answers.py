"""What an answer at the Gate means. Unclear is never a yes."""

import unicodedata

from duckflow.state.question import Answer

WORDS: dict[str, tuple[str, ...]] = {
    "yes": ("y", "yes", "ok", "okay", "sure", "はい", "うん", "ええ", "お願い", "お願いします", "おねがいします")
    + ("いいよ", "いいです", "了解", "承認", "どうぞ"),
    "no": ("n", "no", "nope", "cancel", "stop", "いいえ", "いや", "だめ", "ダメ", "駄目", "やめて", "やめてください")
    + ("中止", "却下", "拒否"),
    "edit": ("e", "edit", "change", "編集", "直す", "編集する"),
    "session": ("s", "session", "for this session", "このセッション", "今回は全部", "セッション"),
    "always": ("always", "いつも", "常に", "毎回"),
}
MEANINGS = {word: choice for choice, words in WORDS.items() for word in words}
PERMANENT = "always"
"""A rule that stays is never given by one key."""
PUNCTUATION = " 。、.,!！"


def read_answer(text: str, offered: tuple[str, ...] = ("yes", "no")) -> Answer | None:
    """A number of the offered list, a word for it, or `no: because …`; anything else is unclear and gives nothing."""
    plain = unicodedata.normalize("NFKC", text).strip()
    word = plain.strip(PUNCTUATION).casefold()
    if word.isdecimal() and 1 <= int(word) <= len(offered):
        choice = offered[int(word) - 1]
        return None if choice == PERMANENT else Answer(choice=choice)
    if MEANINGS.get(word) in offered:
        return Answer(choice=MEANINGS[word])
    head, separator, reason = _split_reason(plain)
    if separator and MEANINGS.get(head.strip(PUNCTUATION).casefold()) == "no" and reason.strip():
        return Answer(choice="no", text=reason.strip())
    return None


def means_always(text: str, offered: tuple[str, ...]) -> bool:
    """Whether it points at the rule that stays, but not with the word that this takes."""
    word = unicodedata.normalize("NFKC", text).strip(PUNCTUATION).casefold()
    return PERMANENT in offered and word in ("a", str(offered.index(PERMANENT) + 1))


def _split_reason(text: str) -> tuple[str, str, str]:
    """At the first separator after the first word."""
    places = [(place, mark) for mark in (":", ",", "、", "。", ".", " ") if (place := text.find(mark)) > 0]
    if not places:
        return text, "", ""
    place, mark = min(places)
    return text[:place], mark, text[place + len(mark) :].lstrip(PUNCTUATION + ":")

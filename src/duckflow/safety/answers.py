"""What an answer at the Gate means. Unclear is never a yes."""

import unicodedata

from duckflow.state.question import Answer

YES = frozenset(
    ("y", "yes", "ok", "okay", "sure", "1", "はい", "うん", "ええ", "お願い", "お願いします", "おねがいします")
    + ("いいよ", "いいです", "了解", "承認", "どうぞ")
)
NO = frozenset(
    ("n", "no", "nope", "2", "cancel", "stop", "いいえ", "いや", "だめ", "ダメ", "駄目", "やめて", "やめてください")
    + ("中止", "却下", "拒否")
)
PUNCTUATION = " 。、.,!！"


def read_answer(text: str) -> Answer | None:
    """`yes`, `no`, `no: because …`; anything else is unclear and gives nothing."""
    plain = unicodedata.normalize("NFKC", text).strip()
    word = plain.strip(PUNCTUATION).casefold()
    if word in YES:
        return Answer(choice="yes")
    if word in NO:
        return Answer(choice="no")
    head, separator, reason = _split_reason(plain)
    if separator and head.strip(PUNCTUATION).casefold() in NO and reason.strip():
        return Answer(choice="no", text=reason.strip())
    return None


def _split_reason(text: str) -> tuple[str, str, str]:
    """At the first separator after the first word."""
    places = [(place, mark) for mark in (":", ",", "、", "。", ".", " ") if (place := text.find(mark)) > 0]
    if not places:
        return text, "", ""
    place, mark = min(places)
    return text[:place], mark, text[place + len(mark) :].lstrip(PUNCTUATION + ":")

"""What an answer means: a number, a word for a choice, or a yes or no as people say it. Unclear is never a yes.

An answer is read word for word, each word by its kind. A yes is made of words that agree and words that say nothing, a
no also of words that refuse. Any other word makes it a wish, a condition or a question, and then it is neither.
Patterns are compiled when the first answer is read."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from duckflow.i18n.asking import asks, ends_asking
from duckflow.state.question import Answer

WORDS: dict[str, tuple[str, ...]] = {
    "yes": ("y",),
    "no": ("n",),
    "edit": ("e", "edit", "change", "編集", "直す", "編集する"),
    "session": ("s", "session", "for this session", "このセッション", "今回は全部", "セッション"),
    "always": ("always", "いつも", "常に", "毎回"),
}
MEANINGS = {word: choice for choice, words in WORDS.items() for word in words}
PERMANENT = "always"
"""A rule that stays is never given by one key."""
DEEDS = {"deed", "run", "write", "delete", "move", "thing"}
REASONS = {*DEEDS, "reason"}
"""Words by which a no says more than no: what is wanted, or why."""
LONGEST = 80
"""Characters: nobody says a plain yes or no in more."""
GAP = r"[\s,、。.!~〜ー…♪☆;:\-\"'「」()*笑]+"
PUNCTUATION = " 。、.,!！"

MORE = r"(?i)も|\b(?:too|also|as well)\b"

WORD_FILE = Path(__file__).parent / "answer_words.txt"


@cache
def _kinds() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """The words of both languages as one pattern; its groups in their order, and the kind of each."""
    english, japanese = (
        [line.partition(": ")[::2] for line in part.splitlines() if ": " in line]
        for part in WORD_FILE.read_text("utf-8").split("[english]")[1].split("[japanese]")
    )
    alone = [rf"(?<![a-z'])(?:{words})(?![a-z'])" for _, words in english]
    patterns = [GAP, *(f"({words})" for words in (*alone, *(words for _, words in japanese)))]
    return re.compile("|".join(patterns)), tuple(kind for kind, _ in (*english, *japanese))


def read_answer(text: str, offered: tuple[str, ...] = ("yes", "no")) -> Answer | None:
    """A number of the offered list, a word for it, a yes or a no, or `no: because …`; anything else is unclear."""
    plain = unicodedata.normalize("NFKC", text).strip()
    word = plain.strip(PUNCTUATION).casefold()
    if word.isdecimal() and 1 <= int(word) <= len(offered):
        choice = offered[int(word) - 1]
        return None if choice == PERMANENT else Answer(choice=choice)
    meaning = MEANINGS.get(word) or yes_or_no(plain)
    if meaning in offered:
        return Answer(choice=meaning, text=plain if meaning == "no" and REASONS & set(_read(plain)) else "")
    head, separator, reason = _split_reason(plain)
    refuses = bool(separator) and next(_read(plain), "") in ("refuse", "glue") and yes_or_no(head) == "no"
    if "no" in offered and separator.strip():
        refuses |= head.casefold() in ("n", str(offered.index("no") + 1))
    if refuses and "no" in offered and reason.strip():
        return Answer(choice="no", text=reason.strip())
    return None


def yes_or_no(text: str) -> str:
    """`yes` or `no` where a text says just that; nothing where it says more, or both, or asks."""
    found = {""} if asks(text) else set(_read(text))
    if found & {"unclear", ""} or {"yes", "refuse"} <= found:
        return ""
    if "refuse" in found:
        return "no"
    return "yes" if found & {"yes", "agree"} and not found & DEEDS else ""


def agrees_to(text: str, deeds: set[str]) -> bool:
    """A yes that names just what is asked about: `yes, delete it`, 「はい、流してください」."""
    kinds = [] if asks(text) or re.search(MORE, text) else list(_read(text))
    return kinds[:1] in (["yes"], ["agree"]) and {*kinds} <= {"yes", "agree", "glue", "thing", *deeds}


def read_wish(text: str) -> str:
    """A yes or no with more behind it, whole: what is wanted instead. Nothing for what asks or says something else."""
    kinds = [] if ends_asking(text) else list(_read(text))
    return text.strip() if kinds and kinds[0] in ("yes", "agree", "refuse") and kinds[-1] == "" else ""


def _read(text: str) -> Iterator[str]:
    """The kinds of its words, as far as they are known; the last is empty where they are not."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    words, kinds = _kinds()
    place = 0
    while place < len(plain):
        word = words.match(plain, place)
        if word is None or len(text) > LONGEST:
            yield ""
            return
        place = word.end()
        if word.lastindex:
            yield kinds[word.lastindex - 1]


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

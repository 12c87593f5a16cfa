"""What an answer means: a number, a word for a choice, or a yes or no as people say it. Unclear is never a yes.

An answer is read word for word, each word by its kind. A yes is made of words that agree and words that say nothing, a
no also of words that refuse. Any other word makes it a wish, a condition or a question, and then it is neither. The
words of each language stand in its folder (`patterns/answers.txt`)."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.asking import asks, ends_asking
from duckflow.i18n.language import facts_of, languages_in
from duckflow.i18n.patterns import entries, search
from duckflow.state.question import Answer

PERMANENT = "always"
"""A rule that stays is never given by one key."""
DEEDS = {"deed", "run", "write", "delete", "move", "thing"}
REASONS = {*DEEDS, "reason"}
"""Words by which a no says more than no: what is wanted, or why."""
KINDS = {*REASONS, "yes", "agree", "refuse", "glue", "unclear"}
LONGEST = 80
"""Characters: nobody says a plain yes or no in more."""
GAP = r"[\s,、。.!~〜…♪☆;:\-\"'「」()*]+"
SIGNS = {"agree": "[👍👌🙆✅⭕🆗]", "refuse": "[❌🙅👎🛑🚫]", "glue": r"[🙏😊😀🎉✨🏻🏼🏽🏾🏿\ufe0f]"}
PUNCTUATION = " 。、.,!！"


@cache
def _kinds(languages: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """The words of these languages as one pattern; its groups in their order, and the kind of each. The default comes
    after the others; words that do not stand apart come last, since they would be found inside of those that do."""
    gaps, words = [GAP], list[tuple[str, str]]()
    for language in sorted(languages, key=lambda one: (not facts_of(one).spaces, one == DEFAULT_LANGUAGE)):
        letters, spaces = facts_of(language).letters, facts_of(language).spaces
        for kind, rule in entries(language, "answers"):
            if kind == "gap" and rule.source:
                gaps.append(rule.source)
            elif kind in KINDS:
                words.append((kind, rf"(?<![{letters}])(?:{rule.source})(?![{letters}])" if spaces else rule.source))
    words += SIGNS.items()
    pattern = "|".join((*gaps, *(f"({source})" for _, source in words)))
    return re.compile(pattern), tuple(kind for kind, _ in words)


@cache
def _choices(languages: tuple[str, ...]) -> dict[str, str]:
    """The choices that words stand for which are said alone."""
    named = (pair for language in languages for pair in entries(language, "answers") if pair[0].startswith("choice."))
    return {word: name.removeprefix("choice.") for name, rule in named for word in rule.source.split("|")}


def read_answer(text: str, offered: tuple[str, ...] = ("yes", "no"), language: str = DEFAULT_LANGUAGE) -> Answer | None:
    """A number of the offered list, a word for it, a yes or a no, or `no: because …`; anything else is unclear."""
    plain = unicodedata.normalize("NFKC", text).strip()
    word = plain.strip(PUNCTUATION).casefold()
    if word.isdecimal() and 1 <= int(word) <= len(offered):
        choice = offered[int(word) - 1]
        return None if choice == PERMANENT else Answer(choice=choice)
    choices = _choices(languages_in(plain, language))
    meaning = choices.get(word) or yes_or_no(plain, language)
    if meaning in offered:
        return Answer(choice=meaning, text=plain if meaning == "no" and REASONS & set(_read(plain, language)) else "")
    head, separator, reason = _split_reason(plain)
    begins = next(_read(plain, language), "") if separator else ""
    refuses = begins in ("refuse", "glue") and yes_or_no(head, language) == "no"
    if "no" in offered and separator.strip():
        refuses |= head == str(offered.index("no") + 1) or choices.get(head.casefold()) == "no"
    if refuses and "no" in offered and reason.strip():
        return Answer(choice="no", text=reason.strip())
    return None


def yes_or_no(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """`yes` or `no` where a text says just that; nothing where it says more, or both, or asks."""
    found = {""} if asks(text, language) else set(_read(text, language))
    if found & {"unclear", ""} or {"yes", "refuse"} <= found:
        return ""
    if "refuse" in found:
        return "no"
    return "yes" if found & {"yes", "agree"} and not found & DEEDS else ""


def agrees_to(text: str, deeds: set[str], language: str = DEFAULT_LANGUAGE) -> bool:
    """A yes that names just what is asked about: `yes, delete it`."""
    says_more = asks(text, language) or search("answers.more", text, language)
    kinds = [] if says_more else list(_read(text, language))
    return kinds[:1] in (["yes"], ["agree"]) and {*kinds} <= {"yes", "agree", "glue", "thing", *deeds}


def read_wish(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """A yes or no with more behind it, whole: what is wanted instead. Nothing for what asks or says something else."""
    kinds = [] if ends_asking(text, language) else list(_read(text, language))
    return text.strip() if kinds and kinds[0] in ("yes", "agree", "refuse") and kinds[-1] == "" else ""


def _read(text: str, language: str) -> Iterator[str]:
    """The kinds of its words, as far as they are known; the last is empty where they are not."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    words, kinds = _kinds(languages_in(plain, language))
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

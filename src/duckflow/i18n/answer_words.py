"""The words of an answer and their kinds, as each language lists them (`patterns/answers.txt`).

A yes is made of words that agree and words that say nothing, a no also of words that refuse. Any other word makes it a
wish, a condition or a question, and then it is neither."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.asking import asks
from duckflow.i18n.language import entries, facts_of, languages_in, search

DEEDS = {"deed", "run", "write", "delete", "move", "thing"}
REASONS = {*DEEDS, "reason"}
"""Words by which a no says more than no: what is wanted, or why."""
KINDS = {*REASONS, "yes", "agree", "praise", "refuse", "glue", "unclear"}
LONGEST = 80
"""Characters: nobody says a plain yes or no in more."""
GAP = r"[\s,、。.!~〜…♪☆;:\-\"'「」()*]+"
SIGNS = {"agree": "[👍👌🙆✅⭕🆗]", "refuse": "[❌🙅👎🛑🚫]", "glue": r"[🙏😊😀🎉✨🏻🏼🏽🏾🏿\ufe0f]"}


@cache
def _kinds(languages: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """The words of these languages as one pattern; its groups in their order, and the kind of each."""
    gaps = [rule.source for language in languages for kind, rule in entries(language, "answers") if kind == "gap"]
    words = [*_words(languages, "answers", KINDS), *SIGNS.items()]
    pattern = "|".join((GAP, *filter(None, gaps), *(f"({source})" for _, source in words)))
    return re.compile(pattern), tuple(kind for kind, _ in words)


def _words(languages: tuple[str, ...], topic: str, kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """The default language comes after the others; words that do not stand apart come last, since they would be found
    inside of those that do."""
    for language in sorted(languages, key=lambda one: (not facts_of(one).spaces, one == DEFAULT_LANGUAGE)):
        letters, spaces = facts_of(language).letters, facts_of(language).spaces
        for kind, rule in entries(language, topic):
            if kind in kinds:
                yield kind, rf"(?<![{letters}])(?:{rule.source})(?![{letters}])" if spaces else rule.source


def kinds_in(text: str, language: str) -> Iterator[str]:
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


def yes_or_no(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """`yes` or `no` where a text says just that; nothing where it says more, or both, or asks. Praise alone is neither
    of them: it says nothing of what is to be done."""
    kinds = {""} if asks(text, language) else set(kinds_in(text, language))
    if kinds & {"unclear", ""} or {"yes", "refuse"} <= kinds:
        return ""
    if "refuse" in kinds:
        return "no"
    return "yes" if kinds & {"yes", "agree"} and not kinds & DEEDS else ""


def agrees_somewhere(text: str, language: str) -> bool:
    """Whether a word that agrees stands anywhere in the text, whatever else it says."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words, kinds = _kinds(languages_in(plain, language))
    found = (kinds[word.lastindex - 1] for word in words.finditer(plain) if word.lastindex)
    return any(kind in ("yes", "agree") for kind in found)


def without_politeness(text: str, language: str) -> str:
    """A gap stands in place of every word that is there for politeness or grammar, or only agrees."""
    words, kinds = _kinds(languages_in(text, language))
    polite = {"glue", "yes", "agree", "praise"}
    return words.sub(lambda word: " " if word.lastindex and kinds[word.lastindex - 1] in polite else word[0], text)


def agrees_to(text: str, deeds: set[str], language: str = DEFAULT_LANGUAGE) -> bool:
    """A yes that names just what is asked about: `yes, delete it`."""
    says_more = asks(text, language) or search("answers.more", text, language)
    kinds = [] if says_more else list(kinds_in(text, language))
    return kinds[:1] in (["yes"], ["agree"]) and {*kinds} <= {"yes", "agree", "praise", "glue", "thing", *deeds}


NAME = "name"
FIRST_SIGN = r"([,.;!、。])"
SPELLED = re.compile(r"[a-z0-9_./*+#@-]*[a-z0-9_/*+#@]")
"""A name in letters that a program, a file or a folder may have."""


@cache
def _scope_words(languages: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    named = {kind for language in languages for kind, _ in entries(language, "scopes") if kind.startswith("word.")}
    words = [*_words(languages, "scopes", named)]
    sources = (re.sub(r"\(\?P<\w+>", "(?:", source) for _, source in words)
    return re.compile("|".join((GAP, *(f"({source})" for source in sources)))), tuple(kind[5:] for kind, _ in words)


class ScopeWords(NamedTuple):
    """The kinds of the words of a sentence that says how far a yes goes, in order, and the names between them."""

    kinds: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def allows(self) -> bool:
        """Whether they say that no question is needed from now on, for at most one name."""
        said = set(self.kinds)
        if "condition" in said or len(self.names) > 1:
            return False
        if not self.names:
            return bool(said & {"spared", "long", "rest"})
        lasting = {"long", "link"} <= said and bool(said & {"grant", "allow"})
        lasting |= "long" in said and bool(said & {"grant", "rest"})
        return self._joins_its_name and ("spared" in said or lasting)

    @property
    def speaks(self) -> bool:
        """Whether any of them is about how far a yes goes."""
        return bool({"spared", "long", "rest", "grant"} & {*self.kinds})

    @property
    def _joins_its_name(self) -> bool:
        """A name by itself may be a verb that asks for something else: what stands beside it says that it is none."""
        place = self.kinds.index(NAME)
        return "of" in self.kinds[max(0, place - 1) : place] or "link" in self.kinds[place + 1 : place + 2]


def scope_words(text: str, language: str) -> ScopeWords:
    """The agreeing words before the first sign say nothing of how far the yes goes."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    head, sign, rest = (*re.split(FIRST_SIGN, plain, maxsplit=1), "", "")[:3]
    plain = rest if sign and yes_or_no(head, language) == "yes" else plain
    words, kinds = _scope_words(languages_in(plain, language))
    found, names, place, apart = list[str](), list[str](), 0, True
    while place < len(plain):
        word = words.match(plain, place)
        if word and word.end() > place:
            kind = kinds[word.lastindex - 1] if word.lastindex else ""
            named = found[-1:] == [NAME] and ":" in word[0] and not kind
            found += ["link"] if named else [one for one in kind.split("+") if one not in ("", "glue")]
            apart = apart or bool(kind) or not word[0].isspace()
            place = word.end()
            continue
        spelled = SPELLED.match(plain, place)
        end = spelled.end() if spelled else place + 1
        while end < len(plain) and not words.match(plain, end):
            end += 1
        if apart or not names:
            names.append(plain[place:end])
            found.append(NAME)
        else:
            names[-1] += f" {plain[place:end]}"
        place, apart = end, False
    return ScopeWords(tuple(found), tuple(names))

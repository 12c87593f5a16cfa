"""Reads what comes after a yes by what it is about: asking, permission, extent, time or place.

Each language lists the function words (`patterns/tails.txt`). All other words are names, and a tail has at most one
name, which one of the function words governs. A tail with a contrast, a condition, another person or a negation that
does not hit the asking is not read here.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.answer_scope import PUNCTUATION, Scope
from duckflow.i18n.answer_words import kinds_in, yes_or_no
from duckflow.i18n.words import entries, facts_of, fitting, languages_in, search

GAP = r"(?:(?!\.\w)[\s,、。.!~〜…;\-\"'「」()`])+"
"""Matches signs between words, but not the dot that begins a name: `.ts`."""
JOINED = "0-9_/*+#@-"
"""Signs that join a word to a name, so that it is no function word: `tests/`."""
SPELLED = re.compile(r"[\w./*+#@-]*[\w/*+#@]", re.ASCII)
LASTING = {"spare", "free", "now", "ever", "like"}
"""Kinds of words that make a yes last longer than one action."""
PERMITS = {"spare", "good", "grant", "may", "like", "of", "in", "also", "light", "open", "go"}
"""Kinds of words that permit something or say what the yes is for. A time alone permits no named thing."""
EXTENT = {"all", "more"}
EXTENDS = {"of", "also"}, {"may", "all", "deed"}
"""Kinds of words that together give a permission for more: `for the docs too`, `you may read any logs`."""
BEFORE_NAME = {"of", "in", "all", "more", "grant", "like"}
AFTER_NAME = {"is", "may", "also", "good"}
"""The kinds of words that govern a name before or after them."""
NAME = {"name", "deed"}
IN_NAME = {*NAME, "in", "the", "you", "all", "of", "more"}
ASKED_AGAIN = {"ask", "look", "all", "more", "free", "of", "deed", "grant", "also", "now", "good"}
"""The kinds of words in a clause that only wants to be asked again."""
UNKNOWN = frozenset({"name"})
LONGEST_NAME = 5
"""The most words of a name. A longer one tells something."""


PARTS = {"asking", "between", "after", "reply", "span", "stretch", "modest", "free_to", "path", "bids"}
"""Names of patterns that are parts of others, or that are looked for in a name."""


class Tail(NamedTuple):
    """The meaning of a clause beside a yes."""

    scope: Scope = ""
    about: str = ""
    place: str = ""
    bounded: bool = False
    """True if the clause names a time that ends."""
    agrees: bool = False
    """True if the clause says yes by itself: `always ok for git status`."""


class TailWord(NamedTuple):
    kinds: frozenset[str]
    start: int
    end: int


@lru_cache(maxsize=64)
def read_tail(clause: str, language: str = DEFAULT_LANGUAGE) -> Tail | None:
    """Returns the meaning of a clause, or None where it is not surely about the reach or the place of a yes."""
    words = _words_of(clause, language)
    words = words[1:] if words and "but" in words[0].kinds else words
    kinds = [word.kinds for word in words if not word.kinds & {"glue", "it", "the"}]
    all_kinds = frozenset[str]().union(*kinds)
    if not all_kinds or all_kinds & {"stop", "but"} or _tells_of_user(words) or _tells_duration(words):
        return None
    if all_kinds <= {"now", "moment", "good"} and "moment" in all_kinds:
        return Tail("once")
    if "ask" in all_kinds:
        again = {"more"} if "look" in all_kinds else {"all", "more", "free"}
        once = all_kinds <= ASKED_AGAIN and (all_kinds & again or not _has_spaces(clause, language))
        return Tail("once", agrees="grant" in kinds[0]) if once else None
    place = next((place for place in ("back", "front") if place in all_kinds), "")
    about = _name_in(words, clause, language)
    if about is None or ("meanwhile" in all_kinds and not place) or (place and (about or all_kinds & {"may", "name"})):
        return None
    if (about or {"ever", "more"} <= all_kinds) and not all_kinds & PERMITS:
        return None
    orders = "light" in all_kinds and all_kinds & {"spare", "all", "free"} and search("tails.bids", clause, language)
    bids = "good" in all_kinds or (orders and not about)
    agrees = _agrees(kinds, words, bool(place)) or bool(bids and not _has_spaces(clause, language))
    if "once" in all_kinds:
        return None if all_kinds & LASTING or about else Tail("once", place=place, agrees=agrees)
    # "Everything is fine" praises; it gives no permission for anything else.
    praises = all_kinds <= {"all", "now", "is", "good"} and "is" in all_kinds
    lasts = bool(all_kinds & LASTING) and not praises
    reaches = bool(all_kinds & EXTENT and all_kinds & {"of", "good", "grant", "also", "light"}) and not praises
    reaches |= _has_spaces(clause, language) and any(kinds_together <= all_kinds for kinds_together in EXTENDS)
    names_place = _is_all_in(words) or search("tails.path", about, language)
    if about and not lasts and not (reaches and (names_place or "deed" in all_kinds)):
        return None
    if not (lasts or reaches or place or praises or "both" in all_kinds or all_kinds <= {"good", "is", "light"}):
        return None
    unbounded = "ever" in all_kinds and not search("scopes.bounds", clause, language)
    scope: Scope = "always" if unbounded else "session" if lasts or reaches else ""
    return Tail(scope, about, place, "now" in all_kinds and "on" not in all_kinds, agrees)


def speaks_of_reach(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether any word of a text may be about the reach of a yes, whatever the rest says."""
    return any(word.kinds & {*LASTING, "more", "grant"} for word in _words_of(text, language))


def _agrees(kinds: Sequence[frozenset[str]], words: Sequence[TailWord], has_place: bool) -> bool:
    """Says whether a clause begins with a word of permission, or orders what was asked about: `run that behind …`."""
    orders = has_place and len(words) > 1 and "deed" in words[0].kinds and "it" in words[1].kinds
    if orders or kinds[0] & {"grant", "go"}:
        return True
    second = kinds[1] if len(kinds) > 1 else frozenset[str]()
    return (
        ("good" in kinds[0] and bool(second & {"of", "all"}))
        or ("may" in kinds[0] and "go" in second)
        or ("good" in second and bool(kinds[0] & {"ever"}))
    )


def _tells_of_user(words: Sequence[TailWord]) -> bool:
    """Says whether `you` is the subject of a statement ("you always run it"), not of a relative clause ("every change
    you make")."""
    return any(
        "you" in word.kinds and (index == 0 or not words[index - 1].kinds & {"all", "more", *NAME})
        for index, word in enumerate(words)
    )


def _name_in(words: Sequence[TailWord], clause: str, language: str) -> str | None:
    """Returns the name in a clause, in the user's words; empty if there is none, None where it is not surely one name
    that a function word governs."""
    named = [index for index, word in enumerate(words) if word.kinds & NAME]
    if not named:
        return ""
    spaced = _has_spaces(clause, language)
    first, last = named[0], named[-1]
    if not spaced and all("deed" in words[index].kinds for index in named[1:]):
        # What is permitted follows the thing that it is permitted for: `docs 以下は今後いつでも編集OK`.
        last = next((index - 1 for index in range(first + 1, last) if "of" in words[index].kinds), last)
    name_words = words[first : last + 1]
    # "All commands fail" is a statement; "all pytest commands" names something.
    tells = spaced and any(
        "deed" in one.kinds and other.kinds == UNKNOWN and clause[: one.end].endswith("s")
        for one, other in pairwise(name_words)
    )
    if tells or len(name_words) > LONGEST_NAME or any(not word.kinds & IN_NAME for word in name_words):
        return None
    leads = [word.kinds for word in reversed(words[:first]) if not word.kinds <= {"the", "ever"}]
    before = leads[0] if leads else frozenset[str]()
    after = words[last + 1].kinds if last + 1 < len(words) else frozenset[str]()
    text = clause[name_words[0].start : name_words[-1].end]
    if "it" in after | before and not any("name" in word.kinds for word in name_words):
        return ""
    placed = [word.end for word in name_words if "in" in word.kinds and "under" not in word.kinds]
    placed += [name_words[0].start] * ("in" in before and not _is_all_in(words))
    if spaced and not all(search("tails.path", clause[place : name_words[-1].end], language) for place in placed):
        return None
    later = next((word.kinds for word in words[last + 1 :] if not word.kinds & {"now", "more"}), frozenset[str]())
    if not spaced:
        return text if (after | later) & {*AFTER_NAME, "of"} or before & {"more"} else None
    is_open = any("open" in word.kinds for word in name_words)
    # An unknown word after "you can always" is a verb.
    is_deed = "may" in before and "deed" in name_words[0].kinds
    return text if is_open or is_deed or before & BEFORE_NAME or later & AFTER_NAME else None


def _tells_duration(words: Sequence[TailWord]) -> bool:
    """Says whether a clause says how long something runs: `run it forever`."""
    kinds = [word.kinds for word in words if not word.kinds & {"glue", "it"}]
    acts = bool(words) and bool(words[0].kinds & {"it", "deed"})
    return acts and all(kind <= {"ever", "now", "deed"} for kind in kinds)


def _is_all_in(words: Sequence[TailWord]) -> bool:
    """Says whether a name surely is a place: `everything in lib`, but not `everything in the firewall`."""
    triples = zip(words, words[1:], words[2:], strict=False)
    return any("all" in first.kinds and "in" in second.kinds and third.kinds & NAME for first, second, third in triples)


def _has_spaces(clause: str, language: str) -> bool:
    return all(facts_of(code).spaces for code in languages_in(clause, language))


def _words_of(clause: str, language: str) -> list[TailWord]:
    pattern, kinds = _patterns(languages_in(clause, language))
    found, offset = list[TailWord](), 0
    while offset < len(clause):
        match = pattern.match(clause, offset)
        if match and match.end() > offset:
            if match.lastindex:
                found.append(TailWord(kinds[match.lastindex - 1], offset, match.end()))
            offset = match.end()
            continue
        name = SPELLED.match(clause, offset)
        end = name.end() if name and name.end() > offset else offset + 1
        if found and found[-1].kinds == UNKNOWN and found[-1].end == offset:
            found[-1] = found[-1]._replace(end=end)
        else:
            found.append(TailWord(UNKNOWN, offset, end))
        offset = end
    return found


@cache
def _patterns(languages: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[frozenset[str], ...]]:
    """Returns the words of these languages as one pattern with a group for each word, and the kinds of the groups."""
    sources, kinds = [GAP, "(:)"], [frozenset({"is"})]
    for language in sorted(languages, key=lambda code: (not facts_of(code).spaces, code == DEFAULT_LANGUAGE)):
        letters, spaces = facts_of(language).letters, facts_of(language).spaces
        for kind, rule in entries(language, "tails"):
            if kind in PARTS:
                continue
            source = re.sub(r"\(\?P<\w+>", "(?:", rule.source)
            # A word is no part of a name: `one` in `one.py`.
            bounded = rf"((?<![{letters}.{JOINED}])(?:{source})(?![{letters}{JOINED}]|\.\w))"
            sources.append(bounded if spaces else f"({source})")
            kinds.append(frozenset(kind.split("+")))
    return re.compile("|".join(sources), re.IGNORECASE), tuple(kinds)


BEFORE_CLAUSE = rf"^(?:(?!\.\w)[{re.escape(PUNCTUATION)};:-])+"
"""Matches the signs before a clause, but not the dot that begins a name: `.ts`."""


def joined_clauses(plain: str, language: str) -> list[str]:
    """Returns the clauses. Those after the yes are one, if only together they say how far the yes goes: `ruff is fine,
    don't ask again`."""
    clauses = clauses_of(plain, language)
    has_head = bool(clauses) and yes_or_no(clauses[0], language) == "yes"
    if len(clauses) < has_head + 2:
        return clauses
    tail = plain[plain.find(clauses[has_head], len(clauses[0]) if has_head else 0) :]
    tail_reading = read_tail(tail, language)
    return [*clauses[:has_head], tail] if tail_reading and tail_reading.about else clauses


def clauses_of(plain: str, language: str) -> list[str]:
    for code in languages_in(plain, language):
        for rule in fitting(code, "scopes.parts", plain):
            plain = rule.sub("\n", plain)
    parts = (re.sub(BEFORE_CLAUSE, "", part).rstrip(PUNCTUATION + ";:-") for part in plain.split("\n"))
    return [clause for part in parts for clause in _after_yes(part, language) if clause]


def _after_yes(clause: str, language: str) -> tuple[str, ...]:
    """Splits a clause after a yes (`yes I know`) or after an agreement that goes on with its reach or its place (`ok
    until we end the chat`)."""
    word, _, rest = clause.partition(" ")
    if rest and set(kinds_in(word, language)) == {"yes"}:
        return word, rest
    for separator in (" ", " and "):
        agreement, _, rest = clause.partition(separator)
        words = _words_of(clause, language)
        begins_word = len(clause) - len(rest) in [word.start for word in words]
        says_yes = rest and yes_or_no(agreement, language) == "yes" and read_tail(rest, language)
        if says_yes and begins_word and not _tells_duration(words):
            return agreement, rest
    return (clause,)

"""Words of a text for searching, in English and Japanese, and how well a text fits them."""

import math
import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

INDEXED = 30_000
"""Characters of a message that can be found; of a longer one its head and tail."""

_JAPANESE = r"[\u3005\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff\uf900-\ufaff]+"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"
# Tried only where a run of letters begins: from every letter of a long one it would take for ever.
_COMPOUND = (
    r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[_./-][A-Za-z0-9_]+)+|(?<![a-z0-9])[a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
)
_JOINT = r"[^A-Za-z0-9]+"
_ONLY_HIRAGANA = r"[\u3041-\u309e]+"
_WITH_HIRAGANA = r"[\u3041-\u309e]"
# Words that say nothing of the matter, as stems.
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        """a an the and or but if of to in on at by for with from as is are was were be been do doe did have ha had
        what which who whom whose when where why how that thi these those it i you he she we they my your hi her our
        their me him them us will would can could should mai might must not no so than then there here about into over
        after befor dure all ani some more most other such onli own same too veri just""",
    )
)
_WITHOUT_HIRAGANA = r"[\u3005\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff]{3,}"
WORD_POWER = 1 / 3
HIRAGANA_WEIGHT, MIXED_WEIGHT, FILLER_WEIGHT = 0.35, 0.8, 0.5


def telling(term: str) -> float:
    """How much a term says by itself: hiragana alone is mostly grammar."""
    if term.isascii():
        return FILLER_WEIGHT if term in _FILLERS else 1.0
    if re.fullmatch(_ONLY_HIRAGANA, term):
        return HIRAGANA_WEIGHT
    return MIXED_WEIGHT if re.search(_WITH_HIRAGANA, term) else 1.0


def shares(question: str) -> dict[str, float]:
    """Pairs of one long word are one word: each counts less than a word that stands alone. By pair, where not 1."""
    found: dict[str, float] = {}
    if question.isascii():
        return found
    for run in re.findall(_WITHOUT_HIRAGANA, unicodedata.normalize("NFKC", question)):
        for pair in map("".join, pairwise(run)):
            found[pair] = (len(run) - 1) ** -WORD_POWER
    return found


def indexed(text: str) -> str:
    """A text as it goes into the index: plain words, separated by spaces. The index itself takes the stems."""
    if len(text) > INDEXED:
        text = f"{text[: INDEXED * 2 // 3]}\n{text[-INDEXED // 3 :]}"
    if not text.isascii():
        text = re.sub(_JAPANESE, _pairs, unicodedata.normalize("NFKC", text))
    identifiers = " ".join(sorted({_joined(found) for found in re.findall(_COMPOUND, text)}))
    return f"{re.sub(_HUMP, ' ', text)} {identifiers}"


def terms(text: str) -> set[str]:
    """The plain words of a text, without stems."""
    return set(re.findall(r"\w{2,}", indexed(text).lower()))


def _joined(identifier: str) -> str:
    """`getUserId`, `get_user_id` and `get-user-id` are one. The x keeps them apart from ordinary words."""
    return f"x{re.sub(_JOINT, '', identifier).lower()}"


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(''.join, pairwise(run)))} " if len(run) > 1 else f" {run} "


LONG_MESSAGE = 300
LENGTH_SHARE = 0.3
"""How much a long message pays for its length: it holds more words by chance."""
AFTER = (0.8, 0.55, 0.3)
"""What the messages right after a hit get of its weight: the answer stands near the word that was asked with."""
BEFORE = (0.64, 0.44, 0.24)
SPREAD_LENGTH = 400
"""A hit in a message of this length passes on half: what is long speaks for itself."""


class Posting(NamedTuple):
    """A message that holds a word, and how long the message is."""

    number: int
    length: int


class QueryWord(NamedTuple):
    """A word of the question with the messages that hold it."""

    found_in: int
    telling: float
    postings: Iterable[Posting]


def rank(words: Iterable[QueryWord], total: int, neighbours: bool = True) -> dict[int, float]:
    """Message numbers with their share of what the question asks for, 0 to about 1.

    Of each word a message counts only its best: its own, or a neighbour's."""
    ranked: dict[int, float] = {}
    possible = 0.0
    for word in words:
        rarity = math.log(1 + (total - word.found_in + 0.5) / (word.found_in + 0.5)) * word.telling
        possible += rarity
        for number, weight in _spread(word.postings, rarity, neighbours).items():
            ranked[number] = ranked.get(number, 0.0) + weight
    return {number: weight / possible for number, weight in ranked.items()} if possible else {}


def _spread(postings: Iterable[Posting], rarity: float, neighbours: bool) -> dict[int, float]:
    best: dict[int, float] = {}
    for number, length in postings:
        own = rarity / (1 - LENGTH_SHARE + LENGTH_SHARE * math.sqrt(length / LONG_MESSAGE))
        if own > best.get(number, 0.0):
            best[number] = own
        passed_on = own * SPREAD_LENGTH / (SPREAD_LENGTH + length)
        for distance, (after, before) in enumerate(zip(AFTER, BEFORE, strict=True) if neighbours else (), 1):
            if passed_on * after > best.get(number + distance, 0.0):
                best[number + distance] = passed_on * after
            if passed_on * before > best.get(number - distance, 0.0):
                best[number - distance] = passed_on * before
    return best

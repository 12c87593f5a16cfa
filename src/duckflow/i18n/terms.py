"""Splits texts into words for searching, in English and Japanese."""

import re
import unicodedata
from itertools import pairwise

INDEXED = 30_000
"""The number of characters of a message that are indexed. Of a longer message, its head and tail are indexed."""

_JAPANESE = r"[\u3005\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff\uf900-\ufaff]+"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"
# The pattern matches only where a run of letters begins: from every letter of a long run it would take forever.
_COMPOUND = (
    r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[_./-][A-Za-z0-9_]+)+|(?<![a-z0-9])[a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
)
_JOINT = r"[^A-Za-z0-9]+"
_ONLY_HIRAGANA = r"[\u3041-\u309e]+"
_WITH_HIRAGANA = r"[\u3041-\u309e]"
# Common words that say nothing about the subject, as stems.
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
    """Returns the weight of a term by itself. Hiragana alone has little weight, because it is mostly grammar."""
    if term.isascii():
        return FILLER_WEIGHT if term in _FILLERS else 1.0
    if re.fullmatch(_ONLY_HIRAGANA, term):
        return HIRAGANA_WEIGHT
    return MIXED_WEIGHT if re.search(_WITH_HIRAGANA, term) else 1.0


def shares(question: str) -> dict[str, float]:
    """Returns the weights of character pairs that are part of a long word. Such pairs belong to one word, so each
    counts less than a word that stands alone."""
    weights: dict[str, float] = {}
    if question.isascii():
        return weights
    for characters in re.findall(_WITHOUT_HIRAGANA, unicodedata.normalize("NFKC", question)):
        for pair in map("".join, pairwise(characters)):
            weights[pair] = (len(characters) - 1) ** -WORD_POWER
    return weights


def indexed(text: str) -> str:
    """Returns a text as it goes into the index: plain words, separated by spaces. The index itself makes the stems."""
    if len(text) > INDEXED:
        text = f"{text[: INDEXED * 2 // 3]}\n{text[-INDEXED // 3 :]}"
    if not text.isascii():
        text = re.sub(_JAPANESE, _pairs, unicodedata.normalize("NFKC", text))
    identifiers = " ".join(sorted({_joined(identifier) for identifier in re.findall(_COMPOUND, text)}))
    return f"{re.sub(_HUMP, ' ', text)} {identifiers}"


def terms(text: str) -> set[str]:
    """Returns the plain words of a text, without making stems."""
    return set(re.findall(r"\w{2,}", indexed(text).lower()))


def _joined(identifier: str) -> str:
    """Returns one form for `getUserId`, `get_user_id` and `get-user-id`. An x is added, which keeps it apart from
    ordinary words."""
    return f"x{re.sub(_JOINT, '', identifier).lower()}"


def _pairs(match: re.Match[str]) -> str:
    characters = match[0]
    return f" {' '.join(map(''.join, pairwise(characters)))} " if len(characters) > 1 else f" {characters} "

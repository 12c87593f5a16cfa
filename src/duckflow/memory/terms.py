"""Words to search by: Japanese in pairs of characters, English by stems, identifiers whole and in parts."""

import re
import unicodedata
from itertools import pairwise

INDEXED = 30_000
"""Characters of a message that can be found; of a longer one its head and tail."""

_JAPANESE = re.compile(r"[\u3005\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff\uf900-\ufaff]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Tried only where a run of letters begins: from every letter of a long one it would take for ever.
_COMPOUND = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[_./-][A-Za-z0-9_]+)+|(?<![a-z0-9])[a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
)
_JOINT = re.compile(r"[^A-Za-z0-9]+")
_ONLY_HIRAGANA = re.compile(r"[\u3041-\u309e]+")
_WITH_HIRAGANA = re.compile(r"[\u3041-\u309e]")
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
_WITHOUT_HIRAGANA = re.compile(r"[\u3005\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff]{3,}")
WORD_POWER = 1 / 3
HIRAGANA_WEIGHT, MIXED_WEIGHT, FILLER_WEIGHT = 0.35, 0.8, 0.5


def telling(term: str) -> float:
    """How much a term says by itself: hiragana alone is mostly grammar."""
    if term.isascii():
        return FILLER_WEIGHT if term in _FILLERS else 1.0
    if _ONLY_HIRAGANA.fullmatch(term):
        return HIRAGANA_WEIGHT
    return MIXED_WEIGHT if _WITH_HIRAGANA.search(term) else 1.0


def shares(question: str) -> dict[str, float]:
    """Pairs of one long word are one word: each counts less than a word that stands alone. By pair, where not 1."""
    found: dict[str, float] = {}
    for run in _WITHOUT_HIRAGANA.findall(unicodedata.normalize("NFKC", question)):
        for pair in map("".join, pairwise(run)):
            found[pair] = (len(run) - 1) ** -WORD_POWER
    return found


def indexed(text: str) -> str:
    """A text as it goes into the index: plain words, separated by spaces. The index itself takes the stems."""
    if len(text) > INDEXED:
        text = f"{text[: INDEXED * 2 // 3]}\n{text[-INDEXED // 3 :]}"
    if not text.isascii():
        text = _JAPANESE.sub(_pairs, unicodedata.normalize("NFKC", text))
    identifiers = " ".join(sorted({_joined(found) for found in _COMPOUND.findall(text)}))
    return f"{_HUMP.sub(' ', text)} {identifiers}"


def terms(text: str) -> set[str]:
    """The plain words of a text, without stems."""
    return set(re.findall(r"\w{2,}", indexed(text).lower()))


def _joined(identifier: str) -> str:
    """`getUserId`, `get_user_id` and `get-user-id` are one. The x keeps them apart from ordinary words."""
    return f"x{_JOINT.sub('', identifier).lower()}"


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(''.join, pairwise(run)))} " if len(run) > 1 else f" {run} "

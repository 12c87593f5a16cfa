"""Words to search by: Japanese in pairs of characters, English by stems, identifiers whole and in parts."""

import re
import unicodedata
from itertools import pairwise

INDEXED = 30_000
"""Characters of a message that can be found; of a longer one its head and tail."""

_JAPANESE = re.compile(r"[\u3005\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff\uf900-\ufaff]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMPOUND = re.compile(r"[A-Za-z0-9]+(?:[_./-][A-Za-z0-9_]+)+|[a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*")
_JOINT = re.compile(r"[^A-Za-z0-9]+")


def indexed(text: str) -> str:
    """A text as it goes into the index: plain words, separated by spaces. The index itself takes the stems."""
    if len(text) > INDEXED:
        text = f"{text[: INDEXED * 2 // 3]}\n{text[-INDEXED // 3 :]}"
    if not text.isascii():
        text = _JAPANESE.sub(_pairs, unicodedata.normalize("NFKC", text))
    identifiers = " ".join(sorted({_joined(found) for found in _COMPOUND.findall(text)}))
    return f"{_HUMP.sub(' ', text)} {identifiers}"


def _joined(identifier: str) -> str:
    """`getUserId`, `get_user_id` and `get-user-id` are one. The x keeps them apart from ordinary words."""
    return f"x{_JOINT.sub('', identifier).lower()}"


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(''.join, pairwise(run)))} " if len(run) > 1 else f" {run} "

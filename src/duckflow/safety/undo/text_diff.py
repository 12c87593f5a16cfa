"""What changes between two contents, for a person's eyes."""

import difflib
from collections import Counter
from dataclasses import dataclass

from duckflow.safety.shown import shown_line, shown_size

COMPARED = 20_000
"""More lines than this are counted, not compared: the comparison would take too long."""
ENCODINGS = ("utf-8-sig", "cp932", "euc_jp")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class TextDiff:
    """Counts, and the lines of a unified diff without its header."""

    added: int
    removed: int
    lines: tuple[str, ...]


def text_diff(old: bytes | None, new: bytes | None) -> TextDiff:
    """Nothing on one side: a file that is made or deleted."""
    before, after = _text(old or b""), _text(new or b"")
    if before is None or after is None:
        sizes = [shown_size(len(data)) if data is not None else "∅" for data in (old, new)]
        return TextDiff(0, 0, (f"@@ {' → '.join(sizes)} @@",))
    a, b = _lines(before, after), _lines(after, before)
    if len(a) + len(b) > COMPARED:
        added, removed = (Counter(b) - Counter(a)).total(), (Counter(a) - Counter(b)).total()
        return TextDiff(added, removed, (f"@@ +{added} −{removed} @@",))
    lines = list(difflib.unified_diff(a, b, lineterm=""))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return TextDiff(added, removed, tuple(shown_line(part) for line in lines for part in line.split("\n")))


def _text(data: bytes) -> str | None:
    """Nothing for what is no text."""
    if data.startswith(UTF_16_MARKS):
        return _decoded(data, "utf-16")
    if b"\0" in data:
        return None
    return next((text for encoding in ENCODINGS if (text := _decoded(data, encoding)) is not None), None)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _lines(text: str, other: str) -> list[str]:
    """Line ends are shown only where the two differ in them."""
    if _all_crlf(text) and _all_crlf(other):
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]


def _all_crlf(text: str) -> bool:
    return text.count("\n") == text.count("\r\n")

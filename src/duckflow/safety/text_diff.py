"""What changes between two contents, for a person's eyes."""

import difflib
from collections import Counter
from typing import NamedTuple

from duckflow.safety.shown import shown_line, shown_size

MOST_LINES = 20_000
"""More lines than this are counted, not compared: the comparison would take too long."""
ENCODINGS = ("utf-8-sig", "cp932", "euc_jp")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
NO_NEWLINE = "\\ No newline at end of file"


class TextDiff(NamedTuple):
    """Counts, and the lines of a unified diff without its header."""

    added: int = 0
    removed: int = 0
    lines: tuple[str, ...] = ()


def text_diff(old: bytes | None, new: bytes | None) -> TextDiff:
    """Nothing on one side: a file that is made or deleted."""
    before, after = _text(old or b""), _text(new or b"")
    if before is None or after is None:
        sizes = [shown_size(len(data)) if data is not None else "∅" for data in (old, new)]
        return TextDiff(0, 0, (f"@@ {' → '.join(sizes)} @@",))
    a, b = _lines(before, after), _lines(after, before)
    if len(a) + len(b) > MOST_LINES:
        added, removed = (Counter(b) - Counter(a)).total(), (Counter(a) - Counter(b)).total()
        return TextDiff(added, removed, (f"@@ +{added} −{removed} @@",))
    lines = list(difflib.unified_diff(a, b, lineterm=""))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return TextDiff(added, removed, tuple(shown_line(part) for line in lines for part in line.split("\n")))


def _text(data: bytes) -> str | None:
    """Nothing for what is no text."""
    if b"\0" in data and not data.startswith(UTF_16_MARKS):
        return None
    for encoding in ("utf-16",) if data.startswith(UTF_16_MARKS) else ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _lines(text: str, other: str) -> list[str]:
    """Line ends are shown only where the two differ in them."""
    if all(one.count("\n") == one.count("\r\n") for one in (text, other)):
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]

"""Text from outside made safe to show: no control characters, no invisible marks that turn text around."""

import unicodedata

ESCAPED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
JOINERS = "\u200c\u200d"
"""Joiners are part of ordinary words and emoji."""


def shown(text: str) -> str:
    """One line: line breaks, control characters, direction marks and broken bytes as escapes."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def shown_line(line: str) -> str:
    """A line of a file for a person's eyes; tabs stay."""
    return "\t".join(shown(part) for part in line.split("\t"))


def shown_size(size: int) -> str:
    """`512 B`, `1.5 KB`, `2.0 GB`."""
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KB", "MB", "GB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TB"


def _visible(char: str) -> str:
    if unicodedata.category(char) not in ESCAPED or char in JOINERS:
        return char
    return char.encode("unicode_escape").decode("ascii")

"""How many columns a text takes on a terminal: Japanese takes two a character, combining marks none."""

import unicodedata

from wcwidth import wcswidth, wcwidth

ELLIPSIS = "…"


def cells(text: str) -> int:
    """Columns of a text that has no control characters."""
    if text.isascii():
        return len(text)
    whole = wcswidth(text)
    return whole if whole >= 0 else sum(map(cell, text))


def cell(character: str) -> int:
    return 1 if character.isascii() else max(0, wcwidth(character))


def fitted(text: str, columns: int) -> str:
    """The text, cut with an ellipsis when it is too wide."""
    if cells(text) <= columns:
        return text
    kept, room = "", columns - 1
    for character in text:
        room -= cell(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + ELLIPSIS if columns > 0 else ""


def padded(text: str, columns: int) -> str:
    """The text with spaces after it, up to so many columns."""
    return text + " " * max(0, columns - cells(text))


def is_wide(character: str) -> bool:
    """Whether it is written without spaces between words, so that a line may end after it."""
    return character > "\u2e7f" and unicodedata.east_asian_width(character) in "WF"

"""Measures how wide text is in a terminal, and makes it fit."""

import unicodedata

from wcwidth import wcswidth, wcwidth

ELLIPSIS = "…"


def cells(text: str) -> int:
    """Returns the number of columns that a text without control characters takes."""
    if text.isascii():
        return len(text)
    total_width = wcswidth(text)
    return total_width if total_width >= 0 else sum(map(cell, text))


def cell(character: str) -> int:
    return 1 if character.isascii() else max(0, wcwidth(character))


def fitted(text: str, columns: int) -> str:
    """Returns the text, cut with an ellipsis when it is wider than this."""
    if cells(text) <= columns:
        return text
    shown_text, columns_left = "", columns - 1
    for character in text:
        columns_left -= cell(character)
        if columns_left < 0:
            break
        shown_text += character
    return shown_text.rstrip() + ELLIPSIS if columns > 0 else ""


def padded(text: str, columns: int) -> str:
    """Returns the text with spaces after it, so that it is `columns` columns wide."""
    return text + " " * max(0, columns - cells(text))


def is_wide(character: str) -> bool:
    """Says whether the character's script has no spaces between words, so that a line may end after it."""
    return character > "\u2e7f" and unicodedata.east_asian_width(character) in "WF"


NOT_FIRST = frozenset("、。，．・：；？！）」』】〕〉》”’ー々〜～…‥％℃" + ",.!?:;)]}%")
NOT_LAST = frozenset("（「『【〔〈《“‘￥" + "([{")


def line_ends(text: str, columns: int, hanging: int = 0) -> list[int]:
    """Returns the places to cut the text so that no line takes more columns; later lines have `hanging` fewer."""
    end_offsets: list[int] = []
    start = cells_used = last_end = 0
    columns_of_line = max(2, columns)
    for offset, character in enumerate(text):
        width = cell(character)
        if offset > start and _may_end(text, offset):
            last_end = offset
        while cells_used + width > columns_of_line and offset > start and not character.isspace():
            start = last_end if last_end > start else offset
            end_offsets.append(start)
            cells_used = sum(map(cell, text[start:offset]))
            columns_of_line = max(2, columns - hanging)
        cells_used += width
    return end_offsets


def _may_end(text: str, place: int) -> bool:
    """Says whether a line may end before this character."""
    before, after = text[place - 1], text[place]
    if after.isspace():
        return False
    if before.isspace():
        return True
    if after in NOT_FIRST or before in NOT_LAST or cell(after) == 0:
        return False
    return is_wide(before) if not is_wide(after) else "LETTER SMALL" not in unicodedata.name(after, "")

"""Text in columns: what counts is how wide it is on the screen, not how many characters it has."""

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"


def fit(text: str, width: int) -> str:
    """Exactly `width` cells: cut with `…`, or filled up with spaces."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    cut = set_cell_size(text, max(0, width - 1)).rstrip() + ELLIPSIS
    return cut + " " * (width - cell_len(cut))


def right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text

"""A table of a reply, with its columns aligned however wide their characters are."""

import re
from dataclasses import dataclass, field

from rich.text import Text

from duckflow.i18n.width import cells
from duckflow.ui.console.inline import inline
from duckflow.ui.console.printer import Printer, rows

CELL = re.compile(r"(?<!\\)\|")
DELIMITER = re.compile(r"\s*:?-+:?\s*")
BETWEEN = " │ "
NARROWEST = 6
MOST_COLUMNS = 100


@dataclass
class MarkdownTable:
    """Its lines are collected until it ends: no column is known before the last line."""

    lines: list[str] = field(default_factory=list[str])

    def print(self, printer: Printer) -> None:
        grid = [_split(line) for line in self.lines]
        marks = grid[1] if len(grid) > 1 and all(DELIMITER.fullmatch(one) for one in grid[1]) else None
        if marks is None or len(marks) > MOST_COLUMNS:
            for line in self.lines:
                printer.wrapped(inline(line, printer.coloured))
            return
        full = [(line + [""] * len(marks))[: len(marks)] for line in (grid[0], *grid[2:])]
        texts = [[inline(one, printer.coloured) for one in line] for line in full]
        widths = _widths([[cells(one.plain) for one in line] for line in texts], printer.columns)
        if widths is None:
            _as_list(texts, printer)
            return
        for number, line in enumerate(texts):
            _print_row(line, widths, marks, printer, "bold" if number == 0 else "")
            if number == 0:
                printer.line(Text("─┼─".join("─" * width for width in widths), style="dim"))


def _split(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [one.strip().replace("\\|", "|") for one in CELL.split(inner)]


def _widths(measured: list[list[int]], columns: int) -> list[int] | None:
    """What each column gets: as much as it needs, the widest ones less when there is no room; none when hopeless."""
    room = columns - len(BETWEEN) * (len(measured[0]) - 1)
    widths = [min(max(1, *column), max(room, NARROWEST)) for column in zip(*measured, strict=True)]
    if sum(min(width, NARROWEST) for width in widths) > room:
        return None
    while sum(widths) > room:
        widest = max(widths)
        second = max((width for width in widths if width < widest), default=NARROWEST)
        excess = sum(widths) - room
        place = widths.index(widest)
        widths[place] = max(widest - excess, second if widths.count(widest) == 1 else widest - 1, NARROWEST)
    return widths


def _print_row(line: list[Text], widths: list[int], marks: list[str], printer: Printer, style: str) -> None:
    wrapped = [rows(one, width) for one, width in zip(line, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        row = Text(style=style)
        for place, (pieces, width) in enumerate(zip(wrapped, widths, strict=True)):
            if place:
                row.append(BETWEEN, style="dim")
            piece = pieces[number] if number < len(pieces) else Text()
            row.append_text(_aligned(piece, width, marks[place]))
        row.rstrip()
        printer.line(row)


def _aligned(piece: Text, width: int, mark: str) -> Text:
    space = max(0, width - cells(piece.plain))
    left = space if not mark.startswith(":") and mark.endswith(":") else 0
    left = space // 2 if mark.startswith(":") and mark.endswith(":") else left
    return Text.assemble(" " * left, piece, " " * (space - left))


def _as_list(texts: list[list[Text]], printer: Printer) -> None:
    """Too many columns for this terminal: each row becomes a few lines."""
    head, *body = texts
    for line in body:
        for name, value in zip(head, line, strict=True):
            printer.wrapped(Text.assemble((f"{name.plain}: ", "bold"), value), "", "  ")
        printer.line(Text())

"""Prints a reply in Markdown while it is being written: each line once, as soon as it is complete. Square brackets that
make no link are shown as they are."""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.text import Text

from duckflow.i18n.literal_signs import LITERAL
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells
from duckflow.ui.console.code import Code
from duckflow.ui.console.printer import Printer, rows

MARK = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    rf"|(?P<literal>{LITERAL.pattern})"
    r"|(?P<strong>\*{2}|__)"
    r"|(?P<strike>~~)"
    r"|(?P<soft>[*_])"
    r'|!?\[(?P<label>[^\[\]\n]*)\]\((?P<url>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+"[^"\n]*")?\)'
    r"|<(?P<address>https?://[^\s<>]+)>"
)
TICKS = re.compile(r"`+")
STYLES = {"strong": "bold", "soft": "italic", "strike": "strike"}
CODE = "cyan"
DEEPEST = 6


def inline(text: str, coloured: bool) -> Text:
    """Returns the line with its styles. Without colours, code keeps its backticks, so that it stands out from words."""
    return _Inline(text, coloured, 0).read()


class _Inline:
    """One stretch of text. A sign that is never closed is searched for only once, so that reading takes time in
    proportion to the length, whatever the text contains."""

    def __init__(self, text: str, coloured: bool, depth: int) -> None:
        self._text = text
        self._coloured = coloured
        self._depth = depth
        self._done = Text()
        self._never_closed: set[str] = set()
        self._tick_runs: dict[int, list[int]] | None = None

    def read(self) -> Text:
        offset = 0
        while mark := MARK.search(self._text, offset) if self._depth < DEEPEST else None:
            self._done.append(self._text[offset : mark.start()])
            offset = self._take(mark)
        return self._done.append(self._text[offset:])

    def _take(self, mark: re.Match[str]) -> int:
        """Appends the text that the mark stands for, and returns the place to continue from."""
        sign, kind = mark[0], mark.lastgroup
        if mark["escape"]:
            self._done.append(sign[1])
            return mark.end()
        if mark["ticks"]:
            return self._code(mark)
        if mark["address"]:
            self._done.append(mark["address"], style="underline")
            return mark.end()
        if mark["url"] is not None:
            self._link(mark["label"] or "", mark["url"])
            return mark.end()
        closing_offset = -1 if mark["literal"] else self._closing(mark)
        if closing_offset < 0 or kind is None:
            self._done.append(sign)
            return mark.end()
        self._inner(self._text[mark.end() : closing_offset], STYLES[kind])
        return closing_offset + len(sign)

    def _inner(self, text: str, style: str) -> None:
        inner_text = _Inline(text, self._coloured, self._depth + 1).read()
        inner_text.stylize(style)
        self._done.append_text(inner_text)

    def _code(self, mark: re.Match[str]) -> int:
        if self._tick_runs is None:
            self._tick_runs = {}
            for run in TICKS.finditer(self._text):
                self._tick_runs.setdefault(len(run[0]), []).append(run.start())
        run_offsets = self._tick_runs.get(len(mark[0]), [])
        end_index = bisect_left(run_offsets, mark.end())
        if end_index == len(run_offsets):
            self._done.append(mark[0])
            return mark.end()
        code = self._text[mark.end() : run_offsets[end_index]]
        code = code[1:-1] if len(code) > 2 and code[0] == code[-1] == " " and code.strip() else code
        self._done.append(code if self._coloured else f"`{code}`", style=CODE)
        return run_offsets[end_index] + len(mark[0])

    def _link(self, label: str, url: str) -> None:
        """Appends a link. Its address is always shown: a link must not hide where it leads."""
        if label and label != url:
            self._inner(label, "underline")
            self._done.append(f" ({url})", style="dim")
        else:
            self._done.append(url, style="underline")

    def _closing(self, mark: re.Match[str]) -> int:
        """Returns the place where the emphasis ends; -1 if the sign is no emphasis (2 * 3, snake_case)."""
        text, sign, start = self._text, mark[0], mark.end()
        is_underscore = sign[0] == "_"
        if start >= len(text) or text[start].isspace() or (is_underscore and _in_word(text, mark.start() - 1)):
            return -1
        offset = start if sign not in self._never_closed else len(text)
        while (offset := text.find(sign, offset)) > 0:
            offset_after = offset + len(sign)
            stands_alone = len(sign) == 2 or (
                text[offset_after : offset_after + 1] != sign and text[offset - 1] != sign
            )
            if (
                offset > start
                and stands_alone
                and not text[offset - 1].isspace()
                and not LITERAL.match(text, offset)
                and not (is_underscore and _in_word(text, offset_after))
            ):
                return offset
            offset = offset_after
        self._never_closed.add(sign)
        return -1


def _in_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isalnum()


CELL = re.compile(r"(?<!\\)\|")
DELIMITER = re.compile(r"\s*:?-+:?\s*")
BETWEEN = " │ "
NARROWEST = 6
MOST_COLUMNS = 100


@dataclass
class MarkdownTable:
    """A table. Its lines are collected until it ends: no column's width is known before the last line."""

    lines: list[str] = field(default_factory=list[str])

    def print(self, printer: Printer) -> None:
        grid = [_split(line) for line in self.lines]
        delimiter_cells = grid[1] if len(grid) > 1 and all(DELIMITER.fullmatch(cell) for cell in grid[1]) else None
        if delimiter_cells is None or len(delimiter_cells) > MOST_COLUMNS:
            for line in self.lines:
                printer.wrapped(inline(line, printer.coloured))
            return
        full_rows = [(line + [""] * len(delimiter_cells))[: len(delimiter_cells)] for line in (grid[0], *grid[2:])]
        texts = [[inline(cell, printer.coloured) for cell in line] for line in full_rows]
        widths = _widths([[cells(cell.plain) for cell in line] for line in texts], printer.columns)
        if widths is None:
            _as_list(texts, printer)
            return
        for number, line in enumerate(texts):
            _print_row(line, widths, delimiter_cells, printer, "bold" if number == 0 else "")
            if number == 0:
                printer.line(Text("─┼─".join("─" * width for width in widths), style="dim"))


def _split(line: str) -> list[str]:
    inner_text = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in CELL.split(inner_text)]


def _widths(measured: list[list[int]], columns: int) -> list[int] | None:
    """Returns the width of each column: as much as it needs, with the widest columns cut when there is no room. Returns
    None if the table would still be too wide."""
    free_columns = columns - len(BETWEEN) * (len(measured[0]) - 1)
    widths = [min(max(1, *column), max(free_columns, NARROWEST)) for column in zip(*measured, strict=True)]
    if sum(min(width, NARROWEST) for width in widths) > free_columns:
        return None
    while sum(widths) > free_columns:
        widest = max(widths)
        second_widest = max((width for width in widths if width < widest), default=NARROWEST)
        excess = sum(widths) - free_columns
        index = widths.index(widest)
        widths[index] = max(widest - excess, second_widest if widths.count(widest) == 1 else widest - 1, NARROWEST)
    return widths


def _print_row(line: list[Text], widths: list[int], marks: list[str], printer: Printer, style: str) -> None:
    wrapped_cells = [rows(cell, width) for cell, width in zip(line, widths, strict=True)]
    for number in range(max(map(len, wrapped_cells))):
        row = Text(style=style)
        for index, (pieces, width) in enumerate(zip(wrapped_cells, widths, strict=True)):
            if index:
                row.append(BETWEEN, style="dim")
            piece = pieces[number] if number < len(pieces) else Text()
            row.append_text(_aligned(piece, width, marks[index]))
        row.rstrip()
        printer.line(row)


def _aligned(piece: Text, width: int, mark: str) -> Text:
    space = max(0, width - cells(piece.plain))
    indent = space if not mark.startswith(":") and mark.endswith(":") else 0
    indent = space // 2 if mark.startswith(":") and mark.endswith(":") else indent
    return Text.assemble(" " * indent, piece, " " * (space - indent))


def _as_list(texts: list[list[Text]], printer: Printer) -> None:
    """Prints a table with too many columns for this terminal as a list: each row becomes a few lines."""
    header_cells, *body = texts
    for line in body:
        for name, value in zip(header_cells, line, strict=True):
            printer.wrapped(Text.assemble((f"{name.plain}: ", "bold"), value), "", "  ")
        printer.line(Text())


FENCE = re.compile(r"(?P<indent>\s*)(?P<marks>`{3,}+|~{3,}+)\s*+(?P<language>[\w+#.-]*+)[^`]*")
HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<text>.*)")
RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+]|\d{1,9}[.)])\s+(?P<text>.*)")
QUOTE = re.compile(r"\s{0,3}(?P<marks>(?:>\s?)+)(?P<text>.*)")
ROW = re.compile(r"\s*\|.*\|\s*")
HEADING_STYLES = {1: "bold underline", 2: "bold"}
LONGEST_LINE = 8000
"""A line with more characters than this is printed in pieces of about this length. Code stays whole, so that it can be
copied."""
DEEPEST_QUOTE = 8
SHOWN_ROWS, SHOWN_CHARACTERS = 8, 1600
"""The most rows of a table and characters of a line that are shown before they are printed."""


class Markdown:
    """Prints Markdown. A line break in the text is a line break on the screen, since people and models write that
    way."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._line: list[str] = []
        self._length = 0
        self._fence = ""
        self._code = Code("")
        self._table: MarkdownTable | None = None
        self._blank = True
        self._kinds: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (FENCE, self._open_fence),
            (HEADING, self._heading),
            (RULE, self._rule),
            (ITEM, self._item),
            (QUOTE, self._quote),
        )

    @property
    def unfinished(self) -> str:
        """Returns the end of the text that has not been printed yet. Of a long line only the end is shown; its start
        moves on now and then, not with every word."""
        table_lines = self._table.lines[-SHOWN_ROWS:] if self._table else []
        if not self._line:
            return "\n".join(table_lines)
        missing_length, pieces = self._length % SHOWN_CHARACTERS + SHOWN_CHARACTERS, list[str]()
        for piece in reversed(self._line):
            pieces.append(piece)
            missing_length -= len(piece)
            if missing_length <= 0:
                break
        line = "".join(reversed(pieces))
        return "\n".join([*table_lines, plain(line[-missing_length:] if missing_length < 0 else line)])

    def add(self, text: str) -> None:
        """Adds a piece of the reply. Each piece is read once, however many there are."""
        *whole_lines, unfinished_line = text.split("\n")
        for line in whole_lines:
            self._put(line)
            self._end_line()
        self._put(unfinished_line)

    def drop(self) -> None:
        """Drops the text that has not been printed yet, because it is shown in another way."""
        self._line, self._length = [], 0

    def end(self) -> None:
        """Ends the reply: prints the text that remains."""
        if self._line:
            self._end_line()
        self._end_table()
        self._fence, self._blank = "", True

    def _put(self, piece: str) -> None:
        if not piece:
            return
        self._line.append(piece)
        self._length += len(piece)
        while self._length > LONGEST_LINE and not self._fence:
            line = "".join(self._line)
            offset = line.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE) + 1 or LONGEST_LINE
            self._take(plain(line[:offset]))
            self._line, self._length = [line[offset:]], len(line) - offset

    def _end_line(self) -> None:
        line, self._line, self._length = "".join(self._line), list[str](), 0
        self._take(plain(line.rstrip("\r")))

    def _take(self, line: str) -> None:
        if self._fence:
            self._take_code(line)
            return
        if ROW.fullmatch(line):
            self._table = self._table or MarkdownTable()
            self._table.lines.append(line)
            return
        self._end_table()
        if not line.strip():
            if not self._blank:
                self._printer.line(Text())
            self._blank = True
            return
        self._blank = False
        if not self._printer.styled:
            self._printer.text(line)
            return
        for pattern, show in self._kinds:
            if match := pattern.fullmatch(line):
                show(match)
                return
        indent = line[: len(line) - len(line.lstrip())]
        self._printer.wrapped(inline(line.lstrip(), self._printer.coloured), self._fitting(indent))

    def _open_fence(self, match: re.Match[str]) -> None:
        self._fence = match["marks"]
        self._code = Code(match["language"])
        self._printer.line(Text(match[0], style="dim"))

    def _take_code(self, line: str) -> None:
        bare_line = line.strip()
        if bare_line.startswith(self._fence) and not bare_line.strip(self._fence[0]):
            self._fence = ""
            self._printer.line(Text(line, style="dim"))
        else:
            self._printer.line(self._code.line(line))

    def _heading(self, match: re.Match[str]) -> None:
        words = match["text"].rstrip() if not match["text"].endswith("#") else match["text"].rstrip("#").rstrip()
        text = inline(words, self._printer.coloured)
        text.stylize(HEADING_STYLES.get(len(match["marks"]), "bold italic"))
        self._printer.wrapped(text)

    def _rule(self, _: re.Match[str]) -> None:
        self._printer.line(Text("─" * min(self._printer.columns, 40), style="dim"))

    def _item(self, match: re.Match[str]) -> None:
        list_mark = match["mark"] if match["mark"][0].isdigit() else "•"
        first_indent = f"{self._fitting(match['indent'])}{list_mark} "
        self._printer.wrapped(inline(match["text"], self._printer.coloured), first_indent, " " * cells(first_indent))

    def _quote(self, match: re.Match[str]) -> None:
        bar = "│ " * min(match["marks"].count(">"), DEEPEST_QUOTE)
        text = inline(match["text"], self._printer.coloured)
        text.stylize("italic")
        self._printer.wrapped(text, bar, bar)

    def _fitting(self, indent: str) -> str:
        """Cuts an indent so that it leaves room for words."""
        return indent[: self._printer.columns // 2]

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table:
            table.print(self._printer)
            self._blank = False

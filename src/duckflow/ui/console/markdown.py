"""A reply in Markdown, printed while it is being written: each line once, as soon as it is complete."""

import re
from collections.abc import Callable

from rich.text import Text

from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells
from duckflow.ui.console.code import Code
from duckflow.ui.console.inline import inline
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.table import MarkdownTable

FENCE = re.compile(r"(?P<indent>\s*)(?P<marks>`{3,}|~{3,})\s*(?P<language>[\w+#.-]*)[^`]*")
HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<text>.*?)\s*#*")
RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+]|\d{1,9}[.)])\s+(?P<text>.*)")
QUOTE = re.compile(r"\s{0,3}(?P<marks>(?:>\s?)+)(?P<text>.*)")
ROW = re.compile(r"\s*\|.*\|\s*")
HEADING_STYLES = {1: "bold underline", 2: "bold"}


class Markdown:
    """A line break in the text is one on the screen: that is how people, and models, write to each other."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._line = ""
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
        """What has not been printed yet."""
        waiting = self._table.lines if self._table else []
        return "\n".join([*waiting, plain(self._line)] if self._line else waiting)

    def add(self, text: str) -> None:
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._take(plain(line.rstrip("\r")))

    def end(self) -> None:
        """The reply is over: print what is left."""
        if self._line:
            self._take(plain(self._line))
        self._end_table()
        self._line, self._fence, self._blank = "", "", True

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
            if found := pattern.fullmatch(line):
                show(found)
                return
        indent = line[: len(line) - len(line.lstrip())]
        self._printer.wrapped(inline(line.lstrip(), self._printer.coloured), indent)

    def _open_fence(self, found: re.Match[str]) -> None:
        self._fence = found["marks"]
        self._code = Code(found["language"])
        self._printer.line(Text(found[0], style="dim"))

    def _take_code(self, line: str) -> None:
        bare = line.strip()
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            self._fence = ""
            self._printer.line(Text(line, style="dim"))
        else:
            self._printer.line(self._code.line(line))

    def _heading(self, found: re.Match[str]) -> None:
        text = inline(found["text"], self._printer.coloured)
        text.stylize(HEADING_STYLES.get(len(found["marks"]), "bold italic"))
        self._printer.wrapped(text)

    def _rule(self, _: re.Match[str]) -> None:
        self._printer.line(Text("─" * min(self._printer.columns, 40), style="dim"))

    def _item(self, found: re.Match[str]) -> None:
        mark = found["mark"] if found["mark"][0].isdigit() else "•"
        first = f"{found['indent']}{mark} "
        self._printer.wrapped(inline(found["text"], self._printer.coloured), first, " " * cells(first))

    def _quote(self, found: re.Match[str]) -> None:
        bar = "│ " * found["marks"].count(">")
        text = inline(found["text"], self._printer.coloured)
        text.stylize("italic")
        self._printer.wrapped(text, bar, bar)

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table:
            table.print(self._printer)
            self._blank = False

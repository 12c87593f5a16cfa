"""A box around what needs an answer, drawn line by line."""

from rich.text import Text

from duckflow.ui.console.paper import Paper, rows
from duckflow.ui.plain import plain
from duckflow.ui.width import cells, fitted

WIDEST = 80
INDENT = "  "


class Panel:
    """As wide as the terminal, up to 80 columns; without a border where nothing can be drawn."""

    def __init__(self, paper: Paper, style: str = "yellow") -> None:
        self._paper = paper
        self._style = style
        self._columns = min(WIDEST, paper.columns)

    def top(self, title: str) -> None:
        self._edge("╭", "╮", title)

    def divider(self) -> None:
        self._edge("├", "┤")

    def bottom(self) -> None:
        self._edge("╰", "╯")

    def text(self, text: str, style: str = "", hanging: int = 0) -> None:
        """Words from outside, wrapped inside the border."""
        for line in plain(text).split("\n"):
            self._rows(Text(line, style=style), " " * hanging)

    def bare(self, text: str, style: str = "") -> None:
        """A line without a border: what is copied from the screen stays whole."""
        self._paper.line(Text(plain(text), style=style))

    def _rows(self, text: Text, rest: str) -> None:
        if not self._paper.styled:
            self._paper.wrapped(text, INDENT)
            return
        inside = self._columns - 4
        for number, row in enumerate(rows(text, inside, len(rest))):
            before = rest if number else ""
            space = " " * max(0, inside - len(before) - cells(row.plain))
            self._paper.line(Text.assemble(("│ ", self._style), before, row, space, (" │", self._style)))

    def _edge(self, left: str, right: str, title: str = "") -> None:
        if not self._paper.styled:
            if title:
                self._paper.line(Text(title))
            return
        named = f"─ {fitted(plain(title), self._columns - 6)} " if title else ""
        line = Text(left, style=self._style)
        line.append(named, style="bold" if named else "")
        line.append("─" * (self._columns - 2 - cells(named)) + right)
        self._paper.line(line)

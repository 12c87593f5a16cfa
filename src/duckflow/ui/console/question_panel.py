"""A question as a panel."""

import re

from rich.text import Text

from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted
from duckflow.i18n.words import Words
from duckflow.state.question import GateRequest, Question
from duckflow.ui.console.printer import Printer, rows

WIDEST = 80
INDENT = "  "


class Panel:
    """As wide as the terminal, up to 80 columns; without a border where nothing can be drawn."""

    def __init__(self, printer: Printer, style: str = "yellow") -> None:
        self._printer = printer
        self._style = style
        self._columns = min(WIDEST, printer.columns)

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
        self._printer.line(Text(plain(text), style=style))

    def _rows(self, text: Text, rest: str) -> None:
        if not self._printer.styled:
            self._printer.wrapped(text, INDENT)
            return
        inside = self._columns - 4
        for number, row in enumerate(rows(text, inside, len(rest))):
            before = rest if number else ""
            space = " " * max(0, inside - len(before) - cells(row.plain))
            self._printer.line(Text.assemble(("│ ", self._style), before, row, space, (" │", self._style)))

    def _edge(self, left: str, right: str, title: str = "") -> None:
        if not self._printer.styled:
            if title:
                self._printer.line(Text(title))
            return
        named = f"─ {fitted(plain(title), self._columns - 6)} " if title else ""
        line = Text(left, style=self._style)
        line.append(named, style="bold" if named else "")
        line.append("─" * (self._columns - 2 - cells(named)) + right)
        self._printer.line(line)


STYLES = {"+": "green", "-": "red", "@": "cyan"}
HUNK = re.compile(r"^@@ .* @@", re.MULTILINE)


def diff_style(line: str) -> str:
    """Names of files stand out from what is added and taken away."""
    if line.startswith(("+++ ", "--- ")):
        return "bold"
    return STYLES.get(line[:1], "")


def looks_like_diff(text: str) -> bool:
    return HUNK.search(text) is not None


DIFF_LINES = 60


class QuestionPanel:
    """Shows a question."""

    def __init__(self, printer: Printer, words: Words) -> None:
        self._printer = printer
        self._words = words

    def show(self, question: Question) -> None:
        words, panel = self._words, Panel(self._printer)
        title = words.phrase(question.title)
        duck = words("duck.title", title=title)
        asker = words("job.asks", job=question.job_name) + " " if question.job else ""
        panel.top(asker + (duck if question.kind == "duck_call" else title))
        if question.gate:
            self._gate(panel, question.gate)
        for detail in question.details:
            panel.text(words.phrase(detail), hanging=2)
        panel.divider()
        choices = [f"{number}. {words.phrase(choice.label)}" for number, choice in enumerate(question.choices, 1)]
        for choice in ["   ".join(choices)] if len(choices) == 2 else choices:
            panel.text(choice, style="bold", hanging=3)
        if question.kind == "duck_call":
            panel.text(words("duck.free"), style="dim")
        panel.bottom()

    def _gate(self, panel: Panel, gate: GateRequest) -> None:
        words = self._words
        for intent in gate.intent:
            panel.text(f"{words('gate.intent')}: {intent}", hanging=2)
        if gate.rationale:
            panel.text(f"{words('gate.rationale')}: {gate.rationale}", hanging=2)
        for impact in gate.impacts:
            change = words(f"gate.{impact.change}")
            known = words("gate.tracked" if impact.tracked else "gate.untracked")
            panel.text(f"{change}: {impact.path}  (+{impact.added} −{impact.removed}, {known})", hanging=2)
        if gate.reversible:
            panel.text(words("gate.reversible"), style="dim")
        for alternative in gate.alternatives:
            panel.text(f"{words('gate.alternative')}: {alternative}", hanging=2)
        for reason in gate.reasons:
            panel.text(f"⚠ {words.phrase(reason)}", style="yellow", hanging=2)
        if gate.doubtful:
            panel.text(words("gate.doubtful"), style="yellow")
        self._diff(panel, gate.diff.splitlines())

    def _diff(self, panel: Panel, lines: list[str]) -> None:
        if not lines:
            return
        panel.divider()
        for line in lines[:DIFF_LINES]:
            panel.bare(line, diff_style(line))
        if len(lines) > DIFF_LINES:
            panel.bare(self._words("gate.more", lines=len(lines) - DIFF_LINES), "dim")

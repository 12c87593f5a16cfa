"""A question as a panel. Commands come first and whole, computed facts stand apart from the model's words, and nothing
is hidden."""

from rich.console import Console
from rich.text import Text

from duckflow.i18n.plain import folded, one_line, plain, readable
from duckflow.i18n.width import cells
from duckflow.i18n.words import Words
from duckflow.state.question import FileImpact, GateRequest, Question
from duckflow.ui.console.diff_rows import DiffRows
from duckflow.ui.console.printer import Printer, rows

WIDEST, WIDEST_DIFF = 80, 200
INDENT = "  "
SIGNS = ("$ ", "# ", INDENT)
"""The signs before a command, before a remark about it, and before its further lines."""
QUOTED = "┆ "
"""The sign before every row of the model's own words. No other row has it."""
LONGEST_WORDS = 300
LAST_PAGE = 12
"""The least number of rows on the last page: the answers, and the rows right before them."""
RISK_STYLES = {"low": "dim", "medium": "", "high": "bold yellow", "forbidden": "bold red"}


class Panel:
    """Rows as wide as the terminal, up to a limit. There is no border if the terminal cannot be drawn on."""

    def __init__(self, printer: Printer, widest: int, style: str = "yellow") -> None:
        self.lines: list[Text] = []
        self._style = style
        self._styled = printer.styled
        self._columns = min(widest, printer.columns)

    def top(self, title: str) -> None:
        """Begins the panel. A title that does not fit into the border stands whole in rows below it."""
        if not self._styled or cells(plain(title)) <= self._columns - 6:
            self._edge("╭", "╮", title)
            return
        self._edge("╭", "╮")
        self.text(title, style="bold")

    def divider(self) -> None:
        self._edge("├", "┤")

    def bottom(self) -> None:
        self._edge("╰", "╯")

    def text(self, text: str, style: str = "", hanging: int = 0) -> None:
        """Adds text from outside, wrapped inside the border."""
        for line in plain(text).split("\n"):
            self.row(Text(line, style=style), rest=Text(" " * hanging))

    def choices(self, choices: list[str]) -> None:
        """Adds choices, each in a row of its own. Two of them stand side by side if they fit."""
        side_by_side = "   ".join(choices)
        fit = len(choices) == 2 and cells(plain(side_by_side)) <= self._inner_columns
        for choice in [side_by_side] if fit else choices:
            self.text(choice, style="bold", hanging=3)

    @property
    def _inner_columns(self) -> int:
        return self._columns - (4 if self._styled else len(INDENT))

    def row(self, text: Text, first: Text | None = None, rest: Text | None = None) -> None:
        """Adds wrapped text, with `first` before the first line and `rest` before every further line."""
        first = first or Text()
        rest = rest or Text(" " * cells(first.plain))
        inner_columns = self._inner_columns
        wrapped_rows = rows(text, inner_columns - cells(first.plain), cells(rest.plain) - cells(first.plain))
        for number, row in enumerate(wrapped_rows):
            line = Text.assemble(rest if number else first, row)
            if self._styled:
                space = " " * max(0, inner_columns - cells(line.plain))
                line = Text.assemble(("│ ", self._style), line, space, (" │", self._style))
            else:
                line = Text.assemble(INDENT, line)
            self.lines.append(line)

    def _edge(self, left: str, right: str, title: str = "") -> None:
        if not self._styled:
            if title:
                self.lines.append(Text(title))
            return
        heading = f"─ {plain(title)} " if title else ""
        line = Text(left, style=self._style)
        line.append(heading, style="bold" if heading else "")
        line.append("─" * (self._columns - 2 - cells(heading)) + right)
        self.lines.append(line)


def question_rows(question: Question, printer: Printer, words: Words) -> list[Text]:
    """Returns all rows of the question, ready to be printed."""
    gate = question.gate
    panel = Panel(printer, WIDEST if question.kind == "duck_call" else WIDEST_DIFF)
    title = words.phrase(question.title)
    duck = words("duck.title", title=title)
    asker = words("job.asks", job=question.job_name) + " " if question.job else ""
    panel.top(asker + (duck if question.kind == "duck_call" else title))
    if gate:
        _GateRows(panel, words).put(gate)
    for detail in question.details:
        panel.text(readable(words.phrase(detail), words), hanging=2)
    panel.divider()
    # A question that takes any words has no numbered choices: a number would be words, too.
    is_numbered = question.kind != "text"
    choices = [
        f"{choice.letter or number}. {words.phrase(choice.label)}" if is_numbered else f"· {words.phrase(choice.label)}"
        for number, choice in question.numbered.items()
    ]
    panel.choices([readable(choice, words) for choice in choices])
    if question.kind == "duck_call":
        panel.text(words("duck.free"), style="dim")
    panel.bottom()
    return panel.lines


def duck_rows(text: str, printer: Printer, words: Words) -> list[Text]:
    """Returns the rows of a Duck Call (a call for the user's help) that the model has made itself. The user's next
    message answers it."""
    panel = Panel(printer, WIDEST)
    panel.top(words("duck.title", title=words("duck.asks")))
    for line in text.split("\n"):
        panel.text(folded(line, words), hanging=3 if line[:1].isdigit() else 0)
    panel.divider()
    panel.text(words("duck.own"), style="dim")
    panel.bottom()
    return panel.lines


class _GateRows:
    """The rows of a Gate (a question before a risky action): its commands, the computed facts, the model's words, and
    the diff."""

    def __init__(self, panel: Panel, words: Words) -> None:
        self._panel = panel
        self._words = words

    def put(self, gate: GateRequest) -> None:
        words, panel = self._words, self._panel
        for command in gate.commands:
            self._command(command)
        if gate.commands:
            panel.divider()
        for impact in gate.impacts:
            self._impact(impact)
        if gate.action_ids:
            panel.text(words("gate.risk", level=words(f"gate.risk.{gate.risk}")), style=RISK_STYLES[gate.risk])
        for reason in gate.reasons:
            panel.text(f"⚠ {self._fold(words.phrase(reason))}", style="yellow", hanging=2)
        if gate.doubtful:
            panel.text(words("gate.doubtful"), style="yellow")
        if gate.reversible:
            panel.text(words("gate.reversible_command" if gate.commands else "gate.reversible"), style="dim")
        for reason in gate.lasting:
            panel.text(f"⚠ {self._fold(words.phrase(reason))}", style="yellow", hanging=2)
        for intent in gate.intent:
            self._said("gate.intent", intent)
        self._said("gate.rationale", gate.rationale)
        for alternative in gate.alternatives:
            self._said("gate.alternative", alternative)
        if diff := gate.file_diff:
            panel.divider()
            for row in DiffRows(diff, self._fold):
                panel.row(row.text, row.gutter)

    def _command(self, command: str) -> None:
        for line in readable(command, self._words).split("\n"):
            style = "dim" if line.startswith("# ") else "bold"
            diff_sign = line[:2] if line.startswith(SIGNS) else ""
            self._panel.row(
                Text(line.removeprefix(diff_sign), style=style), Text(diff_sign or INDENT, style="dim"), Text(INDENT)
            )

    def _impact(self, impact: FileImpact) -> None:
        words = self._words
        git_remark = words("gate.tracked" if impact.tracked else "gate.untracked")
        text = Text(f"{words(f'gate.{impact.change}')}: ")
        text.append(self._fold(impact.path), style="bold")
        text.append(f"  (+{impact.added} −{impact.removed}, {git_remark})")
        self._panel.row(text, rest=Text("  "))

    def _said(self, key: str, text: str) -> None:
        if text.strip():
            line = Text(
                f"{self._words(key)}: {self._words('quote', text=one_line(plain(text), self._words, LONGEST_WORDS))}",
                style="italic",
            )
            self._panel.row(line, Text(QUOTED, style="dim"), Text(QUOTED, style="dim"))

    def _fold(self, line: str) -> str:
        return readable(line, self._words)


class QuestionPages:
    """Shows a question. A question that is risky, or that names programs to start, comes in pages if it is longer than
    the screen. Its answers come with the last page."""

    def __init__(self, printer: Printer, words: Words) -> None:
        self._printer = printer
        self._words = words
        self._rows: list[Text] = []

    @property
    def left(self) -> int:
        """The number of rows that have not been shown yet."""
        return len(self._rows)

    def show(self, question: Question) -> None:
        self._rows = question_rows(question, self._printer, self._words)
        gate = question.gate
        is_detailed_choice = question.kind == "choice" and bool(question.details)
        is_risky = is_detailed_choice or (gate is not None and gate.risk in ("high", "forbidden"))
        self.more(whole=not is_risky)

    def more(self, whole: bool = False) -> None:
        """Prints the next page, or with `whole` all remaining rows."""
        page = self._printer.page
        if whole or self.left <= page:
            page = self.left
        elif self.left < page + LAST_PAGE:
            # The answers stay together, and are shown with the last page only.
            page = max(1, self.left - LAST_PAGE)
        shown_rows, self._rows = self._rows[:page], self._rows[page:]
        for row in shown_rows:
            self._printer.line(row)
        if self._rows:
            self._printer.text(self._words("gate.page", rows=self.left), "bold", "… ")

    def close(self) -> None:
        self._rows = []


def print_question(question: Question, words: Words) -> None:
    """Prints the whole question, for a conversation into which nobody types."""
    printer = Printer(Console(highlight=False))
    for row in question_rows(question, printer, words):
        printer.line(row)

"""The screen of a chat: it prints items above the input line."""

import re
from collections import deque

from rich.text import Text

from duckflow.commands.plan_tree import SHOWN_WHEN_CHANGED, job_summary, plan_tree
from duckflow.errors import ended_well
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted
from duckflow.i18n.words import Words
from duckflow.state.action import ActionResult
from duckflow.state.data import WISHED, Phrase
from duckflow.state.question import Question
from duckflow.ui.console.diff_rows import diff_style, looks_like_diff
from duckflow.ui.console.markdown import Markdown
from duckflow.ui.console.printer import Printer, rows
from duckflow.ui.console.question_panel import QuestionPages, duck_rows
from duckflow.ui.console.waiting import ThinkingLine, Wait
from duckflow.view.items import (
    LOUD,
    PASSING,
    ActionItem,
    Item,
    NoticeItem,
    NowItem,
    OutputItem,
    PlanItem,
    ReportItem,
    TextItem,
    TurnItem,
    notice_line,
)

LONGEST_LINE = 400


class OutputLines:
    """A command's output: the first lines are shown as they come, the last lines at the end, with the number of lines
    between them."""

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._last: deque[str] = deque(maxlen=last)
        self._left_out = 0
        self._begun = ""
        self.latest = ""
        self.shown: set[str] = set()
        """The first lines of the output, which are already on the screen."""

    def add(self, text: str, left_out: int = 0) -> list[str]:
        """Adds output, and returns the lines to show now. `left_out` is the number of lines missing before the text."""
        if left_out:
            # The unfinished line may continue in the part that is missing.
            self._begun = ""
            self._first = 0
            self._left_out += left_out
        *lines, unfinished_line = (self._begun + text).split("\n")
        self._begun = unfinished_line if len(unfinished_line) <= LONGEST_LINE else _seen(unfinished_line)
        whole_lines = [_seen(line) for line in lines]
        self.latest = next(
            (line for line in (_seen(unfinished_line), *reversed(whole_lines)) if line.strip()), self.latest
        )
        shown_lines, later_lines = whole_lines[: self._first], whole_lines[self._first :]
        self._first -= len(shown_lines)
        self.shown.update(shown_lines)
        for line in later_lines:
            self._keep(line)
        return shown_lines

    def end(self) -> tuple[int, list[str]]:
        """Returns the number of lines that were left out, and the lines that came after them."""
        if self._begun:
            self._keep(_seen(self._begun))
            self._begun = ""
        return self._left_out, list(self._last)

    def _keep(self, line: str) -> None:
        self._left_out += len(self._last) == self._last.maxlen
        self._last.append(line)


def _seen(line: str) -> str:
    """Returns the line as a terminal would show it: only the last state of a progress bar, cut to a readable length."""
    line = line.rstrip("\r").rpartition("\r")[2]
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


BRANCH = re.compile(r"(?P<lines>[│├└─ ]*)(?P<mark>[○▶✓✗?] )?(?P<number>\d+\. )?")
TABLE_ROW = re.compile(r"[\w/]\S* {2,}")
"""Matches the first column of a row, such as a command in `/help`."""
STYLES = {"✓": "green", "✗": "red", "▶": "bold yellow", "?": "yellow"}
BELOW = str.maketrans({"├": "│", "└": " ", "─": " "})


def print_lines(text: str, printer: Printer) -> None:
    """Prints lines, rows of a table and branches of a tree. A long line continues below its own beginning, a row below
    its second column."""
    for line in plain(text).split("\n"):
        if (row := TABLE_ROW.match(line)) and cells(row[0]) < printer.columns // 2:
            printer.wrapped(Text(line[len(row[0]) :]), row[0])
            continue
        branch = BRANCH.match(line)
        begin = branch[0] if branch else ""
        lines = branch["lines"] if branch else ""
        step_mark = (branch["mark"] or "") if branch and lines.strip() else ""
        text_of_line = Text(line[len(begin) :], style=STYLES.get(step_mark[:1], ""))
        printer.wrapped(text_of_line, begin, lines.translate(BELOW) + " " * (len(begin) - len(lines)))


OUTPUT_LINES = {True: (3, 5), False: (20, 10)}
"""The number of first and last lines of a command that are shown: for a job (True), and for the conversation itself
(False)."""
LIVE_ROWS = 8
TOLD = PASSING | {"again"}
WRITTEN_BY_MODEL = {"gate.explained", "step.answers"}
"""The notices that quote a model's answer, which is Markdown."""
ECHOED_LINES = 12


class Screen:
    """Shows the part of every item that a person wants to see."""

    def __init__(self, printer: Printer, words: Words) -> None:
        self._printer = printer
        self._words = words
        self._reply = Markdown(printer)
        self._streamed = ""
        self._outputs: dict[str, tuple[str, OutputLines]] = {}
        """The output of running commands, each with the name of the job that runs it."""
        self._ended: dict[str, tuple[int, frozenset[str]]] = {}
        """For each job whose command has just ended: the number of lines that are not shown, and the lines that are
        shown."""
        self._held: tuple[str, Phrase] | None = None
        """The Gate and the sentence about the action that was shown last, if it was held back for a wish."""
        self._loop = 0
        self.wait = Wait(words, printer.glyphs)
        self.thoughts = ThinkingLine()
        self.question = QuestionPages(printer, words)
        self._held_back: list[Item] = []

    def draw(self, item: Item) -> None:
        """Draws an item. While the box of a question is only half shown, the item waits, and is drawn below the box
        later."""
        if self.question.left:
            self._held_back.append(item)
        else:
            self.catch_up()
            self._show(item)

    def catch_up(self) -> None:
        """Draws the waiting items, once the box of the question is complete or gone."""
        while self._held_back and not self.question.left:
            self._show(self._held_back.pop(0))

    def _show(self, item: Item) -> None:
        match item:
            case TextItem():
                self._write(item)
            case OutputItem():
                self._show_output(item)
            case NowItem():
                self._look(item)
            case ActionItem(result=None):
                if item.state == "running" and item.doing and not item.job and item.effect != "talk":
                    # Text that came before the action is completed first, so that it stands above its output.
                    self._reply.end()
            case ActionItem(result=result) if result and result.said is None:
                self._show_result(item, result)
            case NoticeItem(about="ended", what=why, outcome=outcome) if why and outcome:
                (self.say if ended_well(outcome) else self.warn)(self._words.phrase(why))
            case NoticeItem(what=what) if what and what.key in WRITTEN_BY_MODEL:
                self._print_markdown(notice_line(item, self._words))
            case NoticeItem():
                if item.about in TOLD and (line := notice_line(item, self._words)):
                    is_alarm = item.what is not None and item.what.key in LOUD
                    (self.alarm if is_alarm else self.note)(line)
            case PlanItem(active=True, plan=plan) if plan.status in SHOWN_WHEN_CHANGED:
                print_lines(plan_tree(plan, self._words), self._printer)
            case ReportItem():
                self._print_markdown(job_summary(item.job_name, item.status, item.report, self._words))
            case TurnItem(outcome=None):
                self.thoughts.begin()
                self.wait.begin()
            case TurnItem():
                self.wait.end()
            case _:
                pass

    def _print_markdown(self, text: str) -> None:
        markdown = Markdown(self._printer)
        markdown.add(text)
        markdown.end()

    def moves(self) -> bool:
        """Says whether work is going on whose lines must be redrawn in a moment."""
        return self.wait.going_on or bool(self._outputs)

    def written(self, columns: int) -> list[str]:
        """Returns the last rows of the reply that is being written."""
        lines = self._reply.unfinished.split("\n")
        return [row.plain for line in lines if line for row in rows(Text(line), columns - 1)][-LIVE_ROWS:]

    def live(self, columns: int) -> list[str]:
        """Returns lines about the work that is waited for, and the output of running commands."""
        lines = [self._printer.glyphs.fit(line) for line in self.thoughts.lines(columns)]
        lines += [self.wait.line(columns)] if self.wait.going_on else []
        for name, output in self._outputs.values():
            if output.latest:
                prefix = f"⚙ {name} │ " if name else "  │ "
                lines.append(self._printer.glyphs.fit(fitted(plain(prefix + output.latest), columns - 1)))
        return lines

    def say(self, text: str) -> None:
        """Prints Duckflow's own words."""
        if not looks_like_diff(text):
            print_lines(text, self._printer)
            return
        for line in plain(text).split("\n"):
            self._printer.line(Text(line, style=diff_style(line)))

    def note(self, text: str) -> None:
        self._printer.text(text, "dim", "· ", "  ")

    def user(self, text: str) -> None:
        """Prints a message of the user; of a long paste only the beginning. A plain terminal has already shown the
        message."""
        if not self._printer.styled:
            return
        lines = text.split("\n")
        self._printer.line(Text())
        self._printer.text("\n".join(lines[:ECHOED_LINES]), "bold", "› ", "  ")
        if len(lines) > ECHOED_LINES:
            self._printer.text(self._words("gate.more", lines=len(lines) - ECHOED_LINES), "dim", "  ")

    def alarm(self, text: str) -> None:
        self._printer.text(text, "bold red", "⚠ ", "  ")

    def warn(self, text: str) -> None:
        self._printer.text(text, "yellow")

    def ask(self, question: Question) -> None:
        self._reply.end()
        self.question.show(question)

    def _look(self, item: NowItem) -> None:
        if item.loop != self._loop:
            self.thoughts.begin()
        self._loop = item.loop
        self.wait.doing, self.wait.work = item.doing, item.work
        self.wait.spend(item.turn_usage)

    def _write(self, item: TextItem) -> None:
        if item.state == "streaming":
            self.wait.hear(item.piece)
        if item.by == "thought":
            self._think(item)
        elif item.by != "model":
            return
        elif item.state == "streaming":
            self._streamed += item.piece
            self._reply.add(item.piece)
        elif item.duck:
            self._call_duck(item.text)
        else:
            if item.piece:
                self._reply.end()
                self._reply.add(item.piece)
            self._reply.end()
            self._streamed = ""

    def _think(self, item: TextItem) -> None:
        if item.state == "streaming":
            self.thoughts.hear(item.piece)
        elif item.state == "whole" and (tokens := self.thoughts.end()):
            self.note(self._words("thoughts.over", tokens=tokens))

    def _show_result(self, item: ActionItem, result: ActionResult) -> None:
        left_out_count, shown_lines = self._ended.pop(item.job, (0, frozenset()))
        told_before, self._held = self._held, (item.gate, result.for_user) if result.for_user.key == WISHED else None
        if self._held and self._held == told_before:
            # One sentence tells of all actions of a Gate that wait for the same wish.
            return
        if item.by_agent and result.ok and result.effect == "read":
            # The reads of an agent are not printed, because there may be very many. The status line shows them.
            return
        self._reply.end()
        if left_out_count and result.for_user.cause:
            # The screen shows only the beginning and the end; the cause of the failure stood between them.
            lines = [line for line in result.for_user.cause.split("\n") if line not in shown_lines]
            self._print_output([self._words("output.cause"), *lines] if lines else [])
        prefix = f"⚙ {item.job_name}: " if item.job else ""
        (self.note if result.ok else self.warn)(prefix + self._words.phrase(result.for_user))

    def _call_duck(self, text: str) -> None:
        """Shows a Duck Call (a call for the user's help) of the model itself in the same way as one of the Pacemaker.
        Text that was printed while the call was written stays."""
        streamed_text, self._streamed = self._streamed, ""
        printed_text = streamed_text if "\n" in streamed_text or not text.startswith(streamed_text) else ""
        if not printed_text:
            self._reply.drop()
        self._reply.end()
        for row in duck_rows(text.removeprefix(printed_text).strip(), self._printer, self._words):
            self._printer.line(row)

    def _show_output(self, item: OutputItem) -> None:
        if item.over:
            self._reply.end()
            self._ended[item.job] = self._end_output(item)
            return
        line_limits = (0, 0) if item.by_agent else OUTPUT_LINES[bool(item.job)]
        _, output = self._outputs.setdefault(item.job, (item.job_name, OutputLines(*line_limits)))
        self._print_output(output.add(item.piece, item.left_out))

    def _end_output(self, item: OutputItem) -> tuple[int, frozenset[str]]:
        """Prints the remaining output after the command has ended, if its output is shown at all. Returns the number of
        lines that were left out, and all lines that are shown."""
        _, output = self._outputs.pop(item.job, ("", OutputLines(0, 0)))
        left_out_count, lines = output.end()
        if item.by_agent:
            return left_out_count, frozenset()
        self._print_output(([self._words("output.left_out", lines=left_out_count)] if left_out_count else []) + lines)
        return left_out_count, frozenset(output.shown.union(lines))

    def _print_output(self, lines: list[str]) -> None:
        for line in lines:
            self._printer.line(Text(plain(f"  │ {line}"), style="dim"))

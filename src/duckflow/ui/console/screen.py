"""What stands on the screen."""

import re
from collections import deque

from rich.text import Text

from duckflow.commands.plan_tree import SHOWN_WHEN_CHANGED, job_summary, plan_tree
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.outcome import ended_well
from duckflow.state.action import ActionResult
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
    """The first lines as they come, the last ones at the end, and how many lie between them."""

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._last: deque[str] = deque(maxlen=last)
        self._left_out = 0
        self._begun = ""
        self.latest = ""
        self.shown: set[str] = set()
        """The first lines."""

    def add(self, text: str, left_out: int = 0) -> list[str]:
        """The lines to show now. `left_out`: lines before the text that were not handed on."""
        if left_out:
            # What was begun cannot be told from what is missing.
            self._begun = ""
            self._first = 0
            self._left_out += left_out
        *lines, rest = (self._begun + text).split("\n")
        self._begun = rest if len(rest) <= LONGEST_LINE else _seen(rest)
        whole = [_seen(line) for line in lines]
        self.latest = next((line for line in (_seen(rest), *reversed(whole)) if line.strip()), self.latest)
        shown, kept = whole[: self._first], whole[self._first :]
        self._first -= len(shown)
        self.shown.update(shown)
        for line in kept:
            self._keep(line)
        return shown

    def end(self) -> tuple[int, list[str]]:
        """How many lines were left out, and those that came after them."""
        if self._begun:
            self._keep(_seen(self._begun))
            self._begun = ""
        return self._left_out, list(self._last)

    def _keep(self, line: str) -> None:
        self._left_out += len(self._last) == self._last.maxlen
        self._last.append(line)


def _seen(line: str) -> str:
    """What would stand in a terminal: what a progress bar printed last, and not more than a person reads."""
    line = line.rstrip("\r").rpartition("\r")[2]
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


BRANCH = re.compile(r"(?P<lines>[│├└─ ]*)(?P<mark>[○▶✓✗?] )?(?P<number>\d+\. )?")
STYLES = {"✓": "green", "✗": "red", "▶": "bold yellow", "?": "yellow"}
BELOW = str.maketrans({"├": "│", "└": " ", "─": " "})


def print_lines(text: str, printer: Printer) -> None:
    """Lines, and branches of a tree: what is too long goes on below its own beginning."""
    for line in plain(text).split("\n"):
        found = BRANCH.match(line)
        begin = found[0] if found else ""
        lines = found["lines"] if found else ""
        mark = (found["mark"] or "") if found and lines.strip() else ""
        told = Text(line[len(begin) :], style=STYLES.get(mark[:1], ""))
        printer.wrapped(told, begin, lines.translate(BELOW) + " " * (len(begin) - len(lines)))


OUTPUT_LINES = {True: (3, 5), False: (20, 10)}
"""How many of a command's first and last lines are shown: of a job's, of the conversation's own."""
LIVE_ROWS = 8
TOLD = PASSING | {"again"}
ECHOED_LINES = 12


class Screen:
    """Shows of every item what a person wants to see of it."""

    def __init__(self, printer: Printer, words: Words) -> None:
        self._printer = printer
        self._words = words
        self._reply = Markdown(printer)
        self._streamed = ""
        self._outputs: dict[str, tuple[str, OutputLines]] = {}
        """What commands print just now, with the name of the job that runs them."""
        self._ended: dict[str, tuple[int, frozenset[str]]] = {}
        """Of the command of each job that has just ended: how many lines are not shown, and those that are."""
        self._loop = 0
        self.wait = Wait(words, printer.glyphs)
        self.thoughts = ThinkingLine()
        self.question = QuestionPages(printer, words)
        self._held_back: list[Item] = []

    def draw(self, item: Item) -> None:
        """What happens while the box of a question is half shown is drawn below it."""
        if self.question.left:
            self._held_back.append(item)
        else:
            self.catch_up()
            self._show(item)

    def catch_up(self) -> None:
        """Draws what was held back, when the box is complete or gone."""
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
                    # What was said before it stands before all that it shows.
                    self._reply.end()
            case ActionItem(result=result) if result and result.said is None:
                self._show_result(item, result)
            case NoticeItem(about="ended", what=why, outcome=outcome) if why and outcome:
                (self.say if ended_well(outcome) else self.warn)(self._words.phrase(why))
            case NoticeItem():
                if item.about in TOLD and (line := notice_line(item, self._words)):
                    loud = item.what is not None and item.what.key in LOUD
                    (self.alarm if loud else self.note)(line)
            case PlanItem(active=True, plan=plan) if plan.status in SHOWN_WHEN_CHANGED:
                print_lines(plan_tree(plan, self._words), self._printer)
            case ReportItem():
                report = Markdown(self._printer)
                report.add(job_summary(item.job_name, item.status, item.report, self._words))
                report.end()
            case TurnItem(outcome=None):
                self.thoughts.begin()
                self.wait.begin()
            case TurnItem():
                self.wait.end()
            case _:
                pass

    def moves(self) -> bool:
        """Whether something is going on that looks different a moment later."""
        return self.wait.going_on or bool(self._outputs)

    def written(self, columns: int) -> list[str]:
        """The last rows of what is being written."""
        lines = self._reply.unfinished.split("\n")
        return [row.plain for line in lines if line for row in rows(Text(line), columns - 1)][-LIVE_ROWS:]

    def live(self, columns: int) -> list[str]:
        """What is being waited for, and what commands print just now."""
        lines = [self._printer.glyphs.fit(line) for line in self.thoughts.lines(columns)]
        lines += [self.wait.line(columns)] if self.wait.going_on else []
        for name, output in self._outputs.values():
            if output.latest:
                whose = f"⚙ {name} │ " if name else "  │ "
                lines.append(self._printer.glyphs.fit(fitted(plain(whose + output.latest), columns - 1)))
        return lines

    def say(self, text: str) -> None:
        """Duckflow's own words."""
        if not looks_like_diff(text):
            print_lines(text, self._printer)
            return
        for line in plain(text).split("\n"):
            self._printer.line(Text(line, style=diff_style(line)))

    def note(self, text: str) -> None:
        self._printer.text(text, "dim", "· ", "  ")

    def user(self, text: str) -> None:
        """What the user said, of a long paste the beginning; where nothing is drawn over it stands there already."""
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
        left_out, shown = self._ended.pop(item.job, (0, frozenset()))
        if item.by_agent and result.ok and result.effect == "read":
            # What an agent looks at is in its line while it does; there may be very much of it.
            return
        self._reply.end()
        if left_out and result.for_user.cause:
            # The screen has shown the beginning and the end; why it failed stood between them.
            self._print_output([line for line in result.for_user.cause.split("\n") if line not in shown])
        whose = f"⚙ {item.job_name}: " if item.job else ""
        (self.note if result.ok else self.warn)(whose + self._words.phrase(result.for_user))

    def _call_duck(self, text: str) -> None:
        """The model's own call looks like the Pacemaker's. What of it has been printed while it was written stays."""
        streamed, self._streamed = self._streamed, ""
        printed = streamed if "\n" in streamed or not text.startswith(streamed) else ""
        if not printed:
            self._reply.drop()
        self._reply.end()
        for row in duck_rows(text.removeprefix(printed).strip(), self._printer, self._words):
            self._printer.line(row)

    def _show_output(self, item: OutputItem) -> None:
        if item.over:
            self._reply.end()
            self._ended[item.job] = self._end_output(item)
            return
        shown = (0, 0) if item.by_agent else OUTPUT_LINES[bool(item.job)]
        _, output = self._outputs.setdefault(item.job, (item.job_name, OutputLines(*shown)))
        self._print_output(output.add(item.piece, item.left_out))

    def _end_output(self, item: OutputItem) -> tuple[int, frozenset[str]]:
        """The command has ended: what was held back of its output, as far as it is shown at all; how much is not, and
        all the lines that are."""
        _, output = self._outputs.pop(item.job, ("", OutputLines(0, 0)))
        left_out, lines = output.end()
        if item.by_agent:
            return left_out, frozenset()
        self._print_output(([self._words("output.left_out", lines=left_out)] if left_out else []) + lines)
        return left_out, frozenset(output.shown.union(lines))

    def _print_output(self, lines: list[str]) -> None:
        for line in lines:
            self._printer.line(Text(plain(f"  │ {line}"), style="dim"))

"""What stands on the screen."""

import re
from collections import deque
from collections.abc import Iterable

from rich.text import Text

from duckflow.commands.lines import intervention_line, review_line
from duckflow.commands.plan_tree import SHOWN_WHEN_CHANGED, job_summary, plan_tree, told_evidence
from duckflow.events import types as happened
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.outcome import ended_well
from duckflow.state.action import DUCK_CALL
from duckflow.state.job import Job
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question
from duckflow.ui.console.diff_rows import diff_style, looks_like_diff
from duckflow.ui.console.markdown import Markdown
from duckflow.ui.console.printer import Printer, rows
from duckflow.ui.console.question_panel import QuestionPages, duck_rows
from duckflow.ui.console.waiting import ThinkingLine, Wait
from duckflow.ui.headless import RETRY

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
ECHOED_LINES = 12


class Screen:
    """Hears every event and shows what a person wants to see of it."""

    def __init__(self, printer: Printer, words: Words) -> None:
        self._printer = printer
        self._words = words
        self._reply = Markdown(printer)
        self._streamed: list[str] = []
        self._outputs: dict[str, OutputLines] = {}
        self.wait = Wait(words, printer.glyphs)
        self.thoughts = ThinkingLine()
        self.question = QuestionPages(printer, words)
        self._jobs: dict[str, str] = {}
        self._agents: set[str] = set()
        """Of what these do only the outcome is printed."""

    def know(self, jobs: Iterable[Job], agents: Iterable[str] = ()) -> None:
        """Those of before, by their names."""
        self._jobs |= {job.job_id: job.name for job in jobs}
        self._agents.update(agents)

    def hear(self, event: happened.Event) -> None:
        match event:
            case happened.TurnBegan():
                self.wait.begin()
            case happened.LoopBegan():
                self._reply.end()
                self._streamed = []
                self.thoughts.begin()
                self.wait.work = event.profile
            case happened.Intervened():
                self.note(intervention_line(event, self._words))
            case happened.Reviewed() if event.review.by == "model":
                self.note(review_line(event.review, self._words))
            case happened.Waiting():
                self.wait.doing = event.why
                if event.why.key.startswith(RETRY):
                    self.note(self._words.phrase(event.why))
            case happened.ModelChosen():
                self.note(f"{event.model}: {self._words.phrase(event.why)}")
            case happened.TextStreamed():
                self._stream(event)
            case happened.UsageReported():
                self.wait.spend(event.usage)
            case happened.OutputStreamed():
                self._show_output(event)
            case happened.StreamReset():
                self._reply.end()
                if self._streamed:
                    self.note(self._words("stream.again"))
                self._streamed = []
            case happened.ReplyRejected():
                self._reply.end()
                # That it is asked again is told once.
                self._streamed = []
                self.note(self._words("reply.rejected", reason=event.reason))
            case happened.PlanChanged() if event.active and event.plan.status in SHOWN_WHEN_CHANGED:
                print_lines(plan_tree(event.plan, self._words), self._printer)
            case happened.JobStarted():
                self._jobs[event.job.job_id] = event.job.name
            case happened.AgentStarted():
                self._agents.add(event.agent.agent_id)
            case happened.JobEnded():
                self._end_output(event.job_id)
                name = self._jobs.get(event.job_id, event.job_id)
                self.say(job_summary(name, event.status, event.report, self._words))
            case happened.ActionStarted() if event.doing and not event.job:
                self.wait.doing = event.doing
                if event.effect != "talk":
                    # What was said before it stands before all that it shows.
                    self._reply.end()
            case happened.ActionStarted() if event.job in self._agents:
                self.wait.doing = Phrase(key="wait.agents")
            case happened.ActionFinished():
                self._show_result(event)
            case happened.Noticed():
                self.note(told_evidence(self._words.phrase(event.what), self._words))
            case happened.TurnEnded():
                self._end(event)
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
        for job, output in self._outputs.items():
            if output.latest:
                whose = f"⚙ {self._jobs.get(job, job)} │ " if job else "  │ "
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

    def warn(self, text: str) -> None:
        self._printer.text(text, "yellow")

    def ask(self, question: Question) -> None:
        self.wait.doing = Phrase(key="wait.you")
        self._reply.end()
        self.question.show(question)

    def _stream(self, event: happened.TextStreamed) -> None:
        self.wait.hear(event.text)
        if event.channel == "think":
            self.thoughts.hear(event.text)
        elif tokens := self.thoughts.end():
            self.note(self._words("thoughts.over", tokens=tokens))
        if event.channel == "say":
            self._streamed.append(event.text)
            self._reply.add(event.text)

    def _show_result(self, event: happened.ActionFinished) -> None:
        result = event.result
        if (text := result.said) is not None:
            if result.operation == DUCK_CALL:
                self._call_duck(text)
                return
            if text not in "".join(self._streamed):
                self._reply.end()
                self._reply.add(text)
            self._reply.end()
            return
        if event.job in self._agents and result.ok and result.effect == "read":
            # What an agent looks at is in its line while it does; there may be very much of it.
            return
        self._reply.end()
        left_out, shown = self._end_output(event.job)
        if left_out and result.for_user.cause:
            # The screen has shown the beginning and the end; why it failed stood between them.
            self._print_output([line for line in result.for_user.cause.split("\n") if line not in shown])
        whose = f"⚙ {self._jobs.get(event.job, event.job)}: " if event.job else ""
        (self.note if result.ok else self.warn)(whose + self._words.phrase(result.for_user))

    def _call_duck(self, text: str) -> None:
        """The model's own call looks like the Pacemaker's. What of it has been printed while it was written stays."""
        streamed = "".join(self._streamed)
        printed = streamed if "\n" in streamed or not text.startswith(streamed) else ""
        if not printed:
            self._reply.drop()
        self._reply.end()
        for row in duck_rows(text.removeprefix(printed).strip(), self._printer, self._words):
            self._printer.line(row)

    def _show_output(self, event: happened.OutputStreamed) -> None:
        shown = (0, 0) if event.job in self._agents else OUTPUT_LINES[bool(event.job)]
        output = self._outputs.setdefault(event.job, OutputLines(*shown))
        self._print_output(output.add(event.text, event.left_out))

    def _end_output(self, job: str) -> tuple[int, set[str]]:
        """The command has ended: what was held back of its output, as far as it is shown at all; how much is not, and
        all the lines that are."""
        if (output := self._outputs.pop(job, None)) is None:
            return 0, set()
        left_out, lines = output.end()
        if job in self._agents:
            return left_out, set()
        self._print_output(([self._words("output.left_out", lines=left_out)] if left_out else []) + lines)
        return left_out, output.shown.union(lines)

    def _print_output(self, lines: list[str]) -> None:
        for line in lines:
            self._printer.line(Text(plain(f"  │ {line}"), style="dim"))

    def _end(self, event: happened.TurnEnded) -> None:
        self._reply.end()
        self._end_output("")
        self.wait.end()
        if event.why:
            text = self._words.phrase(event.why)
            (self.say if ended_well(event.outcome) else self.warn)(text)

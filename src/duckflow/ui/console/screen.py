"""Prints the conversation as it happens: finished lines above the prompt, the line in the making beside the spinner."""

import time

from rich.console import Console
from rich.text import Text

from duckflow.events import types as happened
from duckflow.state.phrase import Phrase
from duckflow.state.question import GateRequest, Question
from duckflow.ui.console.feed import Feed
from duckflow.ui.headless import RETRY
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain
from duckflow.ui.plan_tree import job_summary, plan_tree

TALK = frozenset({"response", "duck_call", "exit"})
DIFF_LINES = 60
OUTPUT_LINES = {True: (3, 5), False: (20, 10)}
"""How many of a command's first and last lines are shown: of a job's, of the conversation's own."""
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class Screen:
    """Hears every event and shows what a person wants to see of it."""

    def __init__(self, console: Console, words: Words) -> None:
        self._console = console
        self._words = words
        self._line = ""
        self._streamed = ""
        self._feeds: dict[str, Feed] = {}
        self._busy_since = 0.0
        self._doing: Phrase | None = None
        self._jobs: dict[str, str] = {}

    def hear(self, event: happened.Event) -> None:
        match event:
            case happened.TurnBegan():
                self._busy_since = time.monotonic()
            case happened.LoopBegan():
                self._line, self._streamed = "", ""
            case happened.Waiting():
                self._doing = event.why
                if event.why.key.startswith(RETRY):
                    self.note(self._words.phrase(event.why))
            case happened.ModelChosen():
                self.note(f"{event.model}: {self._words.phrase(event.why)}")
            case happened.TextStreamed() if event.channel == "say":
                self._stream(event.text)
            case happened.OutputStreamed():
                self._show_output(event)
            case happened.StreamReset():
                if self._streamed:
                    self.note(self._words("stream.again"))
                self._line, self._streamed = "", ""
            case happened.ReplyRejected():
                self.note(self._words("reply.rejected", reason=event.reason))
            case happened.GateOpened() | happened.DuckCalled():
                self._doing = Phrase(key="wait.you")
            case happened.PlanChanged() if event.active and event.plan.status in ("draft", "in_progress"):
                self.say(plan_tree(event.plan, self._words))
            case happened.JobStarted():
                self._jobs[event.job.job_id] = event.job.name
            case happened.JobEnded():
                self._end_output(event.job_id)
                name = self._jobs.get(event.job_id, event.job_id)
                self.say(job_summary(name, event.status, event.report, self._words))
            case happened.ActionStarted() if event.action.operation not in TALK and not event.job:
                self._doing = Phrase(key="wait.action", values={"operation": event.action.operation})
            case happened.ActionFinished():
                self._show_result(event)
            case happened.Noticed():
                self.note(self._words.phrase(event.what))
            case happened.TurnEnded():
                self._end(event)
            case _:
                pass

    def live(self) -> str:
        """The line in the making, or what is being waited for; and what commands of jobs print just now."""
        lines = [self._running(job, feed.latest) for job, feed in self._feeds.items() if job and feed.latest]
        return "\n".join([*lines, line] if (line := self._in_the_making()) else lines)

    def _in_the_making(self) -> str:
        if not self._busy_since:
            return ""
        if self._line:
            return plain(self._line)
        seconds = int(time.monotonic() - self._busy_since)
        doing = self._words.phrase(self._doing) if self._doing else ""
        spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(time.monotonic() * 8) % 10]
        latest = self._feeds[""].latest if "" in self._feeds else ""
        return self._one_line(f"{spinner} {doing} {seconds}s" + (f" │ {latest}" if latest else ""))

    def _running(self, job: str, latest: str) -> str:
        return self._one_line(f"⚙ {self._jobs.get(job, job)} │ {latest}")

    def _one_line(self, text: str) -> str:
        line = Text(plain(text))
        line.truncate(max(1, self._console.width - 1), overflow="ellipsis")
        return line.plain

    def say(self, text: str) -> None:
        self._console.print(Text(plain(text)))

    def note(self, text: str) -> None:
        self._console.print(Text(plain(f"· {text}"), style="dim"))

    def user(self, text: str) -> None:
        self._console.print(Text(plain(f"› {text}"), style="bold"))

    def warn(self, text: str) -> None:
        self._console.print(Text(plain(text), style="yellow"))

    def ask(self, question: Question) -> None:
        """The Gate with its five points, or a Duck Call with its findings; then how to answer."""
        if question.job:
            self.warn(self._words("job.asks", job=question.job_name))
        if question.gate:
            self._show_gate(self._words.phrase(question.title), question.gate)
        else:
            self._console.print(Text(f"🦆 {self._words.phrase(question.title)}", style="bold yellow"))
            for detail in question.details:
                self._console.print(Text(plain(f"  {self._words.phrase(detail)}")))
        gap = "  " if len(question.choices) == 2 else "\n"
        choices = gap.join(f"{n}. {self._words.phrase(c.label)}" for n, c in enumerate(question.choices, 1))
        self._console.print(Text(choices, style="bold yellow"))
        if question.kind == "duck_call":
            self.note(self._words("duck.free"))

    def _stream(self, text: str) -> None:
        self._streamed += text
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self.say(line)

    def _show_result(self, event: happened.ActionFinished) -> None:
        result = event.result
        if result.operation in TALK and result.ok:
            text = str(result.for_user.values.get("text", ""))
            if text in self._streamed:
                self._flush()
            else:
                self.say(text)
            return
        self._flush()
        self._end_output(event.job)
        whose = f"⚙ {self._jobs.get(event.job, event.job)}: " if event.job else ""
        (self.note if result.ok else self.warn)(whose + self._words.phrase(result.for_user))

    def _show_output(self, event: happened.OutputStreamed) -> None:
        feed = self._feeds.setdefault(event.job, Feed(*OUTPUT_LINES[bool(event.job)]))
        self._print_output(feed.add(event.text, event.left_out))

    def _end_output(self, job: str) -> None:
        """The command has ended: what was held back of its output, as far as it is shown at all."""
        if feed := self._feeds.pop(job, None):
            left_out, lines = feed.end()
            self._print_output(([self._words("output.left_out", lines=left_out)] if left_out else []) + lines)

    def _print_output(self, lines: list[str]) -> None:
        for line in lines:
            self._console.print(Text(plain(f"  │ {line}"), style="dim"), soft_wrap=True)

    def _flush(self) -> None:
        if self._line:
            self.say(self._line)
        self._line = ""

    def _end(self, event: happened.TurnEnded) -> None:
        self._flush()
        self._end_output("")
        self._busy_since, self._doing = 0.0, None
        if event.why:
            text = self._words.phrase(event.why)
            (self.say if event.outcome in ("done", "pending_user", "deferred") else self.warn)(text)

    def _show_gate(self, title: str, gate: GateRequest) -> None:
        print_text = self._console.print
        print_text(Text(title, style="bold yellow"))
        for intent in gate.intent:
            print_text(Text(plain(f"  {self._words('gate.intent')}: {intent}")))
        if gate.rationale:
            print_text(Text(plain(f"  {self._words('gate.rationale')}: {gate.rationale}")))
        for impact in gate.impacts:
            change = self._words(f"gate.{impact.change}")
            known = self._words("gate.tracked" if impact.tracked else "gate.untracked")
            print_text(Text(plain(f"  {change}: {impact.path}  (+{impact.added} −{impact.removed}, {known})")))
        if gate.reversible:
            print_text(Text(f"  {self._words('gate.reversible')}", style="dim"))
        for alternative in gate.alternatives:
            print_text(Text(plain(f"  {self._words('gate.alternative')}: {alternative}")))
        for reason in gate.reasons:
            print_text(Text(plain(f"  ⚠ {self._words.phrase(reason)}"), style="yellow"))
        if gate.doubtful:
            print_text(Text(f"  {self._words('gate.doubtful')}", style="yellow"))
        lines = gate.diff.splitlines()
        for line in lines[:DIFF_LINES]:
            # Code is not wrapped at words: what is copied from the screen stays whole.
            print_text(Text(plain(line), style=DIFF_STYLES.get(line[:1], "")), soft_wrap=True)
        if len(lines) > DIFF_LINES:
            print_text(Text(self._words("gate.more", lines=len(lines) - DIFF_LINES), style="dim"))

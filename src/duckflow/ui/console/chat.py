"""The chat: what is typed answers an open question, is a command, or is the next message."""

import asyncio
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from duckflow import __version__
from duckflow.commands.command import CommandContext, Quit, Say, Switch
from duckflow.commands.desk import Desk
from duckflow.commands.table import Commands
from duckflow.events.types import Event, OutputStreamed
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.safety.answers import read_answer
from duckflow.safety.mode import Mode
from duckflow.state.question import Question
from duckflow.ui.console.completion import LineCompletions
from duckflow.ui.console.errands import Errands
from duckflow.ui.console.listener import Fragments, Line
from duckflow.ui.console.paper import Paper
from duckflow.ui.console.questions import Questions
from duckflow.ui.console.screen import Screen
from duckflow.ui.console.status_bar import job_progress, status_bar
from duckflow.ui.settings import UiSettings

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

REFRESH = 0.1
LAST_WORDS_SECONDS = 2


class Chat:
    """Listens to the input line; the conversation runs behind it."""

    def __init__(self, words: Words, line: Line, settings: UiSettings, commands: Commands | None = None) -> None:
        self._words = words
        self._line = line
        self._slash = commands or Commands()
        self._paper = Paper(Console(no_color=not settings.color or None, highlight=False), settings.ascii)
        words.emoji = settings.emoji and not self._paper.glyphs.plain
        self.screen = Screen(self._paper, words)
        self.questions = Questions(self.screen, words, line.lend)
        self._desk: Desk | None = None
        self._waiting: list[str] = []
        self._errands = Errands(words, self._paper.glyphs, self.screen.warn)
        self._completions = LineCompletions(self._slash, words, lambda: self._desk.state.folder if self._desk else ".")
        self._turn: asyncio.Task[Any] | None = None
        self.switching: asyncio.Future[Switch] = asyncio.get_running_loop().create_future()

    def hear(self, event: Event) -> None:
        self.screen.hear(event)
        # What commands print is drawn by the animation: they may print faster than a screen can be drawn.
        if not isinstance(event, OutputStreamed):
            self._line.redraw()

    def open(self, desk: Desk, first: str, opening: Iterable[str] = ()) -> None:
        """Greet, say how far it had come, and take what was typed meanwhile."""
        self._desk = desk
        self.screen.say(self._words("chat.hello", version=__version__, folder=desk.state.folder))
        for text in opening:
            self.screen.say(text)
        for job in (job for job in desk.state.jobs.values() if job.status == "interrupted"):
            self.screen.note(self._words("job.interrupted", job=job.name))
        if first:
            self._submit(first)
        self._line.listen(self)

    async def animate(self) -> None:
        """Keep the spinner turning while something is going on; an idle chat costs nothing."""
        while True:
            await asyncio.sleep(REFRESH)
            if self.screen.moves() or self._errands:
                self._line.redraw()

    async def close(self) -> None:
        self.interrupt()
        if self._turn:
            await asyncio.wait([self._turn], timeout=LAST_WORDS_SECONDS)
        await self._errands.rest(LAST_WORDS_SECONDS)

    def take(self, text: str) -> None:
        text = text.strip()
        if not text or self._desk is None:
            return
        shown = self.questions.shown
        if shown and not self._beside(shown, text):
            self.questions.answer(text)
        elif text.startswith(("/", "／")):
            self.screen.user(text)
            command = "/" + unicodedata.normalize("NFKC", text[1:])
            self._errands.start(command.split()[0], self._command(command, self._desk))
        elif text.startswith(("!", "！")) and text[1:].strip():
            self.screen.user(text)
            self._errands.start(text, self._own_command(text[1:].strip(), self._desk))
        elif (told := self._desk.aside(text)) is not None:
            self.screen.user(text)
            for phrase in told:
                self.screen.say(self._words.phrase(phrase))
        else:
            self._submit(text)

    def worth_keeping(self, text: str) -> bool:
        return not self.questions.shown or self._beside(self.questions.shown, text)

    def busy(self) -> bool:
        return self._turn_runs() or bool(self._errands)

    def ready(self) -> bool:
        return not self._turn_runs() or self.questions.shown is not None

    def interrupt(self) -> str:
        waiting, self._waiting = "\n".join(self._waiting), []
        if self._desk:
            self._desk.interrupt()
        self._errands.cancel()
        return waiting

    def change_mode(self) -> None:
        if self._desk:
            modes = list(Mode)
            self._desk.change_mode(modes[(modes.index(self._desk.mode) + 1) % len(modes)])

    def pause_or_resume(self) -> None:
        if self._desk:
            running = any(job.status == "running" for job in self._desk.state.jobs.values())
            self._desk.control("pause" if running else "resume")

    def hint(self, key: str) -> str:
        return self._words(key)

    def above(self, columns: int) -> Fragments:
        if self._desk is None:
            return []
        written = self.screen.written(columns)
        below = self.screen.live(columns)
        below += self._errands.lines(columns)
        below += job_progress(self._desk.state, self._words, self._paper.glyphs, columns)
        below += [fitted(plain(self._words("chat.queued", text=text)), columns - 1) for text in self._waiting]
        lines = [*(("", line) for line in written), *(("dim", line) for line in below)]
        return [(style, line + "\n" * (number < len(lines))) for number, (style, line) in enumerate(lines, 1)]

    def sign(self) -> str:
        return self._paper.glyphs.fit("› ")

    def bar(self, columns: int) -> str:
        return self._paper.glyphs.fit(status_bar(self._desk, self._words, columns)) if self._desk else ""

    def completions(self, document: "Document") -> "Iterable[Completion]":
        return self._completions.of(document)

    async def _command(self, text: str, desk: Desk) -> None:
        try:
            if shown := await self._slash.run(CommandContext(desk, self._words, self.questions.ask), text):
                self.screen.say(shown)
        except Say as wanted:
            self._submit(wanted.text)
        except Switch as wanted:
            self._line.listen(None)
            self.switching.set_result(wanted)
        except Quit:
            self._line.leave()
        self._line.redraw()

    async def _own_command(self, command: str, desk: Desk) -> None:
        from duckflow.ui.console.own_command import run_own

        def show(text: str, left_out: int) -> None:
            self.hear(OutputStreamed(text=text, left_out=left_out))

        ran = await run_own(command, desk.state.folder, show)
        desk.ran(command, ran.code, ran.output, ran.seconds)

    def _submit(self, text: str) -> None:
        """Start a turn, or keep the message until the running one is over."""
        if self._turn_runs():
            self._waiting.append(text)
            return
        self.screen.user(text)
        self._turn = asyncio.create_task(self._run_turn(text))

    async def _run_turn(self, text: str) -> None:
        assert self._desk
        outcome = await self._desk.say(text)
        if outcome == "exit":
            self._line.leave()
        elif self._waiting and outcome != "interrupted":
            waiting, self._waiting = "\n".join(self._waiting), []
            asyncio.get_running_loop().call_soon(self._submit_next, waiting)
        asyncio.get_running_loop().call_soon(self._line.redraw)

    def _submit_next(self, text: str) -> None:
        self._turn = None
        self._submit(text)

    def _turn_runs(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def _beside(self, question: Question, text: str) -> bool:
        """Whether a line goes past an open question. One can always look around first; and a job's question does not
        stand in the way of the conversation."""
        name = unicodedata.normalize("NFKC", text).split()[0] if text.strip() else ""
        if name.startswith("!") or any(name == f"/{command.name}" for command in self._slash):
            return True
        offered = tuple(choice.key for choice in question.choices)
        return bool(question.job) and question.kind == "gate" and read_answer(text, offered) is None

"""The chat: what is typed answers an open question, is a command, or is the next message."""

import asyncio
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from duckflow import __version__
from duckflow.events.types import Event, OutputStreamed
from duckflow.safety.answers import read_answer
from duckflow.safety.mode import Mode
from duckflow.state.question import Question
from duckflow.ui.commands.table import Commands
from duckflow.ui.console.job_lines import job_progress
from duckflow.ui.console.listener import Fragments, Line
from duckflow.ui.console.paper import Paper
from duckflow.ui.console.questions import Questions
from duckflow.ui.console.screen import Screen
from duckflow.ui.console.status_bar import status_bar
from duckflow.ui.counter import Counter, Quit, Say, Switch
from duckflow.ui.desk import Desk
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain
from duckflow.ui.settings import UiSettings
from duckflow.ui.width import fitted

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
        self.questions = Questions(self.screen, words)
        self._desk: Desk | None = None
        self._waiting: list[str] = []
        self._commands: set[asyncio.Task[None]] = set()
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
            if self.screen.moves():
                self._line.redraw()

    async def close(self) -> None:
        if self._desk:
            self._desk.interrupt()
        if self._turn:
            await asyncio.wait([self._turn], timeout=LAST_WORDS_SECONDS)

    def take(self, text: str) -> None:
        text = text.strip()
        if not text or self._desk is None:
            return
        shown = self.questions.shown
        if shown and not _beside(shown, text):
            self.questions.answer(text)
        elif text.startswith(("/", "／")):
            self.screen.user(text)
            command = "/" + unicodedata.normalize("NFKC", text[1:])
            self._commands.add(task := asyncio.create_task(self._command(command, self._desk)))
            task.add_done_callback(self._commands.discard)
        elif (told := self._desk.aside(text)) is not None:
            self.screen.user(text)
            for phrase in told:
                self.screen.say(self._words.phrase(phrase))
        else:
            self._submit(text)

    def worth_keeping(self, text: str) -> bool:
        return not self.questions.shown or _beside(self.questions.shown, text)

    def busy(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def ready(self) -> bool:
        return not self.busy() or self.questions.shown is not None

    def interrupt(self) -> str:
        waiting, self._waiting = "\n".join(self._waiting), []
        if self._desk:
            self._desk.interrupt()
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
        below += job_progress(self._desk.state, self._words, self._paper.glyphs, columns)
        below += [fitted(plain(self._words("chat.queued", text=text)), columns - 1) for text in self._waiting]
        lines = [*(("", line) for line in written), *(("dim", line) for line in below)]
        return [(style, line + "\n" * (number < len(lines))) for number, (style, line) in enumerate(lines, 1)]

    def bar(self, columns: int) -> str:
        return self._paper.glyphs.fit(status_bar(self._desk, self._words, columns)) if self._desk else ""

    def completions(self, document: "Document") -> "Iterable[Completion]":
        return ()

    async def _command(self, text: str, desk: Desk) -> None:
        try:
            if shown := await self._slash.run(Counter(desk, self._words, self.questions.ask), text):
                self.screen.say(shown)
        except Say as wanted:
            self._submit(wanted.text)
        except Switch as wanted:
            self._line.listen(None)
            self.switching.set_result(wanted)
        except Quit:
            self._line.leave()
        self._line.redraw()

    def _submit(self, text: str) -> None:
        """Start a turn, or keep the message until the running one is over."""
        if self.busy():
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


def _beside(question: Question, text: str) -> bool:
    """Whether a line goes past an open question: a job's question does not stand in the way of the conversation."""
    if not question.job:
        return False
    offered = tuple(choice.key for choice in question.choices)
    return text.startswith("/") or (question.kind == "gate" and read_answer(text, offered) is None)

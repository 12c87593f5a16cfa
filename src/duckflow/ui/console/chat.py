"""The chat: shows a conversation above the input line, and actions it what is typed."""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from duckflow import __version__
from duckflow.events import talking
from duckflow.events.ports import Conversation
from duckflow.events.types import (
    Event,
    LanguageChosen,
    MessageAdded,
    OutputStreamed,
    QuestionAsked,
    QuestionClosed,
    TextStreamed,
)
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.state.mode import Mode
from duckflow.state.phrase import say
from duckflow.ui.console.asking import Asking
from duckflow.ui.console.attention import Attention
from duckflow.ui.console.completion import LineCompletions
from duckflow.ui.console.line import Fragments, Line
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.screen import Screen
from duckflow.ui.console.status_bar import job_bars, status_bar
from duckflow.ui.console.waiting import Wait
from duckflow.ui.settings import UiSettings

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

REFRESH = 0.06


class Chat:
    """The front end at a terminal. The conversation runs behind it."""

    def __init__(self, conversation: Conversation, line: Line, words: Words, settings: UiSettings) -> None:
        self._conversation = conversation
        self._line = line
        self._words = words
        self._printer = Printer(Console(no_color=not settings.color or None, highlight=False), settings.ascii)
        words.emoji = settings.emoji and not self._printer.glyphs.plain
        self.screen = Screen(self._printer, words)
        self._completions = LineCompletions(conversation, words)
        self._commands: dict[int, Wait] = {}
        self._asking = Asking(conversation, self.screen, line, words)
        self._attention = Attention(settings, words, line.signal)
        self._running: set[asyncio.Task[Any]] = set()

    def open(self, first: str = "", opening: Iterable[str] = ()) -> None:
        """Greet, say how far it had come, and take what was typed meanwhile."""
        conversation, words = self._conversation, self._words
        conversation.hear(self.hear)
        self.screen.know(conversation.state.jobs.values(), conversation.state.agents)
        self._do(self._animate())
        self.screen.say(words("chat.hello", version=__version__, folder=conversation.state.folder))
        for text in opening:
            self.screen.say(text)
        for job in (job for job in conversation.state.jobs.values() if job.status == "interrupted"):
            self.screen.note(words("job.interrupted", job=job.name))
        if first:
            self._do(conversation.say(first))
        if conversation.in_turn:
            self.screen.wait.begin()
        self._show_question()
        self._line.hand_to(self)

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def hear(self, _: int, event: Event) -> None:
        self._attention.hear(event)
        match event:
            case talking.LineOffered():
                self._line.put_back(event.text)
            case talking.LineTaken():
                self._asking.hear_line(event)
                self.screen.user(event.text)
            case MessageAdded() if event.message.role == "user" and not event.message.job:
                self.screen.user(event.message.text)
                if event.message.meanwhile:
                    self.screen.note(self._words("chat.meanwhile"))
            case QuestionAsked():
                self._show_question()
            case QuestionClosed():
                self._asking.hear_closed(event)
                self._show_question()
            case talking.CommandStarted():
                wait = self._commands[event.command_id] = Wait(self._words, self._printer.glyphs)
                wait.begin(say("wait.action", operation=event.line))
            case talking.CommandFinished():
                self._show_outcome(event)
            case talking.ConversationLeft():
                self._leave(event)
            case LanguageChosen():
                self._words.language = event.language
            case _:
                self.screen.hear(event)
        # What streams in is drawn by the animation: it may come faster than a screen can be drawn.
        if not isinstance(event, OutputStreamed | TextStreamed):
            self._line.redraw()

    def take(self, text: str, begun: float) -> None:
        self._attention.typed()
        if not self._asking.held_back(text, begun):
            self._do(self._asking.heed(self._asking.take(text), text))

    def take_later(self, text: str) -> bool:
        if self.ready() or self._conversation.reads_as(text) != "message":
            return False
        self._conversation.queue(text)
        return True

    def reads_on(self) -> bool:
        return self.screen.question.left > 0

    def worth_keeping(self, text: str) -> bool:
        return self._conversation.reads_as(text) != "answer"

    def busy(self) -> bool:
        return self._conversation.busy

    def ready(self) -> bool:
        return not self._conversation.in_turn or bool(self._conversation.questions)

    def interrupt(self) -> str:
        return self._conversation.interrupt()

    def change_mode(self) -> None:
        choices, modes = self._conversation.choices, list(Mode)
        choices.change_mode(modes[(modes.index(Mode(choices.mode)) + 1) % len(modes)])

    def pause_or_resume(self) -> None:
        self._conversation.work.control("pause" if self._conversation.state.at_work else "resume")

    def open_thoughts(self) -> None:
        self.screen.thoughts.open = not self.screen.thoughts.open

    def asks_about_jobs(self, command: str) -> bool:
        conversation = self._conversation
        if not conversation.state.at_work or any(not question.job for question in conversation.questions):
            return False
        self._do(conversation.run_command(command))
        return True

    def hint(self, key: str) -> str:
        return self._words(key)

    def above(self, columns: int) -> Fragments:
        conversation = self._conversation
        written = self.screen.written(columns)
        below = [*self.screen.live(columns), *(wait.line(columns) for wait in self._commands.values())]
        below += job_bars(conversation.state, self._words, self._printer.glyphs, columns)
        for one in conversation.waiting:
            key = "chat.queued" if one.later else "chat.unheard"
            below.append(fitted(plain(self._words(key, text=one.text)), columns - 1))
        lines = [*(("", line) for line in written), *(("dim", line) for line in below)]
        return [(style, line + "\n" * (number < len(lines))) for number, (style, line) in enumerate(lines, 1)]

    def prompt_sign(self) -> str:
        return self._printer.glyphs.fit("› ")

    def bar(self, columns: int) -> str:
        return self._printer.glyphs.fit(status_bar(self._conversation, self._words, columns))

    def completions(self, document: "Document") -> "Iterable[Completion]":
        return self._completions.of(document)

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Beside the keys."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _animate(self) -> None:
        """Keep the spinner turning while something is going on; an idle chat costs nothing."""
        drawn = 0
        while True:
            await asyncio.sleep(REFRESH)
            # The clocks of jobs move once a second.
            ticks = self._conversation.state.at_work and drawn != int(time.time())
            if self.screen.moves() or self._commands or ticks:
                drawn = int(time.time())
                self._line.redraw()

    def _show_question(self) -> None:
        if to_edit := self._asking.show():
            self._do(self._asking.edit(to_edit))

    def _show_outcome(self, event: talking.CommandFinished) -> None:
        self._commands.pop(event.command_id, None)
        if event.text:
            self.screen.say(event.text)
        if event.problem:
            self.screen.warn(self._words.phrase(event.problem))

    def _leave(self, event: talking.ConversationLeft) -> None:
        if event.where == "other_session":
            # What is typed from now on is for that one.
            self._line.hand_to(None)
        else:
            self._line.leave()

"""The chat: shows a conversation above the input line, and passes typed lines to the conversation."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from duckflow import __version__
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase, say
from duckflow.state.mode import OFFERED
from duckflow.ui.console.asking import Asking
from duckflow.ui.console.completion import LineCompletions
from duckflow.ui.console.line import Fragments, Line
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.screen import Screen
from duckflow.ui.console.status_bar import job_bars, status_bar
from duckflow.ui.console.waiting import Wait
from duckflow.ui.settings import UiSettings
from duckflow.view.items import (
    ChosenItem,
    CommandItem,
    Item,
    NoticeItem,
    NowItem,
    QuestionItem,
    ReportItem,
    TextItem,
    TurnItem,
    is_streaming,
)
from duckflow.view.view import View

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document


BELL = "\a"


class Attention:
    """Calls the user by a bell or a desktop note when a turn has ended or asks something. If the turn began, or the
    user typed, only a few seconds ago, there is no call. News of jobs always calls the user."""

    def __init__(self, settings: UiSettings, words: Words, write: Callable[[str], None]) -> None:
        self._settings = settings
        self._words = words
        self._write = write
        self._since = time.monotonic()

    def draw(self, item: Item) -> None:
        match item:
            case TurnItem(outcome=None):
                self._since = time.monotonic()
            case QuestionItem(closed=False, question=question) if question:
                self._call("notify.asks", always=bool(question.job))
            case TurnItem(outcome=outcome) if outcome != "interrupted":
                self._call("notify.done")
            case ReportItem():
                self._call("notify.job", always=True)
            case _:
                pass

    def typed(self) -> None:
        """Notes that the user is at the terminal."""
        self._since = time.monotonic()

    def _call(self, key: str, always: bool = False) -> None:
        waited_seconds = time.monotonic() - self._since
        if self._settings.notify == "off" or (waited_seconds < self._settings.notify_seconds and not always):
            return
        self._since = time.monotonic()
        self._write(BELL if self._settings.notify == "bell" else _desktop(self._words(key)))


def _desktop(text: str) -> str:
    """Returns the sequence that makes a terminal show a desktop note, wrapped for tmux if needed. Terminals that do not
    know the sequence ignore it."""
    sequence = f"\x1b]9;Duckflow: {plain(text)}\x1b\\"
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\" if os.environ.get("TMUX") else sequence


REFRESH = 0.06


class Chat:
    """The front end at a terminal. The conversation runs independently of it."""

    def __init__(self, conversation: Conversation, line: Line, words: Words, settings: UiSettings) -> None:
        self._conversation = conversation
        self._line = line
        self._words = words
        self._printer = Printer(Console(no_color=not settings.color or None, highlight=False), settings.ascii)
        words.emoji = settings.emoji and not self._printer.glyphs.plain
        self.screen = Screen(self._printer, words)
        self._completions = LineCompletions(conversation, words)
        self._commands: dict[str, Wait] = {}
        self._echoed = ""
        """The last line that was shown as the user typed it. It is empty as soon as other text stands below that
        line."""
        self._asking = Asking(conversation, self.screen, line, words)
        self._attention = Attention(settings, words, line.signal)
        self._running: set[asyncio.Task[Any]] = set()
        self._view = View(conversation.state)

    def open(self, first: str = "", opening: Iterable[str | TextItem] = ()) -> None:
        """Greets the user, reports interrupted jobs, and takes the lines that were typed meanwhile."""
        conversation, words = self._conversation, self._words
        conversation.hear(self.hear)
        self._do(self._animate())
        self.screen.say(words("chat.hello", version=__version__, folder=conversation.state.folder))
        for line in opening:
            self.screen.draw(line) if isinstance(line, TextItem) else self.screen.say(line)
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

    def hear(self, number: int, event: Event) -> None:
        items = self._view.hear(number, event)
        for item in items:
            self._attention.draw(item)
            self._draw(item)
        # The animation draws streaming items: they may come faster than a screen can be drawn.
        if not items or not all(map(is_streaming, items)):
            self._line.redraw()

    def _draw(self, item: Item) -> None:
        match item:
            case NoticeItem(about="offered"):
                self._line.put_back(item.subject)
            case NoticeItem(about="typed"):
                self._asking.hear_line(item.subject)
                self.screen.user(item.subject)
                self._echoed = item.subject
            case NoticeItem(about="left"):
                self._leave(item.subject)
            case TextItem(by="user"):
                # A message typed in place of an answer is on the screen already.
                if item.text != self._echoed:
                    self.screen.user(item.text)
                self._echoed = ""
                if item.meanwhile:
                    self.screen.note(self._words("chat.meanwhile"))
            case QuestionItem():
                self.screen.wait.stand_still(any(not question.job for question in self._conversation.questions))
                if item.closed:
                    self._asking.hear_closed(item)
                self._show_question()
            case CommandItem(over=False):
                wait_display = self._commands[item.id] = Wait(self._words, self._printer.glyphs)
                wait_display.begin(say("wait.action", operation=item.line))
            case CommandItem():
                self._show_outcome(item)
            case ChosenItem(language=language) if language:
                self._words.language = language
            case _:
                self._echoed = self._echoed if isinstance(item, NowItem | TurnItem) else ""
                self.screen.draw(item)

    def take(self, text: str, begun: float) -> None:
        self._attention.typed()
        text = self._asking.with_unsent(text)
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

    def hides(self) -> bool:
        return self._asking.hides()

    def busy(self) -> bool:
        return self._conversation.busy

    def ready(self) -> bool:
        return not self._conversation.in_turn or bool(self._conversation.questions)

    def interrupt(self) -> str:
        return self._conversation.interrupt()

    def change_mode(self) -> None:
        choices = self._conversation.choices
        next_index = OFFERED.index(choices.mode) + 1 if choices.mode in OFFERED else 0
        choices.change_mode(OFFERED[next_index % len(OFFERED)])

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
        written_lines = self.screen.written(columns)
        lines_below = [*self.screen.live(columns), *(wait.line(columns) for wait in self._commands.values())]
        lines_below += job_bars(conversation.state, self._words, self._printer.glyphs, columns)
        for queued_message in conversation.waiting:
            key = "chat.queued" if queued_message.later else "chat.unheard"
            lines_below.append(fitted(plain(self._words(key, text=queued_message.text)), columns - 1))
        lines = [*(("", line) for line in written_lines), *(("dim", line) for line in lines_below)]
        return [(style, line + "\n" * (number < len(lines))) for number, (style, line) in enumerate(lines, 1)]

    def prompt_sign(self) -> str:
        return self._printer.glyphs.fit("› ")

    def bar(self, columns: int) -> str:
        return self._printer.glyphs.fit(status_bar(self._conversation, self._words, columns))

    def completions(self, document: "Document") -> "Iterable[Completion]":
        return self._completions.of(document)

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs work in the background, so that the keys keep working."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _animate(self) -> None:
        """Keeps the spinner turning while work is going on. An idle chat is not redrawn."""
        drawn_second = 0
        while True:
            await asyncio.sleep(REFRESH)
            # The clocks of jobs move once a second.
            second_passed = self._conversation.state.at_work and drawn_second != int(time.time())
            if self.screen.moves() or self._commands or second_passed:
                drawn_second = int(time.time())
                self._line.redraw()

    def _show_question(self) -> None:
        if edit_question := self._asking.show():
            self._do(self._asking.edit(edit_question))

    def _show_outcome(self, item: CommandItem) -> None:
        self._commands.pop(item.id, None)
        if item.text:
            self.screen.say(item.text)
        if item.line == "/help":
            self.screen.say(f"\n{self._words('help.keys')}")
        if item.line == "/status":
            trend_phrase = Phrase(key="health.trend", values=self._conversation.health_bar().values)
            self.screen.say(self._words.phrase(trend_phrase))
        if item.problem:
            self.screen.warn(self._words.phrase(item.problem))

    def _leave(self, where: str) -> None:
        if where == "other_session":
            # Lines typed from now on are kept for the other session.
            self._line.hand_to(None)
        else:
            self._line.leave()

"""The chat: shows a conversation above the input line, and actions it what is typed."""

import asyncio
import time
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from duckflow import __version__
from duckflow.events import talking
from duckflow.events.ports import Conversation
from duckflow.events.types import Event, LanguageChosen, MessageAdded, OutputStreamed, TextStreamed, TurnEnded
from duckflow.i18n.answers import read_answer
from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.state.mode import Mode
from duckflow.state.phrase import say
from duckflow.state.question import Question
from duckflow.ui.console.completion import LineCompletions
from duckflow.ui.console.keyboard import edit_text
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
SETTLED_SECONDS = 0.05
READING_SECONDS = 0.3
"""Nobody answers faster: what is typed before was meant for something else."""
MORE, ALL = ("", "more", "続き", "つづき"), ("all", "全部", "すべて")


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
        self._shown_question = ""
        self._asked_at = 0.0
        self._running: list[asyncio.Task[Any]] = []

    def open(self, first: str = "", opening: Iterable[str] = ()) -> None:
        """Greet, say how far it had come, and take what was typed meanwhile."""
        conversation, words = self._conversation, self._words
        conversation.hear(self.hear)
        self.screen.know(conversation.state.jobs.values())
        self._running.append(asyncio.create_task(self._animate()))
        self.screen.say(words("chat.hello", version=__version__, folder=conversation.state.folder))
        for text in opening:
            self.screen.say(text)
        for job in (job for job in conversation.state.jobs.values() if job.status == "interrupted"):
            self.screen.note(words("job.interrupted", job=job.name))
        if first:
            self._running.append(asyncio.create_task(conversation.say(first)))
        self._line.hand_to(self)

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def hear(self, _: int, event: Event) -> None:
        match event:
            case talking.LineTaken():
                self.screen.user(event.text)
            case MessageAdded() if event.message.role == "user" and not event.message.job:
                self.screen.user(event.message.text)
                if event.message.meanwhile:
                    self.screen.note(self._words("chat.meanwhile"))
            case talking.QuestionAsked() | talking.QuestionClosed():
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
        if isinstance(event, TurnEnded):
            # A moment later it is the user's turn.
            asyncio.get_running_loop().call_later(SETTLED_SECONDS, self._line.redraw)

    def take(self, text: str, begun: float) -> None:
        if self._held_back(text, begun):
            return
        taken = self._conversation.take(text)
        for phrase in taken.told:
            (self.screen.say if taken.meaning == "aside" else self.screen.warn)(self._words.phrase(phrase))
        if taken.meaning == "edit":
            self._running.append(asyncio.create_task(self._edit(self._conversation.questions[0])))

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
        self._running.append(asyncio.create_task(conversation.run_command(command)))
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

    def _held_back(self, text: str, begun: float) -> bool:
        """Whether a line is no answer yet: begun before the question could be read, or sent before all of it was
        shown. What was begun too early goes back into the line."""
        question, pages = next(iter(self._conversation.questions), None), self.screen.question
        if question is None:
            return False
        word = unicodedata.normalize("NFKC", text).strip().casefold()
        if pages.left and word in (*MORE, *ALL):
            pages.more(whole=word in ALL)
            return True
        if self._conversation.reads_as(text) != "answer":
            return False
        if begun < self._asked_at + READING_SECONDS:
            back = self._line.put_back(text)
            # A second Enter must not follow the first one in haste.
            self._asked_at = time.monotonic() if back else self._asked_at
            self.screen.warn(self._words("gate.early" if back else "gate.early_line"))
            return True
        answer = read_answer(text, tuple(choice.key for choice in question.choices))
        if pages.left and not (answer and answer.choice == "no"):
            self.screen.warn(self._words("gate.read_on", rows=pages.left))
            return True
        return False

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

    async def _edit(self, question: Question) -> None:
        """Let the user change the proposed text in their editor; an emptied text is a no."""
        proposed = question.gate.editable if question.gate else question.text
        changed = await self._line.lend_terminal(lambda: edit_text(proposed))
        text, choice = (changed, "edit") if changed.strip() else ("", "no")
        self._conversation.answer(question.question_id, text, choice=choice)

    def _show_question(self) -> None:
        """The first one; the others wait behind it."""
        question = next(iter(self._conversation.questions), None)
        if question and question.question_id != self._shown_question:
            self.screen.ask(question)
            self._asked_at = time.monotonic()
            if question.kind == "edit":
                self._running.append(asyncio.create_task(self._edit(question)))
        elif question is None:
            self.screen.question.close()
        self._shown_question = question.question_id if question else ""

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

"""The tour's stops, and who leads through them."""

import asyncio
from collections.abc import Iterable
from typing import Any

from duckflow.cli.demo.model import Stop, TourModel, stops
from duckflow.events.ports import Conversation
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.ui.console.chat import Chat
from duckflow.ui.console.line import Fragments, Line

LOOK_SECONDS = 0.1
FIRST = "1"


class Guide:
    """A handler that passes everything on."""

    def __init__(self, conversation: Conversation, chat: Chat, model: TourModel, line: Line, words: Words) -> None:
        self._conversation = conversation
        self._state = conversation.state
        self._chat = chat
        self._model = model
        self._line = line
        self._words = words
        self._left = [*stops(words)]
        self._stop: Stop | None = None
        self._said = False

    async def lead(self) -> None:
        """From stop to stop; each ends when what was begun there is over."""
        while True:
            if self._stop is None or (self._idle() and self._over(self._stop)):
                self._advance()
            self._line.redraw()
            await asyncio.sleep(LOOK_SECONDS)

    def suggestion(self) -> str:
        """What Enter alone sends now; nothing while something is going on."""
        if self._stop is None:
            return ""
        question = next(iter(self._conversation.questions), None)
        if question and not question.job:
            return FIRST
        if not self._said:
            return self._stop.line if self._idle() else ""
        # What a job asks is answered at the stop that waits for the job.
        return FIRST if question and not self._over(self._stop) else ""

    def take(self, text: str, begun: float) -> None:
        if not text.strip() and self.reads_on():
            self._chat.take(text, begun)
            return
        text = text.strip() or self.suggestion()
        if not text:
            return
        answers = not self._chat.worth_keeping(text)
        # Whoever looks around with a command has not done yet what the stop is about.
        looks = text.startswith("/") and not (self._stop and text == self._stop.line)
        self._said = self._said or not (answers or looks)
        self._chat.take(text, begun)

    def above(self, columns: int) -> Fragments:
        shown = self._chat.above(columns)
        line = self.suggestion()
        if not line:
            return shown
        told = fitted(self._words("demo.enter", line=line), columns - 1)
        return [*shown, *([("", "\n")] if shown else []), ("fg:ansicyan", told)]

    def prompt_sign(self) -> str:
        return self._chat.prompt_sign()

    def bar(self, columns: int) -> str:
        return self._chat.bar(columns)

    def take_later(self, text: str) -> bool:
        return self._chat.take_later(text)

    def reads_on(self) -> bool:
        return self._chat.reads_on()

    def hides(self) -> bool:
        return self._chat.hides()

    def worth_keeping(self, text: str) -> bool:
        return self._chat.worth_keeping(text)

    def busy(self) -> bool:
        return self._chat.busy()

    def ready(self) -> bool:
        return self._chat.ready()

    def interrupt(self) -> str:
        return self._chat.interrupt()

    def change_mode(self) -> None:
        self._chat.change_mode()

    def open_thoughts(self) -> None:
        self._chat.open_thoughts()

    def pause_or_resume(self) -> None:
        self._chat.pause_or_resume()

    def asks_about_jobs(self, command: str) -> bool:
        return self._chat.asks_about_jobs(command)

    def hint(self, key: str) -> str:
        return self._chat.hint(key)

    def completions(self, document: Any) -> Iterable[Any]:
        return self._chat.completions(document)

    def _over(self, stop: Stop) -> bool:
        """What was begun has ended, or there is nothing left to do it with."""
        return (self._said and stop.over(self._state)) or not stop.needed(self._state)

    def _idle(self) -> bool:
        """Whether the conversation waits for the user; what a background job asks does not stand in its way."""
        question = next(iter(self._conversation.questions), None)
        return not self._chat.busy() and (question is None or bool(question.job))

    def _advance(self) -> None:
        while self._left:
            stop = self._left.pop(0)
            if stop.needed(self._state):
                self._stop, self._said = stop, False
                self._model.begin(stop)
                self._chat.screen.warn("\n" + self._words(f"demo.{stop.name}"))
                return
        # At the last one the user may stay as long as they like.
        self._said = False

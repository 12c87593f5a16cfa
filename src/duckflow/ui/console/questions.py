"""Questions that wait for an answer: the first one is shown, the others wait behind it."""

import asyncio
from collections.abc import Awaitable, Callable

from duckflow.i18n.words import Words
from duckflow.safety.answers import read_answer
from duckflow.state.question import Answer, Question
from duckflow.ui.choices import FREE, read_choice, wants_words
from duckflow.ui.console.keyboard import edit_text
from duckflow.ui.console.screen import Screen

UNCLEAR = {"gate": "gate.unclear", "duck_call": "duck.words", "choice": "choice.unclear"}
Lend = Callable[[Callable[[], str]], Awaitable[str]]
"""Lends the terminal to somebody else, an editor."""


class Questions:
    """The next line typed answers the question that is shown."""

    def __init__(self, screen: Screen, words: Words, lend: Lend) -> None:
        self._lend = lend
        self._screen = screen
        self._words = words
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._half_answer: Answer | None = None

    @property
    def shown(self) -> Question | None:
        return self._waiting[0][0] if self._waiting else None

    async def ask(self, question: Question) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        entry = (question, future)
        self._waiting.append(entry)
        if self._waiting[0] is entry:
            self._screen.ask(question)
        try:
            return await future
        finally:
            was_shown = self._waiting[0] is entry
            self._waiting.remove(entry)
            if was_shown and self.shown:
                self._screen.ask(self.shown)

    def answer(self, text: str) -> None:
        """What the text means for the shown question; unclear is asked again."""
        question, future = self._waiting[0]
        self._screen.user(text)
        if question.kind == "gate":
            answer = read_answer(text, tuple(choice.key for choice in question.choices))
        else:
            answer = self._chosen(text, question)
        if answer and answer.choice == "edit" and question.gate:
            edit = asyncio.ensure_future(self._edited(question.gate.editable))
            edit.add_done_callback(lambda task: future.done() or future.set_result(task.result()))
        elif answer is None:
            self._screen.warn(self._words(UNCLEAR[question.kind]))
        elif not future.done():
            future.set_result(answer)

    async def _edited(self, proposed: str) -> Answer:
        """Let the user change the proposed text in their editor; an emptied text is a no."""
        changed = await self._lend(lambda: edit_text(proposed))
        return Answer(choice="edit", text=changed) if changed.strip() else Answer(choice="no")

    def _chosen(self, text: str, question: Question) -> Answer | None:
        """The answer to a Duck Call; a choice that needs words waits for them."""
        if self._half_answer:
            answer, self._half_answer = self._half_answer.model_copy(update={"text": text}), None
            return answer
        answer = read_choice(text, question)
        if question.kind == "choice":
            return None if answer.choice == FREE else answer
        if wants_words(answer, question):
            self._half_answer = answer
            return None
        return answer

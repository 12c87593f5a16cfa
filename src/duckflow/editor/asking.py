"""Questions that are put to the user of an editor: by a permission request where it can be answered with a click, in
words where it cannot."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.editor.questions import permission_request, question_text
from duckflow.editor.tool_calls import fenced
from duckflow.events.ports import Conversation
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from duckflow.state.question import Question

Request = Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]
"""Sends a permission request and waits for the answer."""


class Wanted(NamedTuple):
    """A question whose answer needs words of the user's own. Without a `choice` they are read as typed."""

    question: Question
    choice: str


class Asker:
    """Knows which questions are asked just now. While `words_wanted` is set, the next prompt is the answer to one."""

    def __init__(
        self,
        conversation: Conversation,
        words: Words,
        root: Path,
        say: Callable[[str], None],
        cancel: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._root = root
        self._say = say
        self._cancel = cancel
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._wanted: Wanted | None = None
        self.words_wanted = asyncio.Event()

    def ask(self, question: Question, request: Request) -> None:
        if question.kind == "text":
            self._say(question_text(question, self._words))
            self._want(question, "", self._words("editor.secret" if question.secret else "duck.words"))
            return
        if question.kind == "edit":
            self._say(f"{question_text(question, self._words)}\n\n{fenced(question.text)}")
            self._want(question, "edit", self._words("editor.new_text"))
            return
        reply = request(permission_request(question, self._words, self._root))
        task = self._asked[question.question_id] = asyncio.create_task(self._take(question, reply))
        task.add_done_callback(lambda _: self._asked.pop(question.question_id, None))

    async def answered_by(self, text: str) -> bool:
        """Whether a prompt answers a question that is open. An unclear one is asked again."""
        wanted, self._wanted = self._wanted, None
        self.words_wanted.clear()
        conversation, still_open = self._conversation, {one.question_id for one in self._conversation.questions}
        if wanted and wanted.question.question_id in still_open and not text.startswith("/"):
            taken = await conversation.answer(wanted.question.question_id, text, wanted.choice)
        elif still_open and conversation.reads_as(text) == "answer":
            taken = await conversation.take(text)
        else:
            return False
        if taken.meaning in ("unclear", "edit"):
            told = "\n".join(map(self._words.phrase, taken.told)) or self._words("editor.new_text")
            if question := next((one for one in conversation.questions if one.question_id == taken.question_id), None):
                self._want(question, "edit" if taken.meaning == "edit" else "", told)
            else:
                self._say(told)
        return taken.meaning != "closed"

    def closed(self, question_id: str) -> None:
        """Answered, here or elsewhere, or interrupted: nobody need be asked any more."""
        if (asking := self._asked.get(question_id)) and asking is not asyncio.current_task():
            asking.cancel()
        if self._wanted and self._wanted.question.question_id == question_id:
            self._wanted = None
            self.words_wanted.clear()

    def close(self) -> None:
        for asking in list(self._asked.values()):
            asking.cancel()

    async def _take(self, question: Question, reply: Coroutine[Any, Any, Any]) -> None:
        try:
            outcome = (await reply)["outcome"]
            choice = str(outcome["optionId"]) if outcome["outcome"] == "selected" else ""
        except RpcError:
            self._want(question, "", self._words("editor.answer"))
            return
        except (KeyError, TypeError):
            choice = ""
        if choice:
            await self._chosen(question, choice)
        elif question.job:
            # It waits on.
            self._want(question, "", self._words("editor.answer"))
        else:
            # Closed without an answer: that is no yes.
            self._cancel()

    async def _chosen(self, question: Question, choice: str) -> None:
        gate = question.gate
        if gate and choice == "edit":
            self._say(fenced(gate.editable))
            self._want(question, "edit", self._words("editor.new_text"))
        elif gate and gate.risk == "forbidden" and choice != "no":
            # An editor may click by itself.
            self._want(question, "", self._words("gate.word"))
        elif any(one.wants_text for one in question.choices if one.key == choice):
            self._want(question, choice, self._words("duck.words"))
        elif (await self._conversation.answer(question.question_id, choice=choice)).meaning == "unclear":
            self._want(question, "", self._words("editor.answer"))

    def _want(self, question: Question, choice: str, told: str) -> None:
        self._say(told)
        self._wanted = Wanted(question, choice)
        self.words_wanted.set()

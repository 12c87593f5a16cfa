"""Permission requests that are open at the same time: each answer goes to its own request."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from duckflow.editor.questions import Asker
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from tests.journeys.cast import two_askers
from tests.journeys.plans import until
from tests.ui.console.test_early_answers import Unanswered


async def test_an_option_answers_its_own_request_and_a_bare_yes_asks_which(tmp_path: Path) -> None:
    story = Unanswered(tmp_path, [], mode="ask")
    story.provider = two_askers()
    said: list[str] = []
    replies: list[asyncio.Future[Any]] = []

    def request(_: Any) -> Coroutine[Any, Any, Any]:
        reply = asyncio.get_running_loop().create_future()
        replies.append(reply)

        async def answered() -> Any:
            return await reply

        return answered()

    asker = Asker(story.chat, Words("en"), story.folder, said.append, lambda: None)
    turn = asyncio.create_task(story.tell("write both"))
    await until(story, lambda: len(story.chat.questions) == 2)
    first, second = story.chat.questions
    for question in (first, second):
        asker.ask(question, request)
    assert await asker.answered_by("yes")
    assert said == ["Several questions are open. Choose the one you are answering."]
    assert story.chat.questions == (first, second) and not list(story.folder.glob("*.py"))
    replies[1].set_result({"outcome": {"outcome": "selected", "optionId": "yes"}})
    await until(story, lambda: bool(list(story.folder.glob("*.py"))))
    (written,) = story.folder.glob("*.py")
    assert second.gate and written.name in second.gate.diff
    assert story.chat.questions == (first,)
    replies[0].set_result({"outcome": {"outcome": "selected", "optionId": "no"}})
    await turn
    assert [*story.folder.glob("*.py")] == [written]


AGAIN = "hm, let me think"
REPLIES: list[Any] = [RpcError(-1, "no buttons here"), {"outcome": {"outcome": "cancelled"}}, {"outcome": {}}]
"""Answers to a request for permission after which the words of the user are wanted."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("said_before", [(), (AGAIN,), (AGAIN, AGAIN)])
@pytest.mark.parametrize("reply", REPLIES, ids=["no buttons", "closed", "broken"])
@pytest.mark.parametrize("asked_first", [0, 1])
async def test_words_answer_the_gate_that_they_were_asked_for(
    tmp_path: Path, asked_first: int, reply: Any, said_before: tuple[str, ...]
) -> None:
    """A second Gate needs words while the user reads the first."""
    story = Unanswered(tmp_path, [], mode="ask")
    story.provider = two_askers()
    said: list[str] = []

    async def replied(_: Any) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    asker = Asker(story.chat, Words("en"), story.folder, said.append, lambda: None)
    turn = asyncio.create_task(story.tell("write both"))
    await until(story, lambda: len(story.chat.questions) == 2)
    first, second = sorted(story.chat.questions, key=lambda question: question != story.chat.questions[asked_first])
    for question in (first, second):
        asker.ask(question, replied)
        await asyncio.sleep(0.01)
    names = [question.gate.impacts[0].path for question in (first, second) if question.gate]
    assert names[0] in said[0] and not any(names[1] in text for text in said), "it is said what the words are for"
    for words in said_before:
        assert await asker.answered_by(words)
        assert first in story.chat.questions and second in story.chat.questions
    assert await asker.answered_by("yes")
    await until(story, (story.folder / names[0]).exists)
    assert story.chat.questions == (second,) and names[1] in said[-1]
    assert await asker.answered_by("no")
    await turn
    assert not (story.folder / names[1]).exists()

"""Requests for permission that are open at the same time: each answer belongs to its own."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from duckflow.editor.questions import Asker
from duckflow.i18n.words import Words
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
    assert said == ["Several questions are open. Choose the one that you answer."]
    assert story.chat.questions == (first, second) and not list(story.folder.glob("*.py"))
    replies[1].set_result({"outcome": {"outcome": "selected", "optionId": "yes"}})
    await until(story, lambda: bool(list(story.folder.glob("*.py"))))
    (written,) = story.folder.glob("*.py")
    assert second.gate and written.name in second.gate.diff
    assert story.chat.questions == (first,)
    replies[0].set_result({"outcome": {"outcome": "selected", "optionId": "no"}})
    await turn
    assert [*story.folder.glob("*.py")] == [written]

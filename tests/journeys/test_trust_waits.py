"""The first message while the folder is asked about: it is seen, and comes back where the user leaves it."""

import asyncio
from pathlib import Path

from duckflow.events.talking import NowChanged
from tests.journeys.plans import Typing, until
from tests.journeys.story import Outcome
from tests.journeys.test_hooks import HELLOS, hook, write_hooks


async def asked_about_the_folder(top: Path) -> tuple[Typing, asyncio.Task[Outcome]]:
    write_hooks(top / "work/.duckflow/hooks.json", hook("Stop", "true"))
    story = Typing(top, HELLOS)
    turn = asyncio.create_task(story.tell("look around"))
    await until(story, lambda: bool(story.chat.questions), seconds=20)
    return story, turn


async def test_the_first_message_is_seen_while_the_folder_is_asked_about(tmp_path: Path) -> None:
    story, turn = await asked_about_the_folder(tmp_path)
    assert [one.text for one in story.chat.waiting] == ["look around"]
    assert story.all(NowChanged)[-1].waiting == story.chat.waiting
    await story.chat.answer(story.chat.questions[0].question_id, choice="trust")
    assert await turn == "done"
    assert story.chat.waiting == story.all(NowChanged)[-1].waiting == ()


async def test_a_message_that_was_not_let_in_comes_back(tmp_path: Path) -> None:
    story, turn = await asked_about_the_folder(tmp_path)
    assert story.chat.interrupt() == "look around"
    assert await turn == "interrupted" and not story.chat.waiting and not story.session.state.messages

"""The terminal shows one of several open questions, and an answer counts for that one."""

import asyncio
import time
from pathlib import Path

from duckflow.i18n.words import Words
from duckflow.ui.console.chat import Chat
from duckflow.ui.settings import UiSettings
from tests.journeys.cast import two_askers
from tests.journeys.plans import until
from tests.ui.console.test_early_answers import Keys, Unanswered


async def test_a_yes_is_for_the_question_that_is_shown_and_the_other_waits(tmp_path: Path) -> None:
    story, keys = Unanswered(tmp_path, [], mode="ask"), Keys()
    story.provider = two_askers()
    chat = Chat(story.chat, keys, Words("en"), UiSettings())
    chat.open()
    turn = asyncio.create_task(story.tell("write both"))
    await until(story, lambda: len(story.chat.questions) == 2)
    shown, other = story.chat.questions
    assert shown.gate and other.gate
    (mine,) = [name for name in ("price.py", "name.py") if name in shown.gate.diff]
    (theirs,) = {"price.py", "name.py"} - {mine}
    begun = time.monotonic()
    chat.take("yes", begun + 1)
    await until(story, (story.folder / mine).exists)
    assert not (story.folder / theirs).exists()
    chat.take("yes", begun)
    assert keys.text == "yes" and story.chat.questions == (other,), "the second one has just come into sight"
    chat.take("yes", time.monotonic() + 1)
    assert await turn == "done" and (story.folder / theirs).exists()
    chat.close()


async def test_a_yes_that_comes_after_another_terminals_answer_is_not_for_the_next_question(tmp_path: Path) -> None:
    story, keys = Unanswered(tmp_path, [], mode="ask"), Keys()
    story.provider = two_askers()
    chat = Chat(story.chat, keys, Words("en"), UiSettings())
    chat.open()
    turn = asyncio.create_task(story.tell("write both"))
    await until(story, lambda: len(story.chat.questions) == 2)
    shown, other = story.chat.questions
    begun = time.monotonic() + 1
    await story.chat.answer(shown.question_id, choice="no")
    chat.take("yes", begun - 1)
    assert story.chat.questions == (other,) and keys.text == "yes"
    await story.chat.answer(other.question_id, choice="no")
    await turn
    assert not list(story.folder.glob("*.py"))
    chat.close()

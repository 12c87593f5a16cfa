"""An answer is younger than its question."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from duckflow.ui.console.chat import Chat
from duckflow.ui.console.line import LineHandler
from duckflow.ui.settings import UiSettings
from tests.journeys.plans import until
from tests.journeys.story import Story, act, decide, respond

WRITE = decide(act("file_ops.write_file", path="a.py", content="x\n"), respond("ok"))


class Unanswered(Story):
    def answer(self, question: Question) -> Answer | None:
        return None


class Keys:
    """An input line without a terminal."""

    def __init__(self) -> None:
        self.text = ""

    @contextmanager
    def printing(self) -> Generator[None]:
        yield

    async def run(self) -> None: ...

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        return work()

    async def shown(self) -> None: ...

    def hand_to(self, handler: LineHandler | None) -> None: ...

    def put_back(self, text: str) -> bool:
        self.text = text
        return True

    def signal(self, sequence: str) -> None: ...

    def redraw(self) -> None: ...

    def leave(self) -> None: ...


async def asked(top: Path) -> tuple[Story, Chat, Keys, asyncio.Task[str]]:
    story, keys = Unanswered(top, [WRITE], mode="ask"), Keys()
    chat = Chat(story.chat, keys, Words("en"), UiSettings())
    chat.open()
    turn = asyncio.create_task(story.tell("go"))
    await until(story, lambda: bool(story.chat.questions))
    return story, chat, keys, turn


async def test_a_digit_in_the_first_moment_does_not_count(tmp_path: Path) -> None:
    story, chat, keys, turn = await asked(tmp_path)
    for begun in (time.monotonic() - 5, time.monotonic()):
        chat.take("1", begun)
        assert story.chat.questions and keys.text == "1"
    chat.take("1", time.monotonic() + 1)
    assert not story.chat.questions and await turn == "done"
    assert (story.folder / "a.py").exists()
    chat.close()


async def test_a_rule_that_stays_needs_a_word(tmp_path: Path) -> None:
    story, chat, _, turn = await asked(tmp_path)
    later = time.monotonic() + 1
    for text in ("4", "a", "A", "４"):
        assert (await story.chat.take(text)).told[0].key == "gate.always_word"
    assert story.chat.questions and not story.chat.choices.permissions()
    chat.take("always", later)
    assert await turn == "done"
    assert [scope for scope, _ in story.chat.choices.permissions()] == ["always"]
    chat.close()

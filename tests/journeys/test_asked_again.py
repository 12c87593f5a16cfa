"""After a no that says what is wanted instead, what the model proposes next is asked about, whatever a rule allows."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.plans import Typing, when
from tests.journeys.story import act, decide, respond

TESTS = act("shell.run", command="pytest -q -p no:cacheprovider")
SED = act("shell.run", command="sed -i s/ducks/geese/ *.py")


def write(text: str, path: str = "pond.py") -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content=f"ducks = '{text}'\n")


async def refused(tmp_path: Path, said: str, *then: dict[str, Any], language: str = "en") -> Typing:
    """A story in which edits of Python files and test runs are allowed, and a command has been refused."""
    replies = [decide(call, next_step="continue") for call in (write("1"), SED, *then)]
    story = Typing(tmp_path, [*replies, *[decide(respond("ok"))] * 3], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("make a pond"))
    await story.asked()
    await story.chat.take("yes, and don't ask again" if language == "en" else "はい、今後は聞かなくていいです")
    await story.asked(2)
    await story.chat.take(said)
    await story.asked(3)
    await story.chat.take("1")
    await turn
    return story


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "no, I want to see the diff before"),
        ("en", "2: show me the change as an edit first"),
        ("ja", "いいえ、先に差分を見せてください"),
    ],
)
async def test_what_comes_instead_of_the_refused_is_asked_about_once(tmp_path: Path, language: str, said: str) -> None:
    story = await refused(tmp_path, said, write("2"), write("3"), language=language)
    gates = [question.gate for question in story.gates() if question.gate]
    assert [gate.operations for gate in gates] == [("file_ops.write_file",), ("shell.run",), ("file_ops.write_file",)]
    assert (story.folder / "pond.py").read_text() == "ducks = '3'\n", "the yes is heard, and the rule holds again"


async def test_the_next_message_ends_what_was_owed(tmp_path: Path) -> None:
    replies = [decide(call, next_step="continue") for call in (write("1"), SED)]
    again = when("write the two after all", decide(write("2"), next_step="continue"))
    story = Typing(tmp_path, [*replies, again, *[decide(respond("ok"))] * 6], mode="ask")
    turn = asyncio.create_task(story.tell("make a pond"))
    await story.asked()
    await story.chat.take("yes, and don't ask again")
    await story.asked(2)
    await story.chat.take("no, I want to see the diff before")
    await turn
    await story.tell("write the two after all")
    assert len(story.gates()) == 2 and (story.folder / "pond.py").read_text() == "ducks = '2'\n"

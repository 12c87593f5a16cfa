"""Killed at any moment, a session loses at most the reply being received."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from duckflow.agent.session import reopen, replay
from duckflow.events.types import QuestionAsked
from duckflow.state.phase import Phase
from duckflow.state.question import Answer, Question
from duckflow.store.journal import Journal
from tests.journeys.story import Story, act, decide, respond

KILLS = 10
TOP = Path(__file__).parent.parent.parent


@pytest.fixture
def children() -> Iterator["subprocess.Popen[str]"]:
    """Starts a talking child for every folder it is told."""
    command = [sys.executable, "-m", "tests.journeys.endless_talk"]
    with subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def killed_after(events: int, folder: Path, children: "subprocess.Popen[str]") -> int:
    """How many events the child had reported when it was killed."""
    folder.mkdir()
    os.mkfifo(folder / "reported")
    print(folder, file=children.stdin, flush=True)
    with (folder / "reported").open() as reported:
        child = int(reported.readline())
        count = 0
        while count < events:
            line = reported.readline()
            assert line, "the child ended by itself"
            count = int(line)
        os.kill(child, signal.SIGKILL)
        rest = reported.read().split("\n")[:-1]
    return int(rest[-1]) if rest else count


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))])
async def test_killed_at_fifty_random_points_every_event_is_there_and_the_session_goes_on(
    tmp_path: Path, seed: int, children: "subprocess.Popen[str]"
) -> None:
    chance = random.Random(seed)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        reported = killed_after(chance.randint(1, 700), folder, children)
        await check(folder, reported)


async def check(folder: Path, reported: int) -> None:
    journal = folder / "home/s.db"
    opened = reopen(journal)
    opened.session.close()
    assert opened.salvaged is None
    assert opened.session.state.event_count >= reported
    with closing(Journal(journal)) as again:
        assert replay(again, from_snapshot=False) == opened.session.state
    await go_on(folder)


async def go_on(folder: Path) -> None:
    story = Story(folder, [decide(respond("still here"), step="PLANNING")])
    assert not story.session.state.turn_open
    assert await story.tell("are you there?") == "done"
    assert story.said() == ["still here"]
    story.session.close()


class SilentStory(Story):
    """Nobody answers."""

    def answer(self, question: Question) -> Answer | None:
        return None


async def test_killed_at_a_gate_nothing_waits_for_an_approval_any_more(tmp_path: Path) -> None:
    """As a crash leaves it: the Gate is on record, its answer is not."""
    story = SilentStory(tmp_path, [decide(act("file_ops.write_file", path="a.txt", content="a"))], mode="ask")
    asked = asyncio.Event()
    story.session.subscribe(lambda _: asked.set(), QuestionAsked)
    turn = asyncio.create_task(story.tell("write it"))
    await asked.wait()
    assert story.session.state.phase is Phase.AWAITING_APPROVAL
    shutil.copytree(tmp_path / "home", tmp_path / "kept/home")
    story.chat.interrupt()
    await turn
    again = Story(tmp_path / "kept", [decide(respond("Go on."), step="PLANNING")], mode="ask")
    assert again.session.state.phase is Phase.PLANNING and again.session.state.pending_gate is None

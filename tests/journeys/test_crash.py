"""Killed at any moment, a session loses at most the reply being received."""

import asyncio
import random
import signal
import sys
from contextlib import closing
from pathlib import Path

from duckflow.agent.session import reopen, replay
from duckflow.store.journal import Journal
from tests.journeys.story import Story, decide, respond

KILLS = 50
AT_ONCE = 4
TOP = Path(__file__).parent.parent.parent


async def killed_after(events: int, folder: Path) -> int:
    """How many events the child had reported when it was killed."""
    folder.mkdir()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.journeys.endless_talk", str(folder), cwd=TOP, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout
    reported = 0
    while reported < events:
        line = await child.stdout.readline()
        assert line, "the child ended by itself"
        reported = int(line)
    child.send_signal(signal.SIGKILL)
    rest = (await child.communicate())[0].split(b"\n")[:-1]
    return int(rest[-1]) if rest else reported


async def test_killed_at_fifty_random_points_every_event_is_there_and_the_session_goes_on(tmp_path: Path) -> None:
    chance = random.Random(2026)
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with slots:
            folder = tmp_path / str(number)
            reported = await killed_after(chance.randint(1, 700), folder)
            await check(folder, reported)

    await asyncio.gather(*(one(number) for number in range(KILLS)))


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

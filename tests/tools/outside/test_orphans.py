"""Nothing of a server is left when Duckflow has ended, however it ended."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from duckflow.programs.launch import Launch, on_lifeline
from duckflow.programs.process import Process
from duckflow.programs.run import collect
from tests.journeys.processes import processes
from tests.journeys.story import Story, decide, respond
from tests.journeys.test_outside_tools import entry, servers, settings, told, until

CHAT = """
import asyncio, sys
from pathlib import Path
from tests.journeys.story import Story, decide, respond
from tests.journeys.test_outside_tools import entry, servers, settings

async def main():
    mark = sys.argv[1]
    given = settings(a=entry(mark), b=entry("stubborn", mark), c=entry("deaf", mark))
    story = Story(Path(mark), [decide(respond("Hello."))], settings=given)
    await story.tell("hello")
    print(*(server.state for server in servers(story).values()), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def gone(mark: str, seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while processes(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not processes(mark)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_it_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    """Even a child that has left its group and ignores signals is ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHAT, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    try:
        assert process.stdout and process.stdout.readline().split() == ["ready"] * 3
        assert len(processes(f"stdio_server.py {tmp_path}")) >= 1 and processes("SIG_IGN")
        os.kill(process.pid, how)
        process.wait(30)
        assert gone(str(tmp_path))
    finally:
        process.kill()


async def test_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    given = settings(a=entry(mark), b=entry("stubborn", mark))
    story = Story(tmp_path, [decide(respond("Hello."))], settings=given)
    async with told(story):
        await story.tell("hello")
        assert processes(mark)
    assert await asyncio.to_thread(gone, mark, 5)


async def test_a_killed_server_takes_its_children_along_and_is_restarted(tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    story = Story(tmp_path, [decide(respond("Hello."))], settings=settings(b=entry("stubborn", mark)))
    async with told(story):
        await story.tell("hello")
        before = processes(mark)
        server = next(pid for pid in before if "stdio_server" in Path(f"/proc/{pid}/cmdline").read_text())
        os.kill(server, signal.SIGKILL)
        await until(lambda: servers(story)["b"].state == "ready" and not before.keys() & processes(mark).keys())


async def test_the_launcher_says_what_cannot_be_started(tmp_path: Path) -> None:
    done = await collect(on_lifeline(Launch((str(tmp_path / "none"),), tmp_path, os.environ)))
    assert done.code == 127 and b"No such file" in done.err and done.out == b""


@pytest.mark.parametrize(("patience", "said"), [(5.0, "bye\n"), (0.0, "")])
async def test_a_launcher_with_patience_lets_a_program_end_by_itself(
    tmp_path: Path, patience: float, said: str
) -> None:
    script = "trap 'echo bye > said; exit' TERM; echo ready; while :; do sleep 0.01; done"
    launch, ready = Launch(("/bin/sh", "-c", script), tmp_path, os.environ), asyncio.Event()
    process = await Process.start(on_lifeline(launch, patience), lambda piece: ready.set())
    await ready.wait()
    assert await process.end()
    left = tmp_path / "said"
    assert (left.read_text() if left.exists() else "") == said

"""kill -9 in the middle of a job: of the terminal, of the process that goes on without one, of the model's server.

Nothing is done twice, nothing is lost: it goes on where it was."""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from duckflow.events.types import Event
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.settings import LlmSettings
from tests.journeys.working_jobs import STEPS, CarefulStory, begin_or_go_on

TOP = Path(__file__).parent.parent.parent
EVENTS = 110
"""So many a whole job takes, about."""
POINTS = [0, *(pytest.param(point, marks=pytest.mark.slow) for point in range(1, 17))]
"""With three kinds of killing these are 51 points."""
IMPATIENT = LlmSettings(tries=2, backoff_seconds=0.01, backoff_max_seconds=0.02)


@pytest.fixture
def workers() -> Iterator["subprocess.Popen[str]"]:
    """Starts a process with a job for every folder it is told."""
    command = [sys.executable, "-m", "tests.journeys.working_jobs", "job"]
    with subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def work_until(events: int, folder: Path, workers: "subprocess.Popen[str]") -> None:
    """A process works there, and is killed when so many events are on the record; it may have ended by then."""
    folder.mkdir(exist_ok=True)
    (folder / "reported").unlink(missing_ok=True)
    os.mkfifo(folder / "reported")
    print(folder, file=workers.stdin, flush=True)
    with (folder / "reported").open() as reported:
        child = int(reported.readline())
        while (line := reported.readline()) and int(line) < events:
            pass
        if line:
            os.kill(child, signal.SIGKILL)
        reported.read()
    end = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.01)


async def check_the_rest(folder: Path) -> None:
    story = CarefulStory(folder)
    await begin_or_go_on(story)
    check(story)
    await story.chat.aclose()
    story.session.close()


def check(story: CarefulStory) -> None:
    assert sorted(story.log()) == [str(number) for number in range(STEPS)], "nothing twice, nothing lost"
    assert all((story.folder / f"f{number}.txt").exists() for number in range(STEPS))
    [plan] = story.session.state.plans.values()
    assert plan.status == "completed"
    assert {job.status for job in story.session.state.jobs.values()} == {"completed"}


@pytest.mark.parametrize("point", POINTS)
async def test_the_terminal_is_killed(tmp_path: Path, point: int, workers: "subprocess.Popen[str]") -> None:
    work_until(random.Random(point).randint(30, EVENTS), tmp_path / "a", workers)
    await check_the_rest(tmp_path / "a")


@pytest.mark.parametrize("point", POINTS)
async def test_the_process_without_a_terminal_is_killed(
    tmp_path: Path, point: int, workers: "subprocess.Popen[str]"
) -> None:
    first, second = sorted(random.Random(100 + point).sample(range(30, EVENTS), 2))
    work_until(first, tmp_path / "a", workers)
    work_until(second, tmp_path / "a", workers)
    await check_the_rest(tmp_path / "a")


def serving(port: int) -> "subprocess.Popen[bytes]":
    server = subprocess.Popen([sys.executable, "-m", "tests.journeys.working_jobs", "serve", str(port)], cwd=TOP)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.02)
    raise AssertionError("the model's server does not listen")


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


@pytest.mark.parametrize("point", POINTS)
async def test_the_models_server_is_killed(tmp_path: Path, point: int) -> None:
    port, at = free_port(), random.Random(200 + point).randint(30, EVENTS)
    server = serving(port)
    try:
        story = CarefulStory(tmp_path)
        endpoint = Endpoint("reader", f"http://127.0.0.1:{port}/v1", (), tools=True)
        story.provider = EndpointModel(endpoint, "reader", settings=IMPATIENT)

        def watch(_: Event) -> None:
            if story.session.state.event_count == at:
                server.kill()

        story.session.subscribe(watch)
        await begin_or_go_on(story)
        server.kill()
        server.wait()
        server = serving(port)
        if story.session.state.plan and story.session.state.plan.status != "completed":
            [job] = story.session.state.jobs.values()
            assert job.status == "interrupted", "it is reported, and can be resumed"
            await begin_or_go_on(story)
        check(story)
        await story.chat.aclose()
        story.session.close()
        await asyncio.sleep(0)
    finally:
        server.kill()
        server.wait()

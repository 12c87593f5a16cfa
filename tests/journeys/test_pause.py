"""Pause, resume and cancel in the middle of a command: checked by its processes and by the file it writes."""

import asyncio
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.work import TaskChanged
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.state.question import Answer
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, until, when
from tests.journeys.processes import processes
from tests.journeys.story import Story, act
from tests.ui.console.terminal import Terminal

KINDS = ("bubblewrap", "landlock", "none")
WORDS = {
    "en": ("make a game", "yes", "pause", "resume", "cancel"),
    "ja": ("ゲームを実装して", "はい", "止めて", "再開", "中止して"),
}
AFTER = when("A background job has ended", report())


def usable(kind: str, folder: Path) -> None:
    sandbox = choose(SandboxSettings.model_validate({"kind": kind}), folder)
    sandbox.close()
    if sandbox.kind != kind:
        pytest.skip(f"this machine has no {kind}")


def ticking() -> tuple[str, str]:
    """A command that writes on and on, from a process below a process; and words that only its processes have."""
    mark = f"0.02{random.randrange(10**9):09}"
    return f"(while :; do echo tick >> ticks.txt; sleep {mark}; done) & wait", mark


async def job_of(tmp_path: Path, command: str, language: str = "en", **settings: Any) -> Story:
    """A story whose job runs the command."""
    script = [PROPOSE, SNAKE, run_step(1), {"tasks": [act("shell.run", command=command)]}, AFTER]
    story = Story(tmp_path, script, language=language, settings=settings)
    story.answers = [Answer(choice="yes")] * 3
    await story.tell(WORDS[language][0])
    await story.tell(WORDS[language][1])
    return story


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def wait_for(true: Callable[[], bool]) -> None:
    await asyncio.to_thread(_look_until, true)


def _look_until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")


def status(story: Story) -> str:
    return list(story.session.state.jobs.values())[-1].status


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("kind", "language"), [*((kind, "en") for kind in KINDS), ("bubblewrap", "ja")])
async def test_pause_freezes_a_running_command_resume_lets_it_go_on_and_cancel_ends_it(
    tmp_path: Path, kind: str, language: str
) -> None:
    usable(kind, tmp_path)
    _, _, pause, resume, cancel = WORDS[language]
    command, mark = ticking()
    story = await job_of(tmp_path, command, language, sandbox={"kind": kind})
    ticks = story.folder / "ticks.txt"
    await wait_for(lambda: size(ticks) > 0)

    await story.tell(pause)
    await wait_for(lambda: bool(processes(mark)) and set(processes(mark).values()) <= {"T"})
    assert status(story) == "paused"
    written = size(ticks)
    await asyncio.sleep(0.3)
    assert size(ticks) == written
    assert set(processes(mark).values()) == {"T"}

    await story.tell(resume)
    await wait_for(lambda: size(ticks) > written)
    assert status(story) == "running"

    await story.tell(pause)
    await wait_for(lambda: set(processes(mark).values()) == {"T"})
    await story.tell(cancel)
    assert (await job_ended(story)).status == "cancelled"
    assert processes(mark) == {}


async def test_the_time_of_a_task_and_of_its_command_stand_still_while_it_is_paused(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"agent": {"task_seconds": 2.0}, "shell": {"timeout_seconds": 2}}
    story = await job_of(tmp_path, "touch begun; sleep 0.2", **limits)
    await wait_for((story.folder / "begun").exists)
    await story.tell("pause")
    await until(story, lambda: status(story) == "paused")
    await asyncio.sleep(2.1)
    await story.tell("resume")
    assert (await job_ended(story)).status == "completed"
    result = next(event.result for event in story.all(TaskChanged) if event.status == "completed")
    seconds = float(result.split("after ")[1].split(" s")[0])
    assert seconds < 2.0, "the pause is no part of what it took"


async def test_what_a_job_left_running_is_paused_and_cancelled_with_it(tmp_path: Path) -> None:
    command, mark = ticking()
    tasks = [act("shell.run", command=command, background=True), act("shell.run", command=f"sleep 6{mark}")]
    script = [PROPOSE, SNAKE, run_step(1), {"tasks": tasks}]
    story = Story(tmp_path, script, settings={"shell": {"first_output_seconds": 0.1}})
    await story.tell("make a game")
    await story.tell("yes")
    await wait_for(lambda: bool(processes(f"sleep 6{mark}")))
    await story.tell("pause")
    await wait_for(lambda: set(processes(mark).values()) == {"T"})
    await story.tell("cancel")
    await job_ended(story)
    await wait_for(lambda: not processes(mark))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_crash_while_paused_leaves_no_stopped_process_behind(tmp_path: Path, kind: str) -> None:
    usable(kind, tmp_path)
    (tmp_path / "home/config").mkdir(parents=True)
    (tmp_path / "home/config/config.toml").write_text(f'[sandbox]\nkind = "{kind}"\n')
    command, mark = ticking()
    tasks = {"tasks": [act("shell.run", command=command)]}
    script = [{"json": line} for line in (PROPOSE, SNAKE, run_step(1), tasks)]
    terminal = Terminal(tmp_path, script, "--mode", "full-auto")
    try:
        terminal.wait_for("Say what you would like")
        terminal.enter("make a game")
        terminal.wait_for("Should I carry out this plan?")
        terminal.enter("yes")
        terminal.wait_until(lambda _: size(terminal.work / "ticks.txt") > 0)
        terminal.type("\x14")
        terminal.wait_for("⏸ Core loop 0/1")
        terminal.wait_until(lambda _: set(processes(mark).values()) == {"T"})
        terminal.process.kill(signal.SIGKILL)
        for _ in range(200):
            if not processes(mark):
                break
            time.sleep(0.02)
        assert processes(mark) == {}
    finally:
        terminal.process.close(force=True)
    again = Terminal(tmp_path, [], "-c")
    try:
        again.wait_for("was interrupted. Say")
    finally:
        again.process.close(force=True)

"""Jobs that outlive their terminal."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from duckflow.remote.server import Remote
from tests.journeys.story import act, decide
from tests.ui.console.terminal import PATIENCE, Terminal, start

STEPS: list[dict[str, Any]] = [{"name": "Core loop", "description": "game.py", "success": "", "depends_on": []}]
PROPOSE = {"json": decide(act("plan_tool.propose", goal="a snake game"), step="PLANNING", next_step="pending_user")}
RUN = {"json": decide(act("task_loop.run"), next_step="defer")}
TASKS: list[Any] = [
    act("shell.run", command="while [ ! -e go ]; do sleep 0.1; done; echo once >> log"),
    act("file_ops.write_file", path="game.py", content="x = 1\n"),
]
REPLIES: list[Any] = [
    PROPOSE,
    {"json": {"name": "Snake game", "steps": STEPS, "risks": []}},
    RUN,
    {"json": {"tasks": TASKS}, "when": "Now its step"},
    {"json": {"summary": "One file.", "causes": [], "next_action": "play"}, "when": "background job has ended"},
]


@pytest.fixture
def sockets(tmp_path: Path) -> Iterator[Path]:
    """The processes that go on are ended with the test."""
    yield tmp_path
    for path in (tmp_path / "home").rglob("*.sock"):
        with suppress(OSError):
            os.kill(Remote(path).call("pid"), signal.SIGKILL)


def the_socket(top: Path) -> Path:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := list((top / "home").rglob("*.sock")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("there is no socket")


def listed(top: Path, wanted: str) -> str:
    """What `duckflow jobs` says, once it says what is waited for."""
    environment = {**os.environ, "DUCKFLOW_HOME": str(top / "home"), "DUCKFLOW_LANG": "en"}
    command = [sys.executable, "-m", "duckflow", "jobs"]
    end, told = time.monotonic() + PATIENCE, ""
    while wanted not in told and time.monotonic() < end:
        told = subprocess.run(command, env=environment, cwd=top, capture_output=True, text=True, check=False).stdout
    assert wanted in told
    return told


def test_leaving_asks_and_the_job_goes_on_without_the_terminal(sockets: Path, opened: list[Terminal]) -> None:
    top = sockets
    terminal = start(opened, top, REPLIES)
    terminal.enter("make a snake game")
    terminal.wait_for("Shall I do it like this?")
    terminal.enter("yes")
    terminal.wait_for("for Core loop:")
    terminal.answer("yes")
    terminal.wait_for("sleep 0.1; done")
    (terminal.work / "go").touch()
    screen = terminal.wait_for("+x = 1")
    terminal.answer("/quit")
    screen = terminal.wait_for("What shall become of it?")
    assert "2. let it go on without the terminal" in screen
    terminal.answer("2")
    assert terminal.wait_for_end() == 0
    path = the_socket(top)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told = listed(top, "it asks: may I?")
    assert "Core loop" in told and "game.py" in told

    model = f"scripted:{top / 'script.jsonl'}"
    again = start(opened, top, REPLIES, command=(sys.executable, "-m", "duckflow", "attach", "-m", model))
    again.wait_for("for Core loop:")
    again.wait_for("+x = 1")
    again.answer("yes")
    screen = again.wait_for("next: play")
    assert "Core loop: done. 2 tasks completed." in screen and "⚙ job_" not in screen
    assert (terminal.work / "log").read_text() == "once\n", "nothing is done twice"
    assert not list((top / "home").rglob("*.sock"))


def test_another_process_uses_the_conversation_over_the_socket(sockets: Path, opened: list[Terminal]) -> None:
    top = sockets
    terminal = start(opened, top, [*REPLIES[:3], {"json": {"tasks": TASKS[1:]}, "when": "Now its step"}, REPLIES[-1]])
    terminal.enter("make a snake game")
    terminal.wait_for("Shall I do it like this?")
    terminal.enter("yes")
    terminal.wait_for("+x = 1")
    terminal.answer("/quit")
    terminal.wait_for("What shall become of it?")
    terminal.answer("2")
    assert terminal.wait_for_end() == 0
    the_socket(top)
    listed(top, "it asks: may I?")
    remote = Remote(the_socket(top))
    [question] = remote.call("questions")
    assert question["gate"]["diff"].count("+x = 1") == 1 and question["job_name"] == "Core loop", "the whole question"
    remote.call("hear", after=0)
    with pytest.raises(ConnectionError, match="no_such"):
        remote.call("no_such")
    assert remote.call("answer", question_id=question["question_id"], choice="yes")["meaning"] == "answer"
    remote.until_gone()
    remote.close()
    assert (terminal.work / "game.py").read_text() == "x = 1\n"
    again = start(opened, top, [], "-c")
    again.wait_for("Snake game")

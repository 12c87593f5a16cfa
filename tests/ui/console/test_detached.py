"""Jobs that outlive their terminal, and terminals that join a conversation: real processes, real sockets."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duckflow.remote.conversation import RemoteConversation
from tests.journeys.story import act, decide
from tests.ui.console.terminal import PATIENCE, Terminal, open_terminal, start

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
    """Ends the processes that outlive their terminal with the test."""
    yield tmp_path
    for path in (tmp_path / "home").rglob("*.sock"):
        with suppress(OSError):
            os.kill(process_at(path), signal.SIGKILL)


def process_at(path: Path) -> int:
    async def look() -> int:
        remote = RemoteConversation(path)
        await remote.attach()
        await remote.aclose()
        return remote.process

    return asyncio.run(look())


def until(true: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError(what)


def the_socket(top: Path) -> Path:
    return until(lambda: next((top / "home").rglob("*.sock"), None), "there is no socket")


def listed(top: Path, wanted: str, language: str = "en") -> str:
    """Returns what `duckflow jobs` prints, once it contains the expected text."""
    environment = {**os.environ, "DUCKFLOW_HOME": str(top / "home"), "DUCKFLOW_LANG": language}
    command = [sys.executable, "-m", "duckflow", "jobs"]
    end, told = time.monotonic() + PATIENCE, ""
    while wanted not in told and time.monotonic() < end:
        told = subprocess.run(command, env=environment, cwd=top, capture_output=True, text=True, check=False).stdout
    assert wanted in told
    return told


def join(opened: list[Terminal], top: Path, language: str) -> Terminal:
    """Starts `duckflow attach` and waits for its greeting."""
    command = (sys.executable, "-m", "duckflow", "attach")
    terminal = open_terminal(opened, top, None, command=command, DUCKFLOW_LANG=language)
    terminal.wait_for("/help")
    return terminal


def at_its_gate(opened: list[Terminal], top: Path, language: str) -> Terminal:
    """A chat whose job has asked whether it may write a file."""
    terminal = start(opened, top, [*REPLIES[:3], *WRITE], DUCKFLOW_LANG=language)
    terminal.enter("make a snake game")
    terminal.wait_for(SAYS[language].draft)
    terminal.enter(SAYS[language].yes)
    terminal.wait_for("+x = 1")
    return terminal


def detach(terminal: Terminal, language: str) -> None:
    terminal.answer("/quit")
    terminal.wait_for(SAYS[language].leaving)
    terminal.answer("2")
    assert terminal.wait_for_end() == 0


class Says(NamedTuple):
    yes: str
    draft: str
    asks: str
    leaving: str
    waits: str
    joined: str
    elsewhere: str
    done: str
    dead: str
    moves: str


SAYS = {
    "en": Says(
        "yes",
        "Should I carry out this plan?",
        "Core loop asks:",
        "What should happen to it?",
        "waiting for your answer:",
        "You have joined a conversation",
        "This question was answered on another screen.",
        "Core loop: done. 1 task completed.",
        "Nothing of the session is lost",
        "The work is moving",
    ),
    "ja": Says(
        "はい",
        "この計画で進めますか",
        "「Core loop」からの質問:",
        "どうしますか",
        "返事待ち:",
        "会話に加わりました",
        "ほかの画面で回答されました",
        "Core loop: 完了。タスク 1 件を終えました。",
        "プロセスは終わっています",
        "別のプロセスに移しています",
    ),
}
LANGUAGES = pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.slow), "ja"])
REPORT: dict[str, Any] = {"summary": "One file.", "causes": [], "next_action": "play"}
WRITE: list[Any] = [
    *({"json": {"tasks": TASKS[1:]}, "when": label} for label in ("Now its step", "いまのステップ")),
    *({"json": REPORT, "when": label} for label in ("background job has ended", "ジョブが終わりました")),
]


def test_leaving_asks_and_the_job_goes_on_without_the_terminal(sockets: Path, opened: list[Terminal]) -> None:
    top = sockets
    terminal = start(opened, top, REPLIES, "--max-budget-usd", "5")
    terminal.enter("make a snake game")
    terminal.wait_for("Should I carry out this plan?")
    terminal.enter("yes")
    terminal.wait_for("Core loop asks:")
    terminal.answer("yes")
    terminal.wait_for("sleep 0.1; done")
    (terminal.work / "go").touch()
    terminal.wait_for("+x = 1")
    terminal.answer("/quit")
    terminal.wait_for("What should happen to it?")
    terminal.wait_for("2. let it continue without the terminal")
    terminal.answer("2")
    assert terminal.wait_for_end() == 0
    told = listed(top, "waiting for your answer:")
    assert "Core loop" in told and "game.py" in told
    path = the_socket(top)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    host = process_at(path)
    given = Path(f"/proc/{host}/cmdline")
    assert not given.exists() or "--max-budget-usd=5.0" in given.read_text(), "the limits go with it"

    # Its Gate is answered from a terminal that joins, while the job stays where it is.
    again = join(opened, top, "en")
    again.wait_for("Core loop asks:")
    again.wait_for("+x = 1")
    again.answer("yes")
    screen = again.wait_for("next: play")
    assert "Core loop: done. 2 tasks completed." in screen and "⚙ job_" not in screen
    assert (terminal.work / "log").read_text() == "once\n", "nothing is done twice"
    assert process_at(path) == host, "nothing was taken over"
    # One can go on talking there; when the last one leaves and nothing runs, the process ends.
    again.enter("/tasks")
    again.wait_for("› /tasks")
    again.enter("/quit")
    assert again.wait_for_end() == 0
    until(lambda: not path.exists(), "the process has not ended")


@pytest.mark.slow
def test_a_task_at_work_is_finished_before_the_terminal_is_left(sockets: Path, opened: list[Terminal]) -> None:
    top = sockets
    terminal = start(opened, top, REPLIES)
    terminal.enter("make a snake game")
    terminal.wait_for("Should I carry out this plan?")
    terminal.enter("yes")
    terminal.wait_for("Core loop asks:")
    terminal.answer("yes")
    terminal.wait_for("⚙ Core loop")
    terminal.enter("/quit")
    terminal.wait_for("What should happen to it?")
    terminal.answer("2")
    terminal.wait_for("as soon as this task is finished")
    assert "1. leave at once" in terminal.wait_for("2. stay here")
    (terminal.work / "go").touch()
    assert terminal.wait_for_end() == 0
    assert "game.py" in listed(top, "waiting for your answer:"), "it went on with the next task"
    assert (terminal.work / "log").read_text() == "once\n"


@LANGUAGES
@pytest.mark.slow
def test_two_terminals_see_the_same_and_the_first_answer_counts(
    sockets: Path, opened: list[Terminal], language: str
) -> None:
    top, says = sockets, SAYS[language]
    detach(at_its_gate(opened, top, language), language)
    listed(top, says.waits, language)
    one, two = join(opened, top, language), join(opened, top, language)
    for terminal in (one, two):
        terminal.wait_for(says.joined)
        terminal.wait_for("+x = 1")
    one.answer(says.yes)
    screen = two.wait_for(says.elsewhere)
    assert f"› {says.yes}" in screen
    for terminal in (one, two):
        assert says.done in terminal.wait_for("play")
    assert says.elsewhere not in one.shown()
    assert (one.work / "game.py").read_text() == "x = 1\n"


@LANGUAGES
@pytest.mark.slow
def test_leaving_a_joined_terminal_stops_nothing(sockets: Path, opened: list[Terminal], language: str) -> None:
    top, says = sockets, SAYS[language]
    detach(at_its_gate(opened, top, language), language)
    listed(top, says.waits, language)
    one = join(opened, top, language)
    one.wait_for("+x = 1")
    one.type("\x04")
    assert one.wait_for_end() == 0
    assert "duckflow attach" in one.shown()
    two = join(opened, top, language)
    two.wait_for("+x = 1")
    two.answer(says.yes)
    two.wait_for("play")


def test_a_chat_that_was_joined_at_rest_is_left_where_it_runs(sockets: Path, opened: list[Terminal]) -> None:
    """Nothing has been said, so there is no session to resume; it is open elsewhere and can be joined again."""
    start(opened, sockets, [], DUCKFLOW_LANG="en")
    the_socket(sockets)
    second = join(opened, sockets, "en")
    second.wait_for("You have joined")
    assert "Continuing" not in second.shown()
    second.type("\x04")
    assert second.wait_for_end() == 0
    assert "Come back with: duckflow attach" in second.shown()


@LANGUAGES
def test_a_second_terminal_joins_a_chat_and_stays_when_the_first_leaves_its_job_alone(
    sockets: Path, opened: list[Terminal], language: str
) -> None:
    top, says = sockets, SAYS[language]
    first = at_its_gate(opened, top, language)
    the_socket(top)
    second = join(opened, top, language)
    second.wait_for("+x = 1")
    second.enter("/resume")
    second.wait_for("/quit")
    detach(first, language)
    second.wait_for(says.moves)
    second.wait_until(lambda screen: "+x = 1" in screen.rpartition(says.moves)[2], what="the new process's question")
    second.answer(says.yes)
    second.wait_for("play")
    assert (first.work / "game.py").read_text() == "x = 1\n"


@LANGUAGES
@pytest.mark.slow
def test_a_dead_process_is_told_and_the_session_is_opened_here(
    sockets: Path, opened: list[Terminal], language: str
) -> None:
    top, says = sockets, SAYS[language]
    detach(at_its_gate(opened, top, language), language)
    listed(top, says.waits, language)
    path = the_socket(top)
    watching = join(opened, top, language)
    watching.wait_for("+x = 1")
    os.kill(process_at(path), signal.SIGKILL)
    assert watching.wait_for_end() == 0
    assert f"duckflow -r {path.stem}" in watching.shown()
    model = f"scripted:{top / 'script.jsonl'}"
    command = (sys.executable, "-m", "duckflow", "attach", "-m", model)
    again = start(opened, top, WRITE, command=command, DUCKFLOW_LANG=language)
    again.wait_for(says.dead)
    again.wait_for("+x = 1")
    again.answer(says.yes)
    again.wait_for("play")

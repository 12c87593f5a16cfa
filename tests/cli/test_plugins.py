"""A stranger's package adds a tool, a command, a policy and a wire without touching ours."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

EXAMPLE = Path(__file__).parents[2] / "docs/plugin-example"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(EXAMPLE)], check=True, capture_output=True)
    return target


@pytest.fixture
def shell(tmp_path: Path, installed: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.environment["PYTHONPATH"] = str(installed)
    (shell.work / "a.py").write_text("A = 1\n")
    return shell


def stamping(shell: Shell) -> str:
    return shell.script(decide(act("stamp.file", path="a.py"), next_step="continue"), decide(respond("Stamped.")))


def result(shell: Shell, *flags: str) -> dict[str, Any]:
    done = shell.run("-p", "stamp a.py", "--output-format", "json", "-m", stamping(shell), *flags)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_the_tool_of_a_plugin_is_offered_gated_counted_and_undone(shell: Shell) -> None:
    assert "stamp.file" in shell.run("prompt", "-m", stamping(shell)).stdout
    assert result(shell)["left_out"], "nobody could say yes"
    assert (shell.work / "a.py").read_text() == "A = 1\n"
    done = result(shell, "--mode", "full-auto")
    stamped = done["actions"][0]
    assert stamped["operation"] == "stamp.file" and stamped["changed"] == ["a.py"]
    assert done["exit_code"] == 0 and (shell.work / "a.py").read_text() == "A = 1\n# stamped\n"
    assert "a.py" in shell.run("-c", "-p", "/stamped", "-m", "scripted").stdout
    assert "stamp.file" in shell.run("audit", "--json").stdout
    undone = shell.run("-c", "-p", "/undo last", "--mode", "contained", "--yes-really", "-m", "scripted")
    assert (shell.work / "a.py").read_text() == "A = 1\n", undone.stderr


def test_plugins_are_listed_and_switched_off(shell: Shell) -> None:
    listed = shell.run("plugins").stdout
    assert all(name in listed for name in ("stamp ", "stamped", "stamp-note", "stamp-wire", "duckflow-stamp 1.0"))
    shell.write_config('[plugins]\noff = ["duckflow-stamp"]\n')
    assert shell.run("plugins").stdout.count("switched off") == 4
    result(shell, "--mode", "full-auto")
    assert (shell.work / "a.py").read_text() == "A = 1\n", "there is no such tool"


def test_a_plugin_that_fails_is_reported_and_hurts_nothing(shell: Shell, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    about = broken / "bad-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    entries = "[duckflow.tools]\nbad = bad_module:make\n[duckflow.policies]\nworse = worse:Falls\n"
    (about / "entry_points.txt").write_text(entries)
    (broken / "bad_module.py").write_text("raise RuntimeError('out of order')\n")
    policy = "from duckflow.agent.policies.policy import Policy\n"
    policy += "class Falls(Policy):\n    def __init__(self, session):\n        pass\n"
    policy += "    async def opening(self, turn):\n        raise ValueError('fell')\n"
    (broken / "worse.py").write_text(policy)
    shell.environment["PYTHONPATH"] = str(broken)
    done = shell.run("-p", "hello", "-m", shell.script())
    assert done.returncode == 0 and "Hello there." in done.stdout
    assert "out of order" in done.stderr and "fell" in done.stderr
    assert "out of order" in shell.run("plugins").stdout


def test_places_that_have_not_changed_are_not_looked_through_again(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "no plugins" in shell.run("plugins").stdout
    kept = shell.home / "data/plugins.json"
    before = kept.stat().st_ino
    assert shell.run("-p", "hi", "-m", shell.script()).returncode == 0
    assert kept.stat().st_ino == before
    (shell.work / "bad-1.dist-info").mkdir()
    (shell.work / "bad-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    (shell.work / "bad-1.dist-info/entry_points.txt").write_text("[duckflow.tools]\nbad = os:system\n")
    assert "no plugins" in shell.sh("duckflow plugins").stdout, "the work folder brings none"

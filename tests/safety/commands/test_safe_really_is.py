"""Commands called safe are run for real, in a folder of their own: nothing in it changes, nothing is sent."""

import shutil
from pathlib import Path

import pytest

from benchmarks.judge_fuzz import Ear, Pond, Tally, fuzz, new_folder, run_batch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings

pytestmark = pytest.mark.skipif(not shutil.which("bash") or not shutil.which("git"), reason="needs bash and git")


def test_nothing_changes_and_nothing_is_sent_when_commands_called_safe_are_run(tmp_path: Path) -> None:
    tally = fuzz(count=250, seed=7, top=tmp_path.resolve())
    assert tally.safe > 20
    assert not (tally.changed or tally.leaked or tally.refused)
    assert tally.heard == 0


def test_the_fuzz_notices_each_kind_of_harm(tmp_path: Path) -> None:
    """Sets off each canary once: a file made, rights, times, a file gone, an alias run, something read outside, or
    sent."""
    top, ear = tmp_path.resolve(), Ear()
    pond, sandbox = Pond(new_folder(top / "pond")), choose(SandboxSettings(), top)
    changing = [
        "touch new",
        "chmod 600 a.txt",
        "touch -d yesterday b.txt",
        "rm names",
        "git quack",
        "echo > ../outside/y",
    ]
    for command in changing:
        tally = Tally()
        run_batch([command], pond, 1, sandbox, tally)
        assert list(tally.changed) == [command]
    tally = Tally()
    sending = f"exec 3<>/dev/tcp/127.0.0.1/{ear.port}"
    run_batch(["cat ../outside/file.txt", "cat .env", sending], pond, 0, sandbox, tally)
    covered = sandbox.kind == "bubblewrap"
    assert list(tally.leaked) == ["cat ../outside/file.txt", *([] if covered else ["cat .env"])]
    if sandbox.kind != "none":
        assert ear.heard == 1
    sandbox.close()

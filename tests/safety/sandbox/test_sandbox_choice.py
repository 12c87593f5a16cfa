"""The choice of the sandbox, and the text about it for people."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.landlock import version
from duckflow.safety.sandbox.paths import Scratch, sweep_scratch
from duckflow.safety.sandbox.settings import SandboxSettings

CHOOSE = """
import sys
from pathlib import Path
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
sandbox = choose(SandboxSettings(kind=sys.argv[1]), Path.cwd())
print(sandbox.kind, sandbox.says.key, sandbox.says.values.get("reason", ""))
"""
BROKEN = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"


def chosen(folder: Path, kind: str, path: Path) -> list[str]:
    """Chooses in a process of its own, since the choice depends on PATH."""
    done = subprocess.run(
        [sys.executable, "-c", CHOOSE, kind],
        cwd=folder,
        env={"PATH": str(path), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().split(" ", 2)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def put(folder: Path, text: str) -> None:
    program = folder / "bwrap"
    program.write_text(text)
    program.chmod(0o755)


@pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock, or an old one")
def test_landlock_is_used_where_bubblewrap_is_missing(work: Path, programs: Path) -> None:
    assert chosen(work, "auto", programs) == ["landlock", "sandbox.landlock_missing"]
    put(programs, BROKEN)
    kind, key, reason = chosen(work, "auto", programs)
    assert (kind, key) == ("landlock", "sandbox.landlock_broken")
    assert reason == "bwrap: No permissions to create new namespace"


def test_a_named_sandbox_that_does_not_work_leaves_none(work: Path, programs: Path) -> None:
    assert chosen(work, "bubblewrap", programs) == ["none", "sandbox.none_missing"]
    put(programs, BROKEN)
    assert chosen(work, "bubblewrap", programs)[:2] == ["none", "sandbox.none_broken"]


def test_a_bubblewrap_that_came_with_the_work_folder_is_not_used(work: Path) -> None:
    put(work, "#!/bin/sh\nexit 0\n")
    assert chosen(work, "bubblewrap", work) == ["none", "sandbox.none_missing"]


def test_the_sandbox_can_be_switched_off(tmp_path: Path) -> None:
    sandbox = choose(SandboxSettings(kind="none"), tmp_path)
    assert (sandbox.kind, sandbox.says.key) == ("none", "sandbox.off")


KILLED = """
import os, signal
from duckflow.safety.sandbox.paths import Scratch
scratch = Scratch()
(scratch.folder / "left").write_text("behind")
print(scratch.top, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_temporary_files_of_a_killed_session_are_removed_and_those_of_a_living_one_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    living = Scratch()
    died = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    left = Path(died.stdout.strip())
    (tmp_path / "duckflow-of-somebody-else").mkdir()
    assert (left / "tmp/left").exists()
    assert sweep_scratch() == 1
    assert not left.exists()
    assert living.folder.is_dir()
    assert (tmp_path / "duckflow-of-somebody-else").is_dir()
    living.close()
    assert not living.top.exists()

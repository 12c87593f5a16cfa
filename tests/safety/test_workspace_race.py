"""Someone swaps folders and files for links to the outside while we work: nothing may ever lead out."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace

SECONDS = 0.5
PATIENCE = 30
"""Seconds to wait. On a busy machine the folder may stand still so rarely that nothing was read yet."""

# Swaps by renaming, as fast as it can: `folder` and `file` are now real, now links to the outside.
SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
os.symlink("../outside", "folder-link"); os.symlink("../../outside/file", "real/file-link")
print("ready", flush=True)
while True:
    for real, link, name in (("real", "folder-link", "folder"), ("kept", "file-link", "file")):
        where = "" if name == "folder" else "real/" if os.path.isdir("real") else "folder/"
        try:
            os.rename(where + real, where + name); os.rename(where + name, where + real)
            os.rename(where + link, where + name); os.rename(where + name, where + link)
        except OSError:
            pass
"""


@contextlib.contextmanager
def swapping(folder: Path) -> Generator[None]:
    process = subprocess.Popen([sys.executable, "-c", SWAPPER, str(folder)], stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for folder in ("outside", "work/real"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside/file").write_text("outside")
    (tmp_path / "work/real/kept").write_text("inside")
    (tmp_path / "work/real/file").write_text("inside")
    return tmp_path


def test_reading_never_returns_a_file_from_outside(top: Path) -> None:
    workspace = Workspace(top / "work")
    seen: set[bytes] = set()
    with swapping(top / "work"):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or (not seen and time.monotonic() < end + PATIENCE):
            for path in ("folder/file", "real/file", f"{top}/work/folder/file"):
                with contextlib.suppress(OSError, ToolError):
                    seen.add(workspace.read_bytes(path, 1000))
    assert seen == {b"inside"}


def test_changing_never_reaches_a_file_outside(top: Path) -> None:
    workspace = Workspace(top / "work")
    done = 0
    with swapping(top / "work"):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for path in ("folder/file", "real/file"):
                with contextlib.suppress(OSError, ToolError):
                    workspace.write_atomic(path, b"inside")
                    done += 1
                with contextlib.suppress(OSError, ToolError):
                    workspace.write_atomic(f"{path}-new", b"inside")
                    workspace.delete(f"{path}-new")
                with contextlib.suppress(OSError, ToolError):
                    workspace.make_folder("folder/made")
    assert done > 0
    assert [path.name for path in (top / "outside").iterdir()] == ["file"]
    assert (top / "outside/file").read_text() == "outside"

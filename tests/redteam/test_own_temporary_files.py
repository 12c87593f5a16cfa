"""The folder for temporary files, in which a sandbox keeps what it mounts, never lies where commands or file tools
write: they would swap a part of it for a link, and the next command would get what the link leads to."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from duckflow.errors import DuckflowError
from duckflow.programs.find import keep_temporary_files_out
from duckflow.review.change import checked_out, patched
from duckflow.safety.git import Git
from duckflow.ui.console.keys import edit_text
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import END, Ground

SWAP = """\
import glob, os, sys
for place in sys.argv[2:]:
    for folder in glob.glob(place + "/**/duckflow-*", recursive=True, include_hidden=True):
        os.rename(f"{folder}/tmp", f"{folder}/old")
        os.symlink(sys.argv[1], f"{folder}/tmp")
"""
USE = "echo hit > /tmp/hit; echo hit > /var/tmp/hit; echo hit > $TMPDIR/file; cat /tmp/deep/file $TMPDIR/deep/file"
PLACES = ["work/tmp", "work", "work/.cache/deep/tmp", "link", "writable", "writable/tmp"]


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("place", PLACES)
async def test_temporary_files_lie_where_no_command_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: str
) -> None:
    ground = Ground(tmp_path)
    (tmp_path / "work/inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work/inner")
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (ground.work / "swap.py").write_text(SWAP)
    top = tmp_path / ("writable" if "writable" in place else "work")
    swap = act("shell.run", command=f"python3 swap.py {ground.outside} {top}")
    use = act("shell.run", command=USE)
    tries = [decide(action, respond("done"), step="EXECUTION", next_step="continue") for action in (swap, use)]
    settings = {"sandbox": {"kind": kind, "writable": [str(tmp_path / "writable")]}}
    story = Story(tmp_path, [*tries, END, END], settings=settings)
    await story.tell("go on")
    assert sorted(path.name for path in ground.outside.iterdir()) == ["deep", "file"]
    assert "deep\n" not in story.prompt()


TEMPORARY = ["tmp", ".", ".cache/deep/tmp", "way/tmp"]
DIFF = "diff --git a/f1 b/f1\n--- a/f1\n+++ b/f1\n@@ -1 +1 @@\n-one\n+two\n"


@contextlib.contextmanager
def meddling(work: Path, meddle: Callable[[Path], None]) -> Generator[None]:
    """Does what a command in the background could do to every new file and folder of the work folder."""
    has_ended = threading.Event()

    def look() -> None:
        while not has_ended.is_set():
            for path in (*work.rglob("duckflow-*/*"), *work.rglob("tmp*/*")):
                with contextlib.suppress(OSError):
                    meddle(path)
            time.sleep(0.001)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


@pytest.fixture(params=TEMPORARY)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    work = tmp_path / "work"
    (work / "inner").mkdir(parents=True)
    (work / "way").symlink_to("inner")
    (tmp_path / "outside").mkdir()
    (work / request.param).mkdir(parents=True, exist_ok=True)
    for number in range(200):
        (work / f"f{number}").write_text("one\n")
    name = ["-c", "user.name=d", "-c", "user.email=d@p"]
    for words in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "start"]):
        subprocess.run(["git", "-C", str(work), *words], check=True, capture_output=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(work / request.param))
    monkeypatch.setattr(tempfile, "tempdir", None)
    keep_temporary_files_out((".",))
    return work


def swap_for_link(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rename(f"{path}-gone")
        path.symlink_to(Path(os.environ["OUTSIDE"]))


async def test_a_review_checks_files_out_where_no_command_writes(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE", str(work.parent / "outside"))
    git = Git(work)
    with meddling(work, swap_for_link), contextlib.suppress(DuckflowError, OSError):
        async with checked_out(git, await git.commit_of("HEAD")):
            pass
        async with patched(work, DIFF):
            pass
    assert not list((work.parent / "outside").iterdir())


def test_the_text_in_an_editor_is_changed_by_no_command(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = work.parent / "editor"
    editor.write_text("#!/bin/sh\nsleep 0.2\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))

    def write(path: Path) -> None:
        path.write_text("evil")

    with meddling(work, write):
        assert edit_text("good") == "good"


TELL = """\
import os, sys, duckflow.programs.find as find
find.keep_temporary_files_out((".",))
print(os.environ["TMPDIR"], find.user_environment()["TMPDIR"])
"""


@pytest.mark.parametrize("place", TEMPORARY)
def test_programs_that_are_started_get_another_place_and_the_users_own_keep_theirs(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(tmp_path / place)}
    told = subprocess.check_output([sys.executable, "-c", TELL], cwd=tmp_path, env=environment, text=True)
    own_place, users_place = told.split()
    assert not Path(own_place).is_relative_to(tmp_path) and users_place == str(tmp_path / place)

"""The folder for temporary files, in which a sandbox keeps what it mounts, never lies where commands or file tools
write: they would swap a part of it for a link, and the next command would get what the link leads to."""

import tempfile
from pathlib import Path

import pytest

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

"""Git as Duckflow itself calls it, outside the sandbox: a folder's settings make it start no program."""

import subprocess
from pathlib import Path

import pytest

from duckflow.cli.reviewing import wanted_change
from duckflow.errors import UsageError
from tests.redteam.ground import Ground


def hostile(top: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    ground = Ground(top)
    ground.make_repository()
    (ground.work / "notes.txt").write_text("changed\n")
    monkeypatch.setenv("HOME", str(top / "home"))
    return ground


@pytest.mark.parametrize("wanted", ["", "HEAD", "HEAD..", "main", "..HEAD", "-"])
async def test_a_review_starts_no_program_of_a_folder_that_is_not_trusted(
    tmp_path: Path, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = hostile(tmp_path, monkeypatch)
    with pytest.raises(UsageError):
        async with wanted_change(ground.work, wanted, "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-one\n+1\n"):
            pass
    assert not (ground.outside / "hit").exists() and not (ground.work / "hit").exists()


async def test_a_review_of_a_plain_repository_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    commit(work)
    (work / "a.txt").write_text("two\n")
    async with wanted_change(work, "") as (_, change):
        assert "+two" in change.diff


def commit(work: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=d", "-c", "user.email=d@p", "commit", "-qm", "s"]):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)

"""A failure of git because of bubblewrap comes with a way that works."""

import shutil
import subprocess
from pathlib import Path

import pytest
from shelling import shell_in

from duckflow.safety.sandbox.packs import MOST_PACKS


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_failures_of_git_in_the_sandbox_come_with_a_way_that_works(tmp_path: Path) -> None:
    def git(*words: str, folder: Path) -> None:
        named = ("-c", "user.name=d", "-c", "user.email=d@p", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
        subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)

    there = tmp_path / "there"
    there.mkdir()
    for folder, count in ((tmp_path, 150), (there, 1)):
        git("init", "-q", folder=folder)
        for number in range(count):
            (folder / f"file{number}").write_text(f"{number}\n")
        git("add", "file*", folder=folder)
        git("commit", "-qm", "first", folder=folder)
    git("repack", "-dq", folder=there)
    shell = shell_in(tmp_path, "bubblewrap")
    way = "git push -q --receive-pack='git -c receive.unpackLimit=1000000 receive-pack'"
    pushed = await shell.run("git push -q ./there HEAD:refs/heads/other")
    assert "exit code 1" in pushed.for_model and way.removeprefix("git push -q ") in pushed.for_model
    assert "exit code 0" in (await shell.run(f"{way} ./there HEAD:refs/heads/other")).for_model
    git("repack", "-dq", folder=tmp_path)
    (tmp_path / "collect.sh").write_text("git add collect.sh; git repack -adfq --no-write-bitmap-index\n")
    assert "names git" in (await shell.run("sh collect.sh")).for_model
    packs = tmp_path / ".git/objects/pack"
    for file in list((there / ".git/objects/pack").iterdir()):
        for number in range(MOST_PACKS + 1):
            shutil.copy(file, packs / f"pack-{number:040}{file.suffix}")
    full = await shell.run("git repack -dq")
    assert f"more than {MOST_PACKS} packs" in full.for_model and "git gc" in full.for_model

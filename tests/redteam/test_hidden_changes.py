"""A change that tries to hide from its reviewer, by attributes, settings, bytes, names and links of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from duckflow.agent.permissions import difference
from duckflow.cli.reviewing import wanted_change
from duckflow.editor.tool_calls import hunks
from duckflow.fleet.worktree import Worktree
from duckflow.review.current_review import changed_lines
from duckflow.safety.git import Git
from duckflow.state.changes import read_diff

EVIL = "import os\nos.system('canary')\n"
HIDING = {
    "no diff": ("*.py -diff\n", "app.py", EVIL),
    "binary": ("* binary\n", "app.py", EVIL),
    "a driver": ("*.py diff=none\n", "app.py", EVIL),
    "macro": ("[attr]plain -diff -text\n*.py plain\n", "app.py", EVIL),
    "deeper": ("", "src/app.py", EVIL),
    "nul": ("", "app.js", "/*\0*/ " + EVIL),
    "no utf-8": ("", "app.py", "# \udce9\udcff\n" + EVIL),
    "quotes": ("* -diff\n", 'a"\tb.py', EVIL),
    "not exported": ("app.py export-ignore\n", "app.py", EVIL),
}
SETTINGS = (
    *("diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.relative=true", "diff.external=false", "color.ui=always"),
    *("diff.none.binary=true", "diff.renames=copies", "diff.ignoreSubmodules=all", "diff.submodule=log"),
)


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.email=a@b", "-c", "user.name=a")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("DUCKFLOW_HOME", str(tmp_path / "duckflow"))
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
    return folder


def hide(work: Path, way: str) -> str:
    attributes, name, text = HIDING[way]
    (work / name).parent.mkdir(exist_ok=True)
    (work / name).write_text(text, "utf-8", "surrogateescape")
    if attributes or way == "deeper":
        place = work / "src/.gitattributes" if way == "deeper" else work / ".gitattributes"
        place.write_text(attributes or "* -diff\n")
    return name


async def reviewed(work: Path, wanted: str) -> tuple[str, set[str]]:
    """Returns the diff, and the files in the folder in which it is reviewed."""
    async with wanted_change(work, wanted) as (folder, change):
        return change.diff, {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", HIDING)
async def test_the_text_of_a_change_is_reviewed_whatever_the_change_says_of_it(work: Path, way: str) -> None:
    name = hide(work, way)
    told, _ = await reviewed(work, "")
    assert "+os.system('canary')" in told, "files that git does not know"
    git(work, "add", ".")
    told, _ = await reviewed(work, "")
    assert "+os.system('canary')" in told, "what is not committed"
    git(work, "commit", "-qm", "evil")
    for setting in SETTINGS:
        git(work, "config", "--global", *setting.split("="))
    git(work, "commit", "-q", "--allow-empty", "-m", "later")
    told, there = await reviewed(work, "HEAD~1")
    assert "+os.system('canary')" in told and name in there, "a commit"
    attempt = Worktree(Git(work), Git(work), git(work, "rev-parse", "HEAD~2"), "")
    counted = {change.path: change.added for change in await attempt.changes("HEAD")}
    assert counted[name] == EVIL.count("\n") + (way == "no utf-8"), "the fleet's count"


REPLACED = {
    "a file": ("HEAD:app.py", "HEAD:a.txt"),
    "a folder": ("HEAD^{tree}", "HEAD~1^{tree}"),
    "a commit": ("HEAD", "HEAD~1"),
}


@pytest.mark.parametrize("way", REPLACED)
async def test_what_is_shown_in_place_of_a_commit_is_not_reviewed_for_it(work: Path, way: str) -> None:
    (work / "app.py").write_text(EVIL)
    git(work, "add", ".")
    git(work, "commit", "-qm", "evil")
    git(work, "replace", *(git(work, "rev-parse", name) for name in REPLACED[way]))
    start = git(work, "rev-parse", "HEAD~1") if way != "a commit" else git(work, "rev-list", "--all").split()[-1]
    told, _ = await reviewed(work, f"{start}..HEAD")
    assert "+os.system('canary')" in told


@pytest.mark.parametrize("way", ["--skip-worktree", "--assume-unchanged", "--fsmonitor-valid", "times"])
async def test_an_index_that_calls_a_changed_file_unchanged_hides_nothing(work: Path, way: str) -> None:
    old = (work / "a.txt").stat()
    if way == "times":
        for setting in ("core.trustctime=false", "core.checkStat=minimal"):
            git(work, "config", "--global", *setting.split("="))
        os.utime(work / "a.txt", ns=(0, 0))
        git(work, "update-index", "--refresh")
        old = (work / "a.txt").stat()
    else:
        git(work, "update-index", way, "a.txt")
    (work / "a.txt").write_text("b\n")
    os.utime(work / "a.txt", ns=(old.st_atime_ns, old.st_mtime_ns))
    assert "+b" not in git(work, "diff") or way == "--fsmonitor-valid"
    told, _ = await reviewed(work, "")
    assert "+b" in told


async def test_what_a_sparse_checkout_leaves_out_is_not_taken_for_removed(work: Path) -> None:
    git(work, "sparse-checkout", "set", "--no-cone", "/other")
    assert not (work / "a.txt").exists()
    (work / "new.txt").write_text("new\n")
    told, _ = await reviewed(work, "")
    assert "+new" in told and "a.txt" not in told


async def test_pictures_and_other_repositories_within_are_told_of_by_name(work: Path) -> None:
    (work / "duck.png").write_bytes(bytes(range(256)) * 20)
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},within")
    git(work, "add", "duck.png")
    git(work, "commit", "-qm", "both")
    told, _ = await reviewed(work, "HEAD")
    assert "Binary files differ" in told and "\0" not in told
    assert f"+Subproject commit {'1' * 40}" in told


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", ["/etc/passwd", "../../..", "nowhere", "a.txt"])
async def test_a_link_in_a_commit_is_reviewed_as_a_link(work: Path, target: str) -> None:
    (work / "link").symlink_to(target)
    git(work, "add", ".")
    git(work, "commit", "-qm", "a link")
    (work / "a.txt").write_text("b\n")
    async with wanted_change(work, "HEAD") as (folder, change):
        assert f"+{target}" in change.diff and folder != work
        assert (folder / "link").readlink() == Path(target)


FORGED = "--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n one\n--- a/other.py\n-x = 1\n+++ b/other.py\n+x = 2\n"


def test_a_line_of_a_file_is_not_taken_for_the_name_of_another(tmp_path: Path) -> None:
    assert {line.path for line in read_diff(FORGED)} == {"calc.py"} and changed_lines(FORGED) == {"calc.py": {2, 3}}
    (place,) = hunks(FORGED, tmp_path)
    assert place["path"] == str(tmp_path / "calc.py")
    assert place["newText"] == "one\n++ b/other.py\nx = 2\n", "what an editor shows before a yes"


def test_no_line_that_went_or_came_is_left_out_of_what_is_asked() -> None:
    shown = difference("npx\n--safe\n", "npx\n++evil\n@@ x\n")
    assert shown.split("\n") == ["---safe", "+++evil", "+@@ x"]

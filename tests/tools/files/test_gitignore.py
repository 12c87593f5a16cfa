"""What listings leave out: asked of git, or by the same rules without git."""

import subprocess
from pathlib import Path

import pytest

from duckflow.safety.workspace import Workspace
from duckflow.tools.files.ignored import Ignored, IgnoreRules, ignored_in

FILES = """
.gitignore app.py app.pyc build/out.o src/build/out.o src/app.log src/keep.log docs/a.html docs/deep/a.html
docs/index.html top.txt sub/top.txt sub/.gitignore sub/x.tmp sub/y.tmp sub/deep/x.tmp odd#name.txt #hash.txt a!b.txt
!bang.txt abc/def/x.c abc/x.c foo/bar/baz.o logs/debug/a.txt logs/a.txt trail.txt deep/a/b/c/d.txt exact file.txt
"""

RULES = """
# a comment
*.pyc
build/
*.log
!keep.log
docs/*.html
!docs/index.html
/top.txt
\\#hash.txt
\\!bang.txt
abc/**/x.c
foo/*
logs/**/a.txt
deep/**/d.txt
[ef]xact
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text(RULES)
    (tmp_path / "sub/.gitignore").write_text("*.tmp\n!/y.tmp\ntrailing   \n")
    return tmp_path


def kept(workspace: Workspace, ignored: Ignored) -> set[str]:
    found = workspace.walk(enter=lambda entry: not ignored(entry))
    return {entry.path for entry in found if entry.kind == "file" and not ignored(entry)}


def git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_our_own_rules_say_what_git_says(folder: Path) -> None:
    workspace = Workspace(folder)
    ours = kept(workspace, IgnoreRules(workspace).ignores)
    assert kept(workspace, ignored_in(workspace)) == ours
    git(folder, "init", "-q")
    listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    assert ours == set(filter(None, listed))
    assert kept(workspace, ignored_in(workspace)) == ours


def test_a_tracked_file_is_shown_even_where_a_rule_ignores_it(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-f", "app.pyc")
    workspace = Workspace(folder)
    assert "app.pyc" in kept(workspace, ignored_in(workspace))


def test_a_folder_with_only_ignored_files_is_itself_not_ignored(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "only").mkdir()
    (folder / "only/a.log").write_text("x")
    workspace = Workspace(folder)
    ignored = ignored_in(workspace)
    assert not ignored(workspace.stat("only"))
    assert ignored(workspace.stat("only/a.log"))


def test_a_repository_around_that_ignores_us_as_a_whole_hides_nothing(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "build/app.py").write_text("x")
    workspace = Workspace(folder / "build")
    assert kept(workspace, ignored_in(workspace)) == {"app.py", "out.o"}


def test_settings_of_a_repository_do_not_start_a_program(folder: Path, tmp_path: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "config", "core.fsmonitor", f"touch {tmp_path}/started; false")
    ignored_in(Workspace(folder))
    assert not (tmp_path / "started").exists()


def test_without_git_well_known_heaps_are_left_out(tmp_path: Path) -> None:
    for name in ("node_modules/a.js", "__pycache__/a.pyc", "src/a.js"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    workspace = Workspace(tmp_path)
    assert kept(workspace, ignored_in(workspace)) == {"src/a.js"}

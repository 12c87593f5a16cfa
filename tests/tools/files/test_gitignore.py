"""Listings leave out what git would ignore, found without git."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duckflow.safety.ignore_rules import Ignored, ignored_in
from duckflow.safety.workspace import Workspace

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
    ours = kept(workspace, ignored_in(workspace))
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


def test_rules_of_the_repository_and_of_the_user_count_and_may_be_taken_back(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text('[core]\n\texcludesFile = "~/my rules" ; mine\n')
    (home / "my rules").write_text("app.py\nlogs/\n")
    git(folder, "init", "-q")
    (folder / ".git/info/exclude").write_text("trail.txt\n!logs/\n")
    workspace = Workspace(folder / "sub")
    (folder / "sub/top.pyc").write_text("x")
    assert "top.pyc" not in kept(workspace, ignored_in(workspace)), "a rule of a folder above the work folder"
    assert hidden(folder) == git_hides(folder) >= {"app.py", "trail.txt"}
    (home / ".gitconfig").unlink()
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("exact\n")
    assert hidden(folder) == git_hides(folder) >= {"trail.txt"}


def hidden(folder: Path) -> set[str]:
    ignored = ignored_in(workspace := Workspace(folder))
    found = workspace.walk(enter=lambda entry: entry.path != ".git")
    return {entry.path for entry in found if entry.kind == "file" and ignored(entry)}


def git_hides(folder: Path) -> set[str]:
    return set(git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard").split("\0")) - {""}


NAMES = st.sampled_from(["a", "b", "ab", "a.o", "b.o.txt", "Ä", "é.o", "#a", "!b", "a b"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(["a", "b", "*", "?", "**", "/", ".", ".o", "[ab]", "[!a]", "\\!", "\\#", " ", "Ä", "*.o"])
WHOLE = ["*", "a/", "!a/", "/a/**", "**/b", "*.o", "!*.o", "a/**/b", "# a", "", "a ", "a\\ b", "b\t", "ab/\r"]
LINES = st.one_of(
    st.builds(str.__add__, st.sampled_from(["", "!", "/", "!/"]), st.lists(PIECES, max_size=4).map("".join)),
    st.sampled_from(WHOLE),
)
# Two stars beside a letter: git takes them for one or for two, depending on what comes before.
ODD = re.compile(r"[^/!]\*\*|\*\*[^/]")
RULE_FILES = st.lists(LINES.filter(lambda line: not ODD.search(line)), max_size=5).map("\n".join)


@settings(max_examples=40, deadline=None)
@example({"a.o/a": False}, "!*.o", "*.o", {})
@given(
    st.dictionaries(PATHS, st.booleans(), max_size=12),
    RULE_FILES,
    RULE_FILES,
    st.dictionaries(PATHS, RULE_FILES, max_size=2),
)
def test_our_rules_and_the_index_hide_what_git_hides(
    paths: dict[str, bool], rules: str, excluded: str, inner: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git(folder, "init", "-q")
        made = [path for path in sorted(paths) if fill(folder / path, "x")]
        if tracked := [f":(literal){path}" for path in made if paths[path]]:
            git(folder, "add", "-f", "--", *tracked)
        (folder / ".git/info/exclude").write_text(excluded)
        (folder / ".gitignore").write_text(rules)
        for path, text in inner.items():
            fill(folder / path / ".gitignore", text)
        assert hidden(folder) == git_hides(folder)


def fill(path: Path, text: str) -> bool:
    """Fills the folder, except where a file lies in the place of a folder, or the other way round."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError:
        return False
    return True


def test_without_git_well_known_heaps_are_left_out(tmp_path: Path) -> None:
    for name in ("node_modules/a.js", "__pycache__/a.pyc", "src/a.js"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    workspace = Workspace(tmp_path)
    assert kept(workspace, ignored_in(workspace)) == {"src/a.js"}

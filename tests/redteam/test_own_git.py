"""Git as Duckflow itself calls it, outside the sandbox: a folder's settings make it start no program."""

import ast
import hashlib
import subprocess
from pathlib import Path

import pytest

from duckflow.cli.parser import Options
from duckflow.cli.review import run_pr
from duckflow.cli.reviewing import wanted_change
from duckflow.errors import UsageError
from duckflow.fleet.deliver import push_address
from duckflow.fleet.worktree import bring_clone
from duckflow.i18n.words import Words
from duckflow.review.change import ReviewedChange
from duckflow.safety.git import Git
from duckflow.store.paths import Paths
from tests.redteam.ground import PLAIN_SECRET, SECRET, Ground

CHANGE = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-one\n+1\n"
LINK_GONE = (
    "diff --git a/x b/x\ndeleted file mode 120000\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n"
    "\\ No newline at end of file\n"
)
MADE_UP = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1 @@\n--- way/file\n one\n"
BRANCH = "refs/heads/--upload-pack=touch$IFS$HOME/hit;"


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
        async with wanted_change(ground.work, wanted, CHANGE):
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


def plain_ground(top: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Makes a repository that names no programs, with links that lead out of it."""
    ground = Ground(top)
    monkeypatch.setenv("HOME", str(top / "home"))
    (ground.work / "notes.txt").write_text("one\n")
    git(ground.work, "init", "-q")
    git(ground.work, "add", "notes.txt", "src")
    git(ground.work, "commit", "-qm", "s")
    return ground


async def reviewed(ground: Ground, diff: str) -> tuple[ReviewedChange, dict[str, str]]:
    """Returns the change, and all files that the review gets to read."""
    async with wanted_change(ground.work, "-" if diff else "", diff) as (lies, change):
        files = [path for path in lies.rglob("*") if path.is_file() and not path.is_symlink()] if diff else []
        return change, {str(path.relative_to(lies)): path.read_text(errors="replace") for path in files}


@pytest.mark.parametrize("transport", ["uploadpack", "sshCommand"])
def test_a_pull_request_fetches_nothing_by_a_program_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    ground = hostile(tmp_path, monkeypatch)
    if transport == "sshCommand":
        git(ground.work, "config", "remote.origin.url", "ssh://pond/duck")
    missing = ground.work / ".git/refs/remotes/origin/main"
    missing.parent.mkdir(parents=True)
    missing.write_text("12" * 20 + "\n")
    monkeypatch.chdir(ground.work)
    with pytest.raises(UsageError):
        run_pr(Options(base="origin/main"), Words("en"), Paths.of_user())
    assert not (ground.outside / "hit").exists() and not (ground.work / "hit").exists()


async def test_the_name_of_a_remote_branch_is_no_option_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground, home = plain_ground(tmp_path, monkeypatch), tmp_path / "home"
    home.mkdir()
    git(ground.work, "update-ref", BRANCH, "HEAD")
    git(ground.work, "symbolic-ref", "HEAD", BRANCH)
    for _ in range(2):
        await bring_clone(f"file://{ground.work}", tmp_path / "clones")
    assert not any(path.name == "hit" for path in home.iterdir())


async def test_what_is_delivered_is_told_with_every_place_that_it_goes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = plain_ground(tmp_path, monkeypatch)
    git(ground.work, "remote", "add", "origin", "https://example.com/known.git")
    git(ground.work, "config", "remote.origin.pushurl", "https://example.com/other.git")
    git(ground.work, "config", "--add", "remote.origin.pushurl", "https://example.com/third.git")
    places = await push_address(Git(ground.work))
    assert places == "https://example.com/other.git, https://example.com/third.git"


async def test_a_review_tells_nothing_of_secret_files_that_git_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, _ = await reviewed(plain_ground(tmp_path, monkeypatch), "")
    assert "b/.env" in change.diff and SECRET not in change.diff and PLAIN_SECRET not in change.diff


async def test_a_review_shows_nothing_of_a_repository_that_does_not_know_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_ground(tmp_path, monkeypatch)
    for name, pointer in {"file": "gitdir: ../work/.git\n", "link": ""}.items():
        folder = tmp_path / name
        folder.mkdir()
        if pointer:
            (folder / ".git").write_text(pointer)
        else:
            (folder / ".git").symlink_to("../work/.git")
        for wanted in ("", "HEAD", "-"):
            with pytest.raises(UsageError, match="led_elsewhere"):
                async with wanted_change(folder, wanted, CHANGE):
                    pass


@pytest.mark.parametrize("diff", [LINK_GONE, MADE_UP, CHANGE])
async def test_a_diff_from_elsewhere_brings_no_file_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diff: str
) -> None:
    ground = plain_ground(tmp_path, monkeypatch)
    (ground.work / "way").unlink()
    (ground.work / "way").mkdir()
    (ground.work / "way/file").write_text("harmless\n")
    git(ground.work, "add", "way/file")
    (ground.work / "way/file").unlink()
    (ground.work / "way").rmdir()
    (ground.work / "way").symlink_to(ground.outside)
    change, files = await reviewed(ground, diff.format(ground.outside / "file"))
    assert "outside" not in "".join(text for path, text in files.items() if not path.startswith("."))
    assert b"outside" not in b"".join(data or b"" for data in change.before.values())


async def test_a_path_of_the_index_makes_no_file_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git believes an index: a link here, and a folder in the copy, lead to two places."""
    ground = plain_ground(tmp_path, monkeypatch)
    target = ground.outside / "planted"
    planted = ground.work / str(target).lstrip("/")
    planted.parent.mkdir(parents=True)
    planted.write_text("planted\n")
    depth = len((tmp_path / "copies/review/tree").parts)
    deep = "/".join("p" * depth)
    (ground.work / deep).mkdir(parents=True)
    (ground.work / "a").symlink_to(deep)
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    name = "a/" + "../" * depth + str(target).lstrip("/")
    blob = git(ground.work, "hash-object", "-w", "notes.txt").strip()
    git(ground.work, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'z' * len(name)}")
    index = ground.work / ".git/index"
    data = index.read_bytes()[:-20].replace(b"z" * len(name), name.encode()).partition(b"TREE")[0]
    index.write_bytes(data + hashlib.sha1(data).digest())
    assert name in git(ground.work, "ls-files")
    await reviewed(ground, CHANGE)
    assert not target.exists()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=d", "-c", "user.email=d@p")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(work: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=d", "-c", "user.email=d@p", "commit", "-qm", "s"]):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)


FLEET_ROOMS = sorted([*Path("src/duckflow/fleet").glob("*.py"), *Path("src/duckflow/cli").glob("fleet*.py")])
GIT_WORDS = {
    *("add", "cat-file", "clean", "clone", "commit", "config", "diff", "fetch", "for-each-ref", "lfs", "log"),
    *("ls-files", "merge", "merge-base", "push", "read-tree", "remote", "reset", "rev-list", "rev-parse", "status"),
    *("symbolic-ref", "update-ref", "worktree"),
}


def plain_word(word: ast.expr) -> bool:
    """Says whether nobody else chooses a word: it is a constant, also by its name, or a text that begins with one."""
    match word:
        case ast.Constant() | ast.Name(id=_) if not isinstance(word, ast.Name) or word.id.isupper():
            return True
        case ast.JoinedStr(values=[ast.Constant(value=str(first)), *_]):
            return bool(first)
        case ast.Starred(value=ast.Name(id=name)):
            return name.isupper() or name == "which"
        case _:
            return False


@pytest.mark.parametrize("path", FLEET_ROOMS, ids=str)
def test_what_others_chose_stands_behind_the_end_of_options_of_git(path: Path) -> None:
    """Checks the source code: the words of each call of git are constants, and values are passed as `values`."""
    for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
        words = call.args
        first = words[0].value if words and isinstance(words[0], ast.Constant) else ""
        if first not in GIT_WORDS or not isinstance(call.func, ast.Name | ast.Attribute | ast.Call):
            continue
        for word in words[1:]:
            if isinstance(word, ast.Constant) and word.value == "--":
                break
            assert plain_word(word), f"{path}:{word.lineno} {ast.unparse(word)}"


@pytest.mark.parametrize(
    "words",
    [("diff", "--quiet"), ("merge-base", "--is-ancestor"), ("log", "-1"), ("push", "--quiet"), ("merge", "--ff-only")],
)
async def test_a_value_is_never_an_option_of_git(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    commit(tmp_path)
    hit = tmp_path / "hit"
    for value in (f"--output={hit}", f"--receive-pack=touch {hit}", f"--exec=touch {hit}", f"-O{hit}"):
        assert (await Git(tmp_path).ends(*words, values=[value, "HEAD"])).code
    assert not hit.exists()

"""A command that writes into `.git/worktrees` while Duckflow's own git works there, or before: what it writes starts no
program, and nothing outside is written."""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from duckflow.cli.fleet_workshop import make_workshop
from duckflow.errors import DuckflowError
from duckflow.fleet.merge import merge
from duckflow.fleet.worktree import Worktree, add_worktree
from duckflow.safety.git import Git
from tests.fleet.test_merge import Merging
from tests.fleet.yard import Repository

PROGRAM = "#!/bin/sh\ntouch {hit}\ncat\n"
OPERATIONS: dict[str, Callable[[Git], Awaitable[object]]] = {
    "add": lambda git: git.add(),
    "reset": lambda git: git("reset", "--hard", "--quiet"),
    "restore": lambda git: git.restore(),
    "diff": lambda git: git.diff("HEAD"),
    "merge": lambda git: git.merge("other"),
    "unknown": lambda git: git.unknown(),
}


def run(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def evil_settings(top: Path) -> str:
    program = top / "evil.sh"
    program.write_text(PROGRAM.format(hit=top / "hit"))
    program.chmod(0o755)
    return f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n'


def evil_repository(folder: Path, main: Path, top: Path) -> Path:
    """Makes a repository with the objects of another one, whose settings run a program for every file."""
    folder.mkdir(parents=True)
    run(folder, "init", "-q", "-b", "main")
    (folder / ".git/objects/info/alternates").write_text(f"{main}/.git/objects\n")
    with (folder / ".git/config").open("a") as config:
        config.write(evil_settings(top))
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* filter=evil\n")
    return folder / ".git"


@pytest.mark.parametrize("pointer", ["{evil}/.git", "{evil}/../evil/.git", "../../../evil/.git", "{link}/.git"])
@pytest.mark.parametrize("has_commondir", [True, False])
async def test_a_merge_goes_into_no_forged_worktree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pointer: str, has_commondir: bool
) -> None:
    yard = Merging(tmp_path, monkeypatch)
    report, repository = yard.attempt("one", "one.txt", "1\n"), yard.repository
    repository.git("checkout", "-q", "-b", "other")
    evil = repository.folder / "evil"
    evil_repository(evil, repository.folder, tmp_path)
    run(evil, "fetch", "-q", str(repository.folder), "main:refs/remotes/x")
    run(evil, "reset", "-q", "--hard", "refs/remotes/x")
    (repository.folder / "link").symlink_to(evil)
    (tmp_path / "hit").unlink(missing_ok=True)
    place = repository.folder / ".git/worktrees/evil"
    place.mkdir(parents=True)
    (place / "gitdir").write_text(pointer.format(evil=evil, link=repository.folder / "link") + "\n")
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    if has_commondir:
        (place / "commondir").write_text("../..\n")
    await merge(report, make_workshop(yard.words, yard.paths))
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("way", ["absolute", "relative", "a link", "settings of the worktree"])
async def test_other_settings_of_a_worktree_start_nothing(tmp_path: Path, operation: str, way: str) -> None:
    repository = Repository(tmp_path / "shop")
    repository.git("branch", "other")
    evil = evil_repository(repository.folder / "evil", repository.folder, tmp_path)
    if way == "settings of the worktree":
        repository.git("config", "extensions.worktreeConfig", "true")
    git = await add_worktree(Git(repository.folder), tmp_path / "trees/one", "main")
    (place,) = (repository.folder / ".git/worktrees").iterdir()
    if way == "settings of the worktree":
        (place / "config.worktree").write_text(evil_settings(tmp_path))
        (repository.folder / ".git/info").mkdir(exist_ok=True)
        (repository.folder / ".git/info/attributes").write_text("* filter=evil\n")
    elif way == "a link":
        (place / "commondir").unlink()
        (repository.folder / "pointer").write_text(f"{evil}\n")
        (place / "commondir").symlink_to(repository.folder / "pointer")
    else:
        (place / "commondir").write_text(f"{evil if way == 'absolute' else '../../../evil/.git'}\n")
    (git.folder / "new").write_text("x\n")
    (git.folder / "shop.py").write_text("PRICE = 2\n")
    try:
        await OPERATIONS[operation](git)
    except DuckflowError as problem:
        assert way == "settings of the worktree" and "config.worktree" in str(problem.values["reason"])
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("name", ["duckflow-spared.json", "one.spared.json", ".spared.json"])
@pytest.mark.parametrize("target", ["bashrc", "new"])
async def test_the_note_about_a_worktree_is_written_through_no_link(tmp_path: Path, name: str, target: str) -> None:
    repository = Repository(tmp_path / "shop")
    (tmp_path / "bashrc").write_text("mine\n")
    git = await add_worktree(Git(repository.folder), tmp_path / "trees/one", "main")
    (place,) = (repository.folder / ".git/worktrees").iterdir()
    for folder in (place, git.folder):
        (folder / name).symlink_to(tmp_path / target)
    (git.folder / "made").write_text("x\n")
    await Worktree(git, Git(repository.folder), "main", "main").spare()
    assert (tmp_path / "bashrc").read_text() == "mine\n" and not (tmp_path / "new").exists()
    assert "made" in git.spared


async def test_the_lock_of_the_worktrees_is_made_through_no_link(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    (repository.folder / ".git/duckflow-worktrees.lock").symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic"):
        async with Git(repository.folder).alone():
            pass
    assert not (tmp_path / "made").exists()

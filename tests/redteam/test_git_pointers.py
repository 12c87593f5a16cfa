"""A `.git` that leads elsewhere: it can name any folder, and commands see the repository around the work folder. So a
folder elsewhere counts only where it is git's and names this working tree itself, as it was before any command."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.sandbox.landlock import version
from tests.journeys.story import Story, act, decide, respond

SANDBOXES = [
    pytest.param("landlock", marks=pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock")),
    pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")),
]
DIARY = "dear diary, the pond was quiet"
PLACES = ("diary.txt", "objects/diary.txt", "worktrees/tree/diary.txt", "refs/diary.txt", "HEAD")
Layout = Callable[[Path, Path], None]


def git(folder: Path, *words: str) -> None:
    call = ["git", "-c", "user.name=d", "-c", "user.email=d@p", "-c", "protocol.file.allow=always", *words]
    subprocess.run(call, cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    (folder / "a").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "the first one")


def bare(folder: Path, common: Path) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "commondir").write_text(f"{common}\n")


def by_file(work: Path, other: Path) -> None:
    (work / ".git").write_text(f"gitdir: {other}\n")


def by_relative_file(work: Path, _: Path) -> None:
    (work / ".git").write_text("gitdir: ./src/../../other\n")


def by_link(work: Path, other: Path) -> None:
    (work / ".git").symlink_to(other)


def by_commondir(work: Path, other: Path) -> None:
    bare(work / ".git", other)


def by_looking_like_one(work: Path, other: Path) -> None:
    bare(work, other)


def by_file_to_a_folder_here(work: Path, other: Path) -> None:
    bare(work / "fake/worktrees/tree", other)
    (work / "fake/worktrees/tree/gitdir").write_text(f"{work}/.git\n")
    (work / ".git").write_text("gitdir: fake/worktrees/tree\n")


def by_link_to_a_file(work: Path, other: Path) -> None:
    (work / "pointer").write_text(f"gitdir: {other}\n")
    (work / ".git").symlink_to("pointer")


def by_worktree_of_another(work: Path, other: Path) -> None:
    (work / ".git").write_text(f"gitdir: {other}/worktrees/tree\n")


def by_links_to_files_of_another(work: Path, other: Path) -> None:
    """Uses the index of the other repository, which saw its own files; links here lead to them."""
    (work / "a").symlink_to(other.parent / "real/a")
    (work / "sub").symlink_to(other.parent / "real/sub")
    (work / ".git").write_text(f"gitdir: {other.parent}/real/.git\n")


def by_objects_that_are_a_link(work: Path, other: Path) -> None:
    """Makes a git folder that names this tree, in which a part is a link to a file that is not git's."""
    store = other.parent / "store"
    git(work, "init", "-q", f"--separate-git-dir={store}")
    git(store, "config", "core.worktree", str(work))
    shutil.rmtree(store / "objects")
    (store / "objects").symlink_to(other)


FORGED: list[Layout] = [
    by_file, by_relative_file, by_link, by_commondir, by_looking_like_one, by_file_to_a_folder_here, by_link_to_a_file,
    by_worktree_of_another, by_links_to_files_of_another, by_objects_that_are_a_link,
]  # fmt: skip
BY_COMMANDS = [
    "printf 'gitdir: {other}\\n' > .git",
    "printf 'gitdir: ../other' > .git",
    "ln -s {other} .git",
    "ln -s ../other .git",
    "mkdir -p .git/objects .git/refs; echo ref: refs/heads/m > .git/HEAD; echo {other} > .git/commondir",
    "mkdir -p objects refs; echo ref: refs/heads/m > HEAD; echo {other} > commondir",
    "git init -q --separate-git-dir=apart; printf 'gitdir: {other}\\n' > .git",
    "printf 'gitdir: {top}/tree-of-main\\n' > .git",
]


def prepare(top: Path) -> tuple[Path, Path]:
    """Makes the work folder, and another one that looks like a git folder but has a person's text everywhere."""
    work, other = top / "work", top / "other"
    (work / "src").mkdir(parents=True)
    for place in PLACES:
        (other / place).parent.mkdir(parents=True, exist_ok=True)
        (other / place).write_text(DIARY)
    real = top / "real"
    commit(real)
    (real / "sub").mkdir()
    for name in ("sub/b", ".git/diary.txt", "diary.txt", ".git/objects/diary.txt"):
        (real / name).write_text(DIARY)
    git(real, "add", "sub")
    git(real, "commit", "-qm", "the second one")
    return work, other


async def told(top: Path, sandbox: str, *commands: str, mode: str = "full-auto") -> str:
    """Returns everything that comes back to the model, when the user says no to everything."""
    tries = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    done = decide(respond("done"), step="PLANNING")
    story = Story(top, [*tries, done, done], mode=mode, settings={"sandbox": {"kind": sandbox}})
    await story.tell("go on")
    results = [event.result.for_model for event in story.all(ActionFinished)]
    await story.close()
    return "\n".join(results)


def read_all(top: Path) -> str:
    """Returns a command that prints the files backwards, which no filter of outputs recognises."""
    places = [f"{top}/other/{place}" for place in PLACES]
    places += [f"{top}/real/{place}" for place in (".git/diary.txt", ".git/objects/diary.txt", "diary.txt")]
    return f"cat {' '.join(places)} | rev"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("layout", FORGED)
async def test_a_git_that_leads_elsewhere_shows_nothing_of_it(tmp_path: Path, layout: Layout, sandbox: str) -> None:
    work, other = prepare(tmp_path)
    layout(work, other)
    words = await told(tmp_path, sandbox, read_all(tmp_path))
    assert DIARY[::-1] not in words
    assert "No such file" in words or "Permission denied" in words, "the command has run"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", BY_COMMANDS)
async def test_a_git_that_a_command_made_counts_for_nothing(tmp_path: Path, command: str, sandbox: str) -> None:
    prepare(tmp_path)
    (tmp_path / "tree-of-main").symlink_to(tmp_path / "other")
    command = command.replace("{other}", str(tmp_path / "other")).replace("{top}", str(tmp_path))
    words = await told(tmp_path, sandbox, command, read_all(tmp_path))
    assert DIARY[::-1] not in words
    assert "No such file" in words or "Permission denied" in words, "the command has run"


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_pointer_made_by_a_command_opens_no_repository_that_names_the_folder(
    tmp_path: Path, sandbox: str
) -> None:
    """A worktree was here once, and its repository still names it."""
    work, _ = prepare(tmp_path)
    shutil.rmtree(work)
    git(tmp_path / "real", "worktree", "add", "-q", "-b", "side", str(work))
    shutil.rmtree(work)
    work.mkdir()
    pointer = f"printf 'gitdir: {tmp_path}/real/.git/worktrees/work\\n' > .git"
    words = await told(tmp_path, sandbox, pointer, "git log --oneline; cat ../real/.git/objects/diary.txt | rev")
    assert "the first one" not in words and DIARY[::-1] not in words


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_moving_the_own_git_away_opens_no_repository_around(tmp_path: Path, sandbox: str) -> None:
    work, _ = prepare(tmp_path)
    commit(work)
    git(tmp_path, "init", "-q")
    words = await told(tmp_path, sandbox, "mv .git g; rm -rf .git", read_all(tmp_path))
    assert DIARY[::-1] not in words


def worktree(work: Path, store: Path) -> None:
    commit(store)
    git(store, "worktree", "add", "-q", "-b", "side", str(work))


def worktree_of_a_bare_one(work: Path, store: Path) -> None:
    commit(store.with_name("origin"))
    git(work.parent, "clone", "-q", "--bare", str(store.with_name("origin")), str(store))
    git(store, "worktree", "add", "-q", "-b", "side", str(work))


def submodule(work: Path, store: Path) -> None:
    commit(store.with_name("origin"))
    git(work.parent, "init", "-q")
    git(work.parent, "submodule", "--quiet", "add", str(store.with_name("origin")), work.name)


def separate(work: Path, store: Path) -> None:
    commit(work)
    git(work, "init", "-q", f"--separate-git-dir={store}")


def separate_clone(work: Path, store: Path) -> None:
    commit(store.with_name("origin"))
    git(work.parent, "clone", "-q", f"--separate-git-dir={store}", str(store.with_name("origin")), str(work))


def linked(work: Path, store: Path) -> None:
    commit(work)
    (work / ".git").rename(store)
    (work / ".git").symlink_to(store)


def plain(work: Path, _: Path) -> None:
    commit(work)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize(
    "layout", [worktree, worktree_of_a_bare_one, submodule, separate, separate_clone, linked, plain]
)
async def test_git_works_where_its_folder_names_the_tree(tmp_path: Path, layout: Layout, sandbox: str) -> None:
    work, store = tmp_path / "work", tmp_path / "store"
    layout(work, store)
    beside = store if store.is_dir() else tmp_path
    (beside / "diary.txt").write_text(DIARY)
    looks = "git log --oneline -p; git status && echo all of it"
    words = await told(tmp_path, sandbox, looks, f"rev {beside}/diary.txt")
    assert "the first one" in words and "+a" in words and "all of it" in words
    assert DIARY[::-1] not in words, "nothing but git's files"

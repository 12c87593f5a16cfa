"""Worktrees and what the fleet's own git does in them: many at once, and no program that lies in one."""

import asyncio
from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.task import AttemptOrder, FleetTask
from duckflow.fleet.worktree import add_worktree, conflicts_in, open_worktree, remove_worktree
from duckflow.safety.git import Git
from duckflow.state.data import Phrase
from tests.fleet.yard import Repository

MANY = 12


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


class Trap(Repository):
    """A repository whose settings name a program that git runs when it checks for changes."""

    def __init__(self, folder: Path, ran: Path) -> None:
        super().__init__(folder)
        self.git("config", "filter.trap.clean", f"touch '{ran}'; cat")
        self.git("config", "core.fsmonitor", f"touch '{ran}'; false")
        self.write(".gitattributes", "* filter=trap\n")
        self.write("shop.py", "PRICE = 2\n")


def an_order(repository: Repository) -> AttemptOrder:
    base = repository.git("rev-parse", "HEAD")
    task = FleetTask(name="a", repository=str(repository.folder), prompt="Do it.", base=base, onto="main")
    return AttemptOrder(fleet="f", task=task, number=1)


async def test_many_worktrees_at_once(repository: Repository, tmp_path: Path) -> None:
    main = Git(repository.folder)
    folders = [tmp_path / "trees" / str(number) for number in range(MANY)]
    await asyncio.gather(*(add_worktree(main, folder, "HEAD") for folder in folders))
    assert all((folder / "shop.py").exists() for folder in folders) and repository.worktrees() == MANY
    # This one was only half made when its worker was killed.
    repository.git("worktree", "lock", str(folders[0]))
    (folders[0] / ".git").unlink()
    await asyncio.gather(*(remove_worktree(main, folder) for folder in folders))
    assert repository.worktrees() == 0 and not any(folder.exists() for folder in folders)


async def test_a_repository_within_the_worktree_runs_no_program(repository: Repository, tmp_path: Path) -> None:
    ran, notes = tmp_path / "ran", list[Phrase]()
    Repository(repository.folder / "known/one")
    repository.commit("with a repository in it")
    order = an_order(repository)
    worktree = await open_worktree(order, tmp_path / "trees", {}, notes.append)
    (worktree.folder / "known/one").rmdir()
    for name in ("known/one", "deep/er/new"):
        Trap(worktree.folder / name, ran)
    ran.unlink(missing_ok=True)
    (worktree.folder / "tax.py").write_text("TAX = 1\n")
    for text in ("TAX = 2\n", "TAX = 3\n"):
        (worktree.folder / "tax.py").write_text(text)
        commit = await worktree.commit(order)
        await worktree.git.restore()
        await conflicts_in(worktree.git)
    assert not ran.exists()
    assert [file.path for file in await worktree.changes(commit)] == ["tax.py"]
    assert repository.git("rev-list", "--count", f"main..{order.branch}") == "1"
    await worktree.remove()
    assert not worktree.folder.exists() and not ran.exists()


async def test_a_worktree_that_left_its_base_is_not_committed(repository: Repository, tmp_path: Path) -> None:
    order = an_order(repository)
    repository.git("commit", "-q", "--allow-empty", "-m", "later")
    order = order.model_copy(
        update={"task": order.task.model_copy(update={"base": repository.git("rev-parse", "HEAD")})}
    )
    worktree = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    await worktree.git("checkout", "--quiet", "HEAD~1")
    (worktree.folder / "tax.py").write_text("TAX = 1\n")
    with pytest.raises(Exception, match="led_away"):
        await worktree.commit(order)


async def test_a_git_folder_made_by_the_attempt_is_not_used(repository: Repository, tmp_path: Path) -> None:
    """Not every sandbox can keep a command from putting another `.git` there."""
    ran, order = tmp_path / "ran", an_order(repository)
    worktree = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    made = Trap(tmp_path / "made", ran)
    (worktree.folder / ".git").unlink()
    (made.folder / ".git").rename(worktree.folder / ".git")
    (worktree.folder / ".gitattributes").write_text("* filter=trap\n")
    (worktree.folder / "shop.py").write_text("PRICE = 3\n")
    ran.unlink(missing_ok=True)
    commit = await worktree.commit(order)
    await worktree.git.restore()
    (worktree.folder / "shop.py").write_text("PRICE = 4\n")
    order = order.model_copy(update={"go": 2})
    again = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    assert not ran.exists() and (again.folder / "shop.py").read_text() == "PRICE = 4\n"
    assert repository.git("rev-parse", f"{order.branch}~1") == commit
    await again.remove()
    assert not ran.exists() and repository.worktrees() == 0


@pytest.mark.parametrize("link", [".env", "config"])
async def test_included_files_do_not_follow_links_out_of_the_folder(
    repository: Repository, tmp_path: Path, link: str
) -> None:
    """The attempt has committed a link where the user's ignored file belongs."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kept").write_text("mine\n")
    repository.write(".env", "KEY=1\n")
    repository.write("config/deep/dev.log", "KEY=1\n")
    order = an_order(repository)
    first = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    (first.folder / ".gitignore").unlink()
    (first.folder / link).symlink_to(mine / "kept" if link == ".env" else mine)
    await first.commit(order)
    include = (".env",) if link == ".env" else ("config/deep/dev.log",)
    task = order.task.model_copy(update={"include": include})
    order = order.model_copy(update={"task": task, "go": 2})
    again = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    try:
        await again.furnish(task, lambda phrase: None)
    except UsageError as problem:
        assert link == "config" and problem.key == "fleet.include_outside"
    else:
        assert (again.folder / ".env").read_text() == "KEY=1\n"
    assert [path.name for path in mine.iterdir()] == ["kept"] and (mine / "kept").read_text() == "mine\n"


async def test_other_users_cannot_read_a_worktree(repository: Repository, tmp_path: Path) -> None:
    worktree = await open_worktree(an_order(repository), tmp_path / "trees", {}, lambda phrase: None)
    assert worktree.folder.parent.stat().st_mode & 0o077 == 0


def test_other_users_cannot_read_the_database(tmp_path: Path) -> None:
    FleetDatabase(str(tmp_path / "data/fleet.db")).close()
    assert (tmp_path / "data/fleet.db").stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    file.chmod(0o644)
    for address, key in (str(file), "fleet.database_file"), (f"mysql://{tmp_path}/x", "fleet.database_kind"):
        with pytest.raises(UsageError) as problem:
            FleetDatabase(address)
        assert problem.value.key == key
    assert file.read_text() == "mine\n" and file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


async def test_an_existing_branch_of_another_database_is_refused_at_the_start(
    repository: Repository, tmp_path: Path
) -> None:
    order = an_order(repository)
    two = order.model_copy(update={"fleet": "g"})
    first = await open_worktree(order, tmp_path / "trees", {}, lambda phrase: None)
    with pytest.raises(UsageError) as problem:
        await open_worktree(two, tmp_path / "trees", {}, lambda phrase: None)
    assert problem.value.key == "fleet.branch_there" and repository.worktrees() == 1
    (first.folder / "tax.py").write_text("TAX = 2\n")
    commit = await first.commit(order)
    assert repository.git("rev-parse", order.branch) == commit

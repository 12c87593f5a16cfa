"""A journal that a container has left where it could write, the sessions of its own worktree: it names the user's
project and a rule that nobody gave, or a rule for the worktree itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.agent.permissions import Permission
from duckflow.agent.session import reopen
from duckflow.events.types import PermissionGiven
from duckflow.store.paths import Paths
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

COMMAND = "python3 a.py && touch made"
RULE = Permission(operation="shell.run", pattern=COMMAND)
RUNS = (decide(act("shell.run", command=COMMAND), next_step="continue"), decide(respond("ok")))
Place = Callable[[Paths, Path], Path]
PLACES: dict[str, Place] = {
    "its worktree": lambda paths, work: paths.sessions_of(paths.worktrees / "x/fleet_1.t1.1"),
    "another worktree": lambda paths, work: paths.sessions_of(paths.worktrees / "work/fleet_2.t1.1"),
    "a folder of the same name": lambda paths, work: paths.sessions_of(Path("/elsewhere", work.name)),
    "a folder in the project": lambda paths, work: paths.sessions_of(work / "below"),
    "any folder among the sessions": lambda paths, work: paths.data / "sessions/own",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    (shell.work / "a.py").write_text("print(1)\n")
    said = shell.run("-p", "hi", "-m", shell.script(), stdin="")
    assert said.returncode == 0, said.stderr
    return shell


def paths_of(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("DUCKFLOW_HOME", str(shell.home))
    return Paths.of_user()


def own_journal(paths: Paths, work: Path) -> Path:
    [journal] = paths.sessions_of(work).glob("*.db")
    return journal


def give_rule(journal: Path) -> None:
    session = reopen(journal).session
    session.emit(PermissionGiven(rule=RULE.describe(), scope="session"))
    session.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", PLACES)
def test_a_journal_in_another_place_is_not_gone_on_with(
    shell: Shell, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = paths_of(shell, monkeypatch)
    journal = own_journal(paths, shell.work)
    moved = PLACES[place](paths, shell.work) / journal.name
    moved.parent.mkdir(parents=True)
    journal.rename(moved)
    give_rule(moved)
    done = shell.run("-r", journal.stem, "-p", "go on", "-m", shell.script(*RUNS), stdin="")
    assert done.returncode == 2 and "is not stored with" in done.stderr
    assert not (shell.work / "made").exists()


def test_a_worktrees_journal_allows_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = paths_of(shell, monkeypatch)
    tree = paths.worktrees / "x/fleet_1.t1.1"
    tree.mkdir(parents=True)
    (tree / "a.py").write_text("print(1)\n")
    shell.work = tree
    shell.run("-p", "hi", "-m", shell.script(), stdin="")
    journal = own_journal(paths, tree)
    give_rule(journal)
    done = shell.run("-r", journal.stem, "-p", "go on", "-m", shell.script(*RUNS), stdin="")
    assert done.returncode == 3 and not (tree / "made").exists(), done.stderr


def test_a_rule_in_a_journal_of_ones_own_still_counts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = paths_of(shell, monkeypatch)
    journal = own_journal(paths, shell.work)
    give_rule(journal)
    done = shell.run("-r", journal.stem, "-p", "go on", "-m", shell.script(*RUNS), stdin="")
    assert (shell.work / "made").exists(), done.stderr

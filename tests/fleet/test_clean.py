"""Leftovers of fleets are removed when the user says so; unmerged picked work and other people's work never is."""

import asyncio
import json
from pathlib import Path

import pytest

from duckflow.cli.fleet_table import as_csv, as_markdown
from duckflow.errors import UsageError
from duckflow.fleet.clean import RepositoryCleaner
from duckflow.fleet.engine import AttemptProgress, AttemptState, FleetOrder, TaskProgress, TaskState
from duckflow.fleet.task import AttemptOrder, AttemptReport, FleetTask
from duckflow.fleet.worktree import open_worktree
from duckflow.i18n.words import Words
from tests.fleet.postgres import own_postgres, postgres_programs
from tests.fleet.stand_in import hold_a_lock, open_engine
from tests.fleet.test_commands import FleetShell
from tests.fleet.yard import Repository, write

PRICE = "PRICE = 2\n"


class Past:
    """A repository, and the attempts at one task in it that have ended."""

    def __init__(self, top: Path) -> None:
        self.repository = Repository(top / "shop")
        base = self.repository.git("rev-parse", "HEAD")
        self.task = FleetTask(name="tax", repository=str(self.repository.folder), prompt="Do.", base=base, onto="main")
        self.attempts: list[AttemptState] = []
        self.worktrees = top / "trees"
        self.cleaner = RepositoryCleaner(self.repository.folder, self.worktrees)

    async def attempt(self, state: AttemptProgress = "done", cut_off: bool = False) -> str:
        """Makes an attempt with a change and returns its branch. `cut_off`: its worker died and left a worktree."""
        order = AttemptOrder(fleet="f", task=self.task, number=len(self.attempts) + 1)
        worktree = await open_worktree(order, self.worktrees, {}, lambda phrase: None)
        (worktree.folder / "shop.py").write_text(PRICE)
        commit = await worktree.commit(order)
        report = None if cut_off else AttemptReport(order=order, outcome="done", commit=commit, branch=order.branch)
        if not cut_off:
            await worktree.remove()
        self.attempts.append(
            AttemptState(
                fleet="f",
                task="tax",
                number=order.number,
                state=state,
                doing="",
                worker="w",
                goes=1,
                taken=1.0,
                ended=2.0,
                cost_usd=0.0,
                tokens=0,
                open_questions=0,
                report=report,
            )
        )
        return order.branch

    async def clean(self, state: TaskProgress, picked: int | None = None) -> list[str]:
        """Cleans up and returns the reasons why something was kept."""
        task = TaskState(fleet="f", task=self.task, place="here", state=state, picked=picked, merged="")
        left = await self.cleaner.look(task, self.attempts)
        assert all([await self.cleaner.remove(each) for each in left.found])
        return [phrase.key.rpartition(".")[2] for phrase in left.kept]


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


async def test_a_picked_attempt_is_kept_until_it_is_merged(past: Past) -> None:
    picked, _ = [await past.attempt() for _ in range(2)]
    for state in ("running", "choose"):
        assert await past.clean(state, 1) == [] and len(past.repository.branches()) == 3
    assert await past.clean("done", 1) == ["unmerged"] and past.repository.branches() == [picked, "main"]
    # It was recorded as merged, but main was set back since.
    assert await past.clean("merged", 1) == ["nowhere_else"] and past.repository.branches() == [picked, "main"]
    past.repository.git("merge", "-q", "--no-ff", "-m", "merge", picked)
    assert await past.clean("merged", 1) == [] and past.repository.branches() == ["main"]
    assert (past.repository.folder / "shop.py").read_text() == PRICE


async def test_a_branch_that_somebody_continued_is_kept(past: Past) -> None:
    looked_at, moved, _ = [await past.attempt("failed") for _ in range(3)]
    past.repository.git("checkout", "-q", moved)
    past.repository.write("mine.py", "MINE = 1\n")
    past.repository.commit("mine")
    assert await past.clean("failed") == ["checked_out"] and past.repository.branches() == [moved, "main"]
    past.repository.git("checkout", "-q", "main")
    assert await past.clean("failed") == ["moved"] and past.repository.branches() == [moved, "main"]
    # A branch that moves between the look and the yes is kept too.
    await past.attempt("failed")
    state = TaskState(fleet="f", task=past.task, place="here", state="failed", picked=None, merged="")
    (leftover,) = (await past.cleaner.look(state, past.attempts)).found
    past.repository.git("branch", "-f", leftover.branch, moved)
    assert not await past.cleaner.remove(leftover) and looked_at not in past.repository.branches()
    assert leftover.branch in past.repository.branches()


async def test_the_worktree_of_a_dead_worker_is_removed_and_a_foreign_branch_is_not(past: Past) -> None:
    await past.attempt("cancelled", cut_off=True)
    past.repository.git("branch", "duckflow/mine-1")
    assert past.repository.worktrees() == 1
    assert await past.clean("cancelled") == []
    assert past.repository.worktrees() == 0 and past.repository.branches() == ["duckflow/mine-1", "main"]
    assert not any(past.worktrees.iterdir())
    # An attempt that never began has no branch: one of that name is somebody else's.
    past.repository.git("branch", "duckflow/tax-1")
    past.attempts = [past.attempts[0].model_copy(update={"goes": 0})]
    assert await past.clean("cancelled") == ["moved"] and "duckflow/tax-1" in past.repository.branches()


@pytest.mark.slow
async def test_a_forgotten_fleet_is_gone_and_others_go_on(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 2, 3.0, hold_a_lock(tmp_path / "ledger", 0.0))
    task = FleetTask(name="a", repository="/r", prompt="p", pick="best", minutes=1)
    first, second = [engine.start(FleetOrder([task])) for _ in range(2)]
    engine.cancel(first)
    assert engine.forget(first) == ()
    assert [state.fleet for state in engine.fleets()] == [second] and not engine.attempts(first)
    # Its figures are still shown.
    assert [(row.task, row.state, row.attempts) for row in engine.figures(first)] == [("a", "cancelled", 1)]
    await asyncio.wait_for(engine.work(second), 60)
    (row,) = engine.figures(second)
    assert (row.state, row.cost_usd, row.result) == ("done", 0.01, "duckflow/a.2-1")
    assert as_csv([row]).splitlines()[1].startswith("a.2,/r,done,1,0.01,")
    told = f"# {second}: 1 of 1 task done; cost "
    assert as_markdown(second, [row], Words("en")).startswith(f"{told}$0.01, ")
    proven = row.model_copy(update={"proof": "proven", "state": "choose"})
    report = as_markdown(second, [row, proven], Words("ja"))
    assert "2 件中 1 件" in report and Words("ja")("fleet.proof.proven") in report and "proven" not in report
    unpriced = row.model_copy(update={"cost_usd": 0.0})
    assert as_markdown(second, [unpriced], Words("en")).startswith(f"{told}–, ")
    assert [(state.task.name, state.state) for state in engine.tasks(second)] == [("a.2", "done")]
    # Its name is free again.
    third = engine.start(FleetOrder([task]))
    assert [state.task.name for state in engine.tasks(third)] == ["a"]
    engine.close()


@pytest.mark.slow
@pytest.mark.skipif(postgres_programs() is None, reason="There is no Postgres on this machine.")
def test_the_last_of_several_machines_takes_a_fleet_out_of_the_database(tmp_path: Path) -> None:
    programs = postgres_programs()
    assert programs
    with own_postgres(programs) as postgres:
        work = hold_a_lock(tmp_path / "ledger", 0.0)
        one, two = (open_engine(postgres.address, place, 2, 3.0, work) for place in ("one", "two"))
        tasks = [FleetTask(name=name, repository="/r", prompt="p") for name in ("a", "b")]
        fleet, other = [one.start(FleetOrder(tasks, places=("one", "two"))) for _ in range(2)]
        assert [state.task.name for state in one.tasks(other)] == ["a.2", "b.2"]
        with pytest.raises(UsageError):
            one.forget(fleet)
        assert two.cancel(fleet) == 2 and [state.state for state in one.tasks(fleet)] == ["cancelled"] * 2
        assert one.forget(fleet) == ("two",) and one.forget(fleet) == ("two",) and len(two.fleets()) == 2
        assert two.forget(fleet) == () and [state.fleet for state in one.fleets()] == [other]
        one.close()
        two.close()


@pytest.mark.slow
def test_clean_asks_lists_what_it_removes_and_keeps_unmerged_work(tmp_path: Path) -> None:
    shell = FleetShell(tmp_path)
    shell.add("tax", write("tax.py", "TAX = 2\n"), attempts=2, pick="best")
    shell.add("bad", write("bad.py", "BAD = 1\n"), checks=["false"])
    fleet = json.loads(shell.fleet("run", "tasks.toml", "--json", ends=1))["fleet"]
    everything = ["duckflow/bad-1", "duckflow/tax-1", "duckflow/tax-2", "main"]
    assert shell.repository.branches() == everything
    asked = shell.run("fleet", "clean")
    assert asked.returncode == 2 and "branch duckflow/bad-1 in" in asked.stdout and "--yes" in asked.stderr
    assert shell.repository.branches() == everything
    told = shell.fleet("clean", "--yes", fleet)
    (picked,) = [name for name in shell.repository.branches() if "tax" in name]
    assert f"{picked} is kept: it was picked for tax" in told and "Removed: branch duckflow/bad-1" in told
    assert shell.repository.branches() == [picked, "main"] and shell.told("list")
    shell.fleet("merge", fleet)
    assert "削除しました" in shell.fleet("clean", "--yes", "--lang", "ja")
    assert shell.repository.branches() == ["main"] and shell.told("list") == []
    assert (shell.repository.folder / "tax.py").exists() and shell.told("clean") == {"removed": [], "kept": []}

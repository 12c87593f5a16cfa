"""Tasks that build on others: where they are done, in which order they are merged, and what is said about them."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

from duckflow.fleet.deliver import request_body
from duckflow.fleet.engine import FleetOrder
from duckflow.fleet.task import AttemptOrder, AttemptPort, AttemptReport, FleetTask
from duckflow.i18n.words import Words
from duckflow.state.checks import ProofVerdict
from tests.fleet.postgres import own_postgres, postgres_programs
from tests.fleet.stand_in import open_engine
from tests.fleet.test_commands import FleetShell
from tests.fleet.test_engine import until
from tests.fleet.yard import write
from tests.journeys.story import act, decide

LEASE = 3.0


@pytest.fixture
def shell(tmp_path: Path) -> FleetShell:
    return FleetShell(tmp_path)


def test_tasks_are_merged_after_those_that_they_build_on(shell: FleetShell) -> None:
    shell.add("docs", write("docs.md", "Tax.\n"), after=["tax"])
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.fleet("run", "tasks.toml", "--json")
    assert "Merge tax first." in shell.fleet("merge", "docs", ends=1)
    assert [(one["task"], one["outcome"]) for one in shell.told("merge")] == [("tax", "merged"), ("docs", "merged")]


@pytest.mark.slow
def test_a_task_is_merged_once_the_conflict_of_the_one_below_is_resolved(shell: FleetShell) -> None:
    read = decide(act("file_ops.read_file", path="shop.py"), next_step="continue")
    shell.add("one", read, write("shop.py", "PRICE = 2\n"))
    shell.add("two", read, write("shop.py", "PRICE = 3\n"))
    shell.add("three", write("three.txt", "3\n"), after=["two"])
    shell.fleet("run", "tasks.toml", "--json")
    assert [one["outcome"] for one in shell.told("merge")] == ["merged"] * 3
    assert shell.repository.show("main", "shop.py") == "PRICE = 3" and shell.repository.show("main", "three.txt") == "3"


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("proof", get_args(ProofVerdict))
def test_a_request_says_in_words_what_the_tests_prove(proof: ProofVerdict, language: str) -> None:
    order = AttemptOrder(fleet="f1", task=FleetTask(name="tax", repository="/r", prompt="Raise it."), number=1)
    body = request_body(AttemptReport(order=order, outcome="done", proof=proof), Words(language))
    assert body.startswith("Raise it.") and len(body.split("\n")) == 3 and "fleet." not in body


async def end_well(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
    commit = f"{order.number}" * 40
    return AttemptReport(order=order, outcome="done", branch=order.branch, commit=commit)


@pytest.mark.slow
async def test_work_goes_only_to_machines_that_have_the_branches_it_needs(tmp_path: Path) -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("There is no Postgres on this machine.")
    with own_postgres(programs) as postgres:
        two, three = (open_engine(postgres.address, place, 2, LEASE, end_well) for place in ("two", "three"))
        first = FleetTask(name="first", repository="/r", prompt="p", attempts=2)
        tasks = [first, FleetTask(name="second", repository="/r", prompt="p", after=("first",))]
        other_repository = FleetTask(name="third", repository="/q", prompt="p", after=("first", "second"))
        tasks += [other_repository, FleetTask(name="fourth", repository="/q", prompt="p")]
        fleet = two.start(FleetOrder(tasks, 0.0, ("gone", "two", "three")))
        work = asyncio.create_task(two.work(fleet))
        await until(lambda: two.tasks(fleet, "first")[0].state == "choose")
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        two.pick(fleet, "first", 1)
        two.retry(fleet, "first", 2, mend="c" * 40)
        two.pick(fleet, "first", 1)
        # The branches are on `two`, which has no worker for far longer than three leases.
        with suppress(TimeoutError):
            await asyncio.wait_for(three.work(fleet), 4 * LEASE)
        states = {state.task.name: (state.state, state.place) for state in three.tasks(fleet)}
        assert states["second"] == ("waiting", "two") and states["first"][1] == "two"
        assert [attempt.goes for attempt in three.attempts(fleet, "first")] == [1, 1]
        await asyncio.wait_for(two.work(fleet), 60)
        (second,) = two.attempts(fleet, "second")
        assert second.report and second.report.order.task.base == "1" * 40
        assert second.report.order.task.after == ("first",)
        # The third task has waited for both, but builds on none of them.
        (third,) = two.attempts(fleet, "third")
        assert third.report and third.report.order.task.after == ()
        two.close()
        three.close()


def test_nothing_is_left_of_an_attempt_that_lacks_an_ignored_file(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"), include=[".env"])
    assert ".env does not exist" in shell.fleet("run", "tasks.toml", ends=1)
    assert shell.repository.branches() == ["main"] and shell.repository.worktrees() == 0


def test_a_retry_says_how_it_ended_and_its_result_can_be_delivered(shell: FleetShell, tmp_path: Path) -> None:
    shell.repository.git("clone", "-q", "--bare", str(shell.repository.folder), str(tmp_path / "o.git"))
    shell.repository.git("remote", "add", "origin", str(tmp_path / "o.git"))
    shell.add("tax", write("tax.py", "TAX = 2\n"), deliver="push", checks=["test -f tax.py"])
    shell.fleet("run", "tasks.toml", "--json")
    assert [one["where"] for one in shell.told("deliver", "--yes")] == [f"{tmp_path / 'o.git'} duckflow/tax-1"]
    assert "cannot be merged" in shell.run("fleet", "merge", "tax", "--attempt", "7").stderr
    shell.fleet("merge", "--json")
    (shell.work / "tax.jsonl").write_text("")
    shell.fleet("retry", "tax", ends=1)
    assert shell.told("show", "tax")["tasks"][0]["state"] == "choose"
    (shell.work / "tax.jsonl").write_text(json.dumps({"json": write("more.py", "MORE = 3\n")}), "utf-8")
    assert "duckflow fleet merge" in shell.fleet("retry", "tax")
    assert [one["where"] for one in shell.told("deliver", "--yes")] == [f"{tmp_path / 'o.git'} duckflow/tax-3"]


def test_nothing_is_done_in_a_folder_that_happens_to_have_the_name(shell: FleetShell) -> None:
    """The fleet names its repositories by their place in a folder, and the command does not say in which."""
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.fleet("run", "tasks.toml", "--no-work", "--repositories", str(shell.work))
    for words in ("worker",), ("worker", shell.told("list")[0]["fleet"]):
        refused = shell.run("fleet", *words)
        assert refused.returncode == 2 and "--repositories" in refused.stderr, refused.stderr
    shell.fleet("cancel")
    refused = shell.run("fleet", "retry", "tax")
    assert refused.returncode == 2 and "--repositories" in refused.stderr, refused.stderr
    assert shell.told("show")["tasks"][0]["state"] == "cancelled"
    # What lies in the repository could not be looked at, so the fleet is not forgotten.
    assert "--repositories" in shell.told("clean", "--yes")["kept"][0] and len(shell.told("list")) == 1
    shell.fleet("clean", "--yes", "--repositories", str(shell.work))
    assert shell.told("list") == []

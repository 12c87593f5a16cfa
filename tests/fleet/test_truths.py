"""Sentences and refusals of `duckflow fleet` that a newcomer relies on, and secrets that stay where they are."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from duckflow.fleet.claims import MOST_GOES
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import FleetOrder
from duckflow.fleet.tables import ATTEMPTS, WORKERS
from duckflow.fleet.task import AttemptOrder, AttemptPort, AttemptReport, FleetTask
from tests.fleet.postgres import own_postgres, postgres_programs
from tests.fleet.stand_in import open_engine
from tests.fleet.test_commands import FleetShell, run_git
from tests.fleet.yard import write
from tests.journeys.story import act, decide, respond

SECRET = "tulip-4711-meadow"


@pytest.fixture
def shell(tmp_path: Path) -> FleetShell:
    return FleetShell(tmp_path)


def test_without_a_model_an_attempt_fails_and_nobody_is_asked_for_a_key(shell: FleetShell) -> None:
    for model, why in ((), "There is no model"), (("-m", "openai:gpt-5"), "OPENAI_API_KEY"):
        done = shell.run("fleet", "run", "--repository", "shop", *model, stdin="Raise the tax.\n")
        assert done.returncode == 1 and why in done.stdout, (done.stdout, done.stderr)
        assert shell.told("inbox") == []


def test_an_attempt_that_wrote_a_secret_is_not_exported(shell: FleetShell) -> None:
    shell.environment["SHOP_TOKEN"] = SECRET
    leak = decide(act("shell.run", command="echo $SHOP_TOKEN > leak.txt"), respond("Done."))
    shell.add("leak", leak, secrets=["SHOP_TOKEN"])
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    assert "leak.txt" in shell.fleet("show", "leak")
    assert json.loads(shell.fleet("export"))["model_patch"] == ""


def test_the_log_says_whose_checks_were_not_run(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"), checks=["test -f tax.py"])
    shell.fleet("run", "tasks.toml", "--json")
    told = shell.fleet("logs", "tax")
    assert "during the model's own turn, checks: none were run" in told and "check test -f tax.py: exit code 0" in told


def test_branches_in_clones_of_addresses_are_cleaned_up(shell: FleetShell, tmp_path: Path) -> None:
    bare = tmp_path / "remote.git"
    shell.repository.git("clone", "-q", "--bare", str(shell.repository.folder), str(bare))
    shell.add("tax", write("tax.py", "TAX = 2\n"), repository=bare.as_uri(), checks=["false"])
    shell.fleet("run", "tasks.toml", "--json", ends=1)
    (clone,) = [path for path in (tmp_path / "home").glob("data-clones/*") if path.is_dir()]
    assert "duckflow/tax-1" in run_git(clone, "branch")
    assert any("duckflow/tax-1" in line for line in shell.told("clean", "--yes")["removed"])
    assert "duckflow/tax-1" not in run_git(clone, "branch")


def test_options_of_other_parts_are_refused_and_help_tells_of_one_part(shell: FleetShell) -> None:
    for words in ("list", "--attempts", "3"), ("worker", "--json"), ("logs", "--yes"), ("workers", "--limit", "m=1"):
        refused = shell.run("fleet", *words)
        assert refused.returncode == 2 and f"no option {words[1]}" in refused.stderr, (words, refused.stderr)
        assert f"duckflow fleet {words[0]} --help" in refused.stderr
    for figure in "nan", "inf", "0", "1e300":
        refused = shell.run("fleet", "run", "--fleet-budget-usd", figure)
        assert refused.returncode == 2 and f"--fleet-budget-usd cannot be {figure}" in refused.stderr, refused.stderr
    told = shell.fleet("answer", "--help")
    assert "usage: duckflow fleet answer" in told and "the question's id" in told and "export" not in told


def test_scripts_get_json_from_every_change_and_reports_refuse_other_formats(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.add("docs", write("docs.md", "Tax.\n"), after=["tax"])
    shell.fleet("run", "tasks.toml", "--no-work")
    assert shell.told("cancel", "tax")["cancelled"] == 1
    # The task that waits for it is cancelled too, and says why.
    assert "needs tax" in shell.fleet("logs", "docs")
    assert shell.told("retry", "tax", "--no-work")["task"] == "tax"
    rows = shell.told("report")
    assert [(row["task"], row["state"]) for row in rows] == [("tax", "waiting"), ("docs", "cancelled")]
    assert shell.fleet("report", "--format", "csv").splitlines()[1].split(",")[4] == ""
    shell.fleet("report", "--format", "swebench", ends=2)
    shell.fleet("export", "--format", "md", ends=2)
    assert "–" in shell.fleet("list")


def test_a_run_that_waits_for_a_choice_says_so(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"), attempts=2)
    shell.add("docs", write("docs.md", "Tax.\n"), after=["tax"])
    run = shell.begin("run", "tasks.toml")
    until = time.monotonic() + 60
    while not (fleets := shell.told("list")) or fleets[0]["tasks"].get("choose") != 1:
        assert time.monotonic() < until, shell.fleet("logs")
        time.sleep(0.2)
    time.sleep(1)
    shell.fleet("merge", "tax", "--pick", "best")
    told, _ = run.communicate(timeout=60)
    assert (
        run.returncode == 0 and f"duckflow fleet merge {fleets[0]['fleet']}" in told.partition("docs  #1  running")[0]
    )
    assert [task["state"] for task in shell.told("show")["tasks"]] == ["merged", "done"]


def test_a_worker_of_another_place_is_named_where_nobody_works(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.fleet("run", "tasks.toml", "--no-work", "--places", "mill")
    assert "mill" in shell.fleet("list") and "fleet worker --place" in shell.fleet("list")


async def never(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
    raise AssertionError((order, link))


async def test_an_attempt_whose_workers_keep_dying_fails_and_says_so(tmp_path: Path) -> None:
    address = str(tmp_path / "fleet.db")
    engine = open_engine(address, "here", 1, 3.0, never)
    fleet = engine.start(FleetOrder([FleetTask(name="deadly", repository="/r", prompt="p")]))
    dead = {"worker": "w", "place": "here", "machine": "m", "pid": 1, "born": "b", "until": 1.0, "seen": 1.0}
    held = ATTEMPTS.update().values(state="running", worker="w", goes=MOST_GOES)
    database = FleetDatabase(address)
    database.do(lambda connection: connection.execute(WORKERS.insert().values(dead)) and connection.execute(held))
    database.close()
    # Its worker is gone, so it does not run, although nobody has noticed yet.
    assert [state.state for state in engine.attempts(fleet)] == ["queued"]
    await engine.work(fleet)
    assert [state.state for state in engine.attempts(fleet)] == ["failed"]
    assert [line.said.key for line in engine.logs(fleet)] == ["fleet.worker_died", "fleet.most_goes"]
    engine.close()


def test_a_task_below_a_folder_of_repositories_starts_from_the_result_of_the_one_before(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.add("docs", write("docs.md", "Tax.\n"), after=["tax"], checks=["test -f tax.py"])
    shell.fleet("run", "tasks.toml", "--json", "--repositories", str(shell.work))
    assert [task["state"] for task in shell.told("show")["tasks"]] == ["done", "done"]
    assert shell.repository.show("duckflow/docs-1", "tax.py") == "TAX = 2"


@pytest.mark.slow
def test_a_machine_merges_only_what_was_done_there_and_names_the_others(shell: FleetShell) -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("There is no Postgres on this machine.")
    for name, after in ("tax", []), ("docs", []), ("more", ["tax"]):
        shell.add(name, write(f"{name}.txt", f"{name}\n"), after=after)
    for place in ("one", "two"):
        (shell.work / place).mkdir()
        shell.repository.git("clone", "-q", str(shell.repository.folder), str(shell.work / place / "shop"))
    with own_postgres(programs) as postgres:
        shell.environment["DUCKFLOW_FLEET_DATABASE"] = postgres.address
        shell.fleet("run", "tasks.toml", "--no-work", "--repositories", "one", "--places", "one", "--places", "two")
        fleet = shell.told("list")[0]["fleet"]
        workers = [shell.begin("worker", fleet, "--repositories", place, "--place", place) for place in ("one", "two")]
        assert [worker.wait(120) for worker in workers] == [0, 0], [worker.communicate() for worker in workers]
        for place, other, files in (("one", "two", {"tax.txt", "more.txt"}), ("two", "one", {"docs.txt"})):
            merged = shell.run("fleet", "merge", "--repositories", place, "--place", place)
            told = f"{merged.stdout}{merged.stderr}"
            assert merged.returncode == 0 and (f"belongs to {other} " in told) == (place == "one"), told
            assert set(run_git(shell.work / place / "shop", "ls-files").split()) == {".gitignore", "shop.py"} | files, (
                told
            )
            # No task is to be delivered, so no other machine has anything to deliver either.
            told = shell.run("fleet", "deliver", "--repositories", place, "--place", place)
            assert told.returncode == 2 and "belongs to" not in told.stderr, told.stderr
            # The task that was done there has no branch here, and is not merged again.
            told = shell.run("fleet", "merge", next(iter(files))[:-4], "--place", other)
            assert told.returncode == 2 and "nothing to merge" in told.stderr, told.stderr


async def test_an_attempt_that_names_a_worker_which_does_not_know_of_it_is_put_back(tmp_path: Path) -> None:
    address, begun = str(tmp_path / "fleet.db"), list[str]()
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def wait_for_the_other(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
        begun.append(order.task.name)
        has_begun.set()
        await (may_end.wait() if order.task.name == "first" else asyncio.sleep(0))
        return AttemptReport(order=order, outcome="done", branch=order.branch, commit="0" * 40)

    engine = open_engine(address, "here", 1, 30.0, wait_for_the_other)
    tasks = [FleetTask(name=name, repository="/r", prompt="p", pick="best") for name in ("first", "second")]
    fleet = engine.start(FleetOrder(tasks))
    work = asyncio.create_task(engine.work(fleet))
    await asyncio.wait_for(has_begun.wait(), 30)
    # The database took it down for the worker, and went away before it could tell the worker.
    (worker,) = engine.workers()
    taken = ATTEMPTS.update().where(ATTEMPTS.c.task == "second").values(state="running", worker=worker.worker, goes=1)
    database = FleetDatabase(address)
    database.do(lambda connection: connection.execute(taken))
    database.close()
    await asyncio.sleep(2)
    may_end.set()
    await asyncio.wait_for(work, 30)
    assert begun == ["first", "second"] and [state.state for state in engine.tasks(fleet)] == ["done", "done"]
    engine.close()

"""Sentences and refusals of `duckflow fleet` that a newcomer relies on, and secrets that stay where they are."""

import json
from pathlib import Path

import pytest

from duckflow.fleet.claims import MOST_GOES
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import FleetOrder
from duckflow.fleet.tables import ATTEMPTS, WORKERS
from duckflow.fleet.task import AttemptOrder, AttemptPort, AttemptReport, FleetTask
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
    assert "in the model's own turn, checks: none were run" in told and "check test -f tax.py: exit code 0" in told


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
    told = shell.fleet("answer", "--help")
    assert "usage: duckflow fleet answer" in told and "the question's id" in told and "export" not in told


def test_scripts_get_json_from_every_change_and_reports_refuse_other_formats(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.add("docs", write("docs.md", "Tax.\n"), after=["tax"])
    shell.fleet("run", "tasks.toml", "--no-work")
    assert shell.told("cancel", "tax")["cancelled"] == 1
    # The task that waits for it is cancelled too, and says why.
    assert "because tax" in shell.fleet("logs", "docs")
    assert shell.told("retry", "tax", "--no-work")["task"] == "tax"
    rows = shell.told("report")
    assert [(row["task"], row["state"]) for row in rows] == [("tax", "waiting"), ("docs", "cancelled")]
    assert shell.fleet("report", "--format", "csv").splitlines()[1].split(",")[4] == ""
    shell.fleet("report", "--format", "swebench", ends=2)
    shell.fleet("export", "--format", "md", ends=2)
    assert "–" in shell.fleet("list")


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
    held = ATTEMPTS.update().values(state="running", worker="w", claim="c", goes=MOST_GOES)
    database = FleetDatabase(address)
    database.do(lambda connection: connection.execute(WORKERS.insert().values(dead)) and connection.execute(held))
    database.close()
    # Its worker is gone, so it does not run, although nobody has noticed yet.
    assert [state.state for state in engine.attempts(fleet)] == ["queued"]
    await engine.work(fleet)
    assert [state.state for state in engine.attempts(fleet)] == ["failed"]
    assert [line.said.key for line in engine.logs(fleet)] == ["fleet.worker_died", "fleet.most_goes"]
    engine.close()

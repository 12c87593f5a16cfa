"""`duckflow fleet` as a shell runs it: the whole story with real processes, a real database and a scripted model."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.fleet.engine import FleetOrder
from duckflow.fleet.task import FleetTask
from tests.cli.shell import Shell
from tests.fleet.yard import Repository, write
from tests.journeys.processes import processes
from tests.journeys.story import act, decide, respond

LONGEST = 120.0


class FleetShell(Shell):
    """A shell in a folder with a repository called `shop`."""

    def __init__(self, top: Path) -> None:
        super().__init__(top, LONGEST)
        self.repository = Repository(self.work / "shop")
        self.environment["GIT_CONFIG_GLOBAL"] = os.devnull
        self._tasks = ['repository = "shop"']

    def add(self, name: str, *replies: Any, **fields: Any) -> None:
        path = self.work / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps({"json": r} if "actions" in r else r) for r in replies), "utf-8")
        given = {"name": name, "prompt": f"Make {name}.", "model": f"scripted:{path}", **fields}
        rows = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]
        self._tasks.append("\n".join(["[[task]]", *rows]))
        (self.work / "tasks.toml").write_text("\n\n".join(self._tasks), "utf-8")

    def fleet(self, *words: str, ends: int = 0) -> str:
        done = self.run("fleet", *words)
        assert done.returncode == ends, (done.stdout, done.stderr)
        return done.stdout

    def told(self, *words: str) -> Any:
        return json.loads(self.fleet(*words, "--json"))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "duckflow", "fleet", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )

    def asked(self, count: int = 1) -> list[dict[str, Any]]:
        """Waits until the inbox has this many questions, and returns them."""
        until = time.monotonic() + LONGEST
        while len(asked := self.told("inbox")) < count:
            assert time.monotonic() < until, self.fleet("logs")
            time.sleep(0.2)
        return asked


def write_and_sleep(seconds: str) -> dict[str, Any]:
    wrote = act("file_ops.write_file", path="tax.py", content="TAX = 2\n")
    return decide(wrote, act("shell.run", command=f"sleep {seconds}"), next_step="continue")


@pytest.fixture
def shell(tmp_path: Path) -> FleetShell:
    return FleetShell(tmp_path)


def test_a_line_becomes_a_merged_change(shell: FleetShell) -> None:
    model = shell.script(write("tax.py", "TAX = 2\n"))
    done = shell.run("fleet", "run", "--repository", "shop", "-m", model, "--lang", "ja", stdin="税率を上げる\n")
    assert done.returncode == 0 and "税率を上げる  #1  採用" in done.stdout, (done.stdout, done.stderr)
    assert "税率を上げる: duckflow/税率を上げる-1 を" in shell.fleet("merge", "--lang", "ja")
    assert (shell.repository.folder / "tax.py").read_text() == "TAX = 2\n"


def test_models_are_named_as_elsewhere_and_a_wrong_name_starts_nothing(shell: FleetShell) -> None:
    run = ("fleet", "run", "--no-work", "--repository", "shop", "-m")
    refused = shell.run(*run, "antropic/claude-sonnet-5", stdin="Raise the tax.\n")
    assert refused.returncode == 2 and "anthropic:claude-sonnet-5" in refused.stderr
    assert shell.run(*run, "anthropic/claude-sonnet-5", stdin="Raise the tax.\n").returncode == 0
    assert [task["task"]["model"] for task in shell.told("show")["tasks"]] == ["anthropic:claude-sonnet-5"]


@pytest.mark.slow
def test_instances_of_swe_bench_become_predictions(shell: FleetShell) -> None:
    rows: list[dict[str, str]] = []
    for number in range(3):
        shell.repository.write("version.txt", f"{number}\n")
        row = {"instance_id": f"duck__shop-{number}", "repo": "duck/shop", "problem_statement": "Raise the tax."}
        rows.append(row | {"base_commit": shell.repository.commit(f"version {number}")})
    model = shell.script(write("tax.py", "TAX = 2\n"))
    (shell.work / "swe.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = shell.run("fleet", "run", "--from", "swe.jsonl", "--repository", ".", "-m", model, "--at-once", "2")
    assert done.returncode == 0, (done.stdout, done.stderr)
    exported = [json.loads(line) for line in shell.fleet("export", "--format", "swebench").splitlines()]
    assert [prediction["instance_id"] for prediction in exported] == [row["instance_id"] for row in rows]
    assert all(prediction["model_name_or_path"].startswith("duckflow") for prediction in exported)
    for row, prediction in zip(rows, exported, strict=True):
        shell.repository.git("checkout", "-q", row["base_commit"])
        apply = subprocess.run(
            ["git", "apply", "-"], cwd=shell.repository.folder, input=prediction["model_patch"], text=True, check=False
        )
        assert apply.returncode == 0 and (shell.repository.folder / "tax.py").read_text() == "TAX = 2\n"
        shell.repository.git("reset", "-q", "--hard")
        shell.repository.git("clean", "-qfd")
    # A second run in the same clones has other branches, and the same ids.
    assert (
        shell.run("fleet", "run", "--no-work", "--from", "swe.jsonl", "--repository", ".", "-m", model).returncode == 0
    )
    again = [json.loads(line)["instance_id"] for line in shell.fleet("export", "--format", "swebench").splitlines()]
    assert again == [row["instance_id"] for row in rows]
    refused = shell.run("fleet", "run", "--from", "swe.jsonl", "--repository", "home")
    assert refused.returncode == 2 and "duck/shop" in refused.stderr


def test_waiting_tasks_get_unique_names_and_are_cancelled_at_once(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    shell.add("送料", write("ship.py", "SHIP = 5\n"))
    first = shell.fleet("--no-work", "run", "tasks.toml").strip()
    again = shell.run("fleet", "run", "--no-work", "tasks.toml")
    assert "tax is called tax.2 here" in again.stderr and "送料 is called 送料.2 here" in again.stderr
    # Flags and words may come in any order, and no word is ignored.
    assert "tax was cancelled." in shell.fleet("cancel", "--attempt", "1", first, "--lang", "en", "tax")
    states = {one["task"]["name"]: one["state"] for one in json.loads(shell.fleet("show", "--json", first))["tasks"]}
    assert states == {"tax": "cancelled", "送料": "waiting"}
    refused = shell.run("fleet", "cancel", first, "tax", "送料")
    assert refused.returncode == 2 and "does not know what to do with: 送料" in refused.stderr


@pytest.mark.slow
def test_names_from_other_machines_cannot_control_the_terminal(shell: FleetShell) -> None:
    """Another machine may have put such names into the database."""
    from tests.fleet.stand_in import hold_a_lock, open_engine

    database, strange = str(shell.work / "fleet.db"), "\x1b[2J\x9b2J\u202e\r\nsecond"
    engine = open_engine(database, "\x1b[1mhere", 1, 30.0, hold_a_lock(shell.work / "ledger", 0.0))
    engine.start(FleetOrder([FleetTask(name="tax", repository=f"/{strange}", prompt=strange)]))
    engine.close()
    looks = ("list",), ("show",), ("report",), ("show", "tax"), ("cancel", "tax"), ("cancel", "\x1b"), ("run", "\x1b")

    def told(*words: str) -> str:
        done = shell.run("fleet", *words, "--database", database)
        printed = done.stdout + done.stderr
        assert printed and not set("\x1b\x9b\u202e\r") & set(printed), printed
        return printed

    for words in looks:
        told(*words)
    with sqlite3.connect(database) as rows:
        (text,) = rows.execute("select task from fleet_tasks").fetchone()
        rows.execute("update fleet_tasks set task = ?", (json.dumps(json.loads(text) | {"name": strange}),))
    assert "name is “\\x1b[2J" in told("show")


@pytest.mark.slow
def test_two_fleets_with_tasks_of_the_same_name_both_work(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    for _ in range(2):
        shell.fleet("run", "tasks.toml", "--no-work")
    worker = shell.begin("worker")
    try:
        until = time.monotonic() + LONGEST
        while [one["tasks"] for one in shell.told("list")] != [{"done": 1}, {"done": 1}]:
            assert time.monotonic() < until, shell.fleet("logs")
            time.sleep(0.5)
    finally:
        worker.terminate()
        worker.communicate(timeout=LONGEST)
    assert shell.repository.branches() == ["duckflow/tax-1", "duckflow/tax.2-1", "main"]
    (line,) = [json.loads(one) for one in shell.fleet("logs", "--json").splitlines() if "attach" in one]
    assert line["task"] == "tax.2"


@pytest.mark.slow
def test_the_whole_story(shell: FleetShell) -> None:
    """Two tasks run, one answer to a Gate serves both attempts, checks pass, everything is merged."""
    shell.add("tax", write("tax.py", "TAX = 2\n"), checks=["grep -q 2 tax.py"])
    shell.add("送料", write("ship.py", "SHIP = 5\n"), mode="ask", attempts=2)
    run = shell.begin("run", "tasks.toml", "--json")
    first, second = shell.asked(2)
    assert first["same"] == second["same"] and first["task"] == "送料"
    assert "2" in shell.fleet("answer", first["asked_id"], "1", "--all-same")
    output, errors = run.communicate(timeout=LONGEST)
    assert run.returncode == 0, (output, errors)
    told = json.loads(output)
    assert {state["task"]["name"]: state["state"] for state in told["tasks"]} == {"tax": "done", "送料": "choose"}
    assert shell.told("merge", "--pick", "best")[1]["outcome"] == "merged"
    assert (shell.repository.folder / "tax.py").exists() and shell.repository.show("main", "ship.py") == "SHIP = 5"
    assert shell.repository.worktrees() == 0 and shell.repository.git("status", "--porcelain") == ""
    assert "2 merged" in shell.fleet("list")
    assert "grep -q 2 tax.py" in shell.fleet("logs", "tax")


@pytest.mark.slow
def test_a_conflict_goes_back_to_the_attempt_once(shell: FleetShell) -> None:
    """The second attempt conflicts with the first and resolves that. The third cannot, and is left to the user."""
    mended = decide(act("file_ops.read_file", path="shop.py"), next_step="continue"), write("shop.py", "PRICE = 5\n")
    for name, price, more in ("one", 2, ()), ("two", 3, mended), ("three", 4, (decide(respond("No idea.")),)):
        read = decide(act("file_ops.read_file", path="shop.py"), next_step="continue")
        shell.add(name, read, write("shop.py", f"PRICE = {price}\n"), *more)
    shell.fleet("run", "tasks.toml", "--json")
    results = {one["task"]: one for one in json.loads(shell.fleet("merge", "--json", ends=1))}
    assert {name: one["outcome"] for name, one in results.items()} == {
        "one": "merged",
        "two": "merged",
        "three": "conflict",
    }, results
    # Its earlier work is kept and can be picked.
    (three,) = shell.told("show", "three")["tasks"]
    assert (three["state"], three["picked"]) == ("done", 1)
    assert shell.repository.show("duckflow/three-1", "shop.py") == "PRICE = 4"
    (shell.work / "three.jsonl").write_text(json.dumps({"json": write("other.py", "OTHER = 1\n")}), "utf-8")
    shell.fleet("retry", "three", "--json")
    (again,) = [each for each in shell.told("show", "three")["attempts"] if each["number"] == 2]
    assert again["report"]["order"]["task"]["base"] == shell.repository.git("rev-parse", "main")


@pytest.mark.slow
def test_cancel_ends_every_process_and_retry_begins_anew(shell: FleetShell) -> None:
    shell.add("tax", write_and_sleep("71.5"))
    run = shell.begin("run", "tasks.toml")
    wait_for("sleep 71.5")
    shell.fleet("cancel", "tax")
    output, errors = run.communicate(timeout=LONGEST)
    assert run.returncode == 1 and not processes("sleep 71.5"), (output, errors)
    assert shell.repository.worktrees() == 0
    (attempt,) = shell.told("show")["attempts"]
    assert attempt["state"] == "cancelled" and attempt["report"]["branch"]
    assert shell.repository.show("duckflow/tax-1", "tax.py") == "TAX = 2"
    (shell.work / "tax.jsonl").write_text(json.dumps({"json": write("tax.py", "TAX = 3\n")}), "utf-8")
    shell.fleet("retry", "tax", "--json")
    assert shell.repository.show("duckflow/tax-2", "tax.py") == "TAX = 3"


@pytest.mark.slow
def test_a_fleet_without_a_worker_can_be_cancelled(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"), mode="ask")
    run = shell.begin("run", "tasks.toml")
    shell.asked()
    run.terminate()
    output, errors = run.communicate(timeout=LONGEST)
    assert run.returncode == 130 and "fleet cancel fleet_" in errors, (output, errors)
    assert shell.asked() and not processes("attach --host --begin")
    shell.fleet("cancel")
    assert "1 cancelled" in shell.fleet("list") and shell.told("inbox") == []


@pytest.mark.slow
def test_a_killed_worker_leaves_no_process_and_another_worker_goes_on(shell: FleetShell) -> None:
    shell.add("tax", write_and_sleep("72.5"))
    run = shell.begin("run", "tasks.toml")
    wait_for("sleep 72.5")
    run.send_signal(signal.SIGKILL)
    run.communicate()
    until = time.monotonic() + LONGEST
    while processes("sleep 72.5") or processes("attach --host --begin"):
        assert time.monotonic() < until
        time.sleep(0.1)
    (shell.work / "tax.jsonl").write_text(json.dumps({"json": decide(respond("It is all there."))}), "utf-8")
    fleet = shell.told("list")[0]["fleet"]
    worker = shell.begin("worker")
    try:
        while shell.told("show")["tasks"][0]["state"] not in ("done", "failed"):
            assert time.monotonic() < until, shell.fleet("logs")
            time.sleep(0.5)
    finally:
        worker.terminate()
        worker.communicate(timeout=LONGEST)
    told = shell.told("show", fleet)
    assert told["tasks"][0]["state"] == "done", shell.fleet("logs")
    assert shell.repository.show("duckflow/tax-1", "tax.py") == "TAX = 2"


def wait_for(words: str) -> None:
    until = time.monotonic() + LONGEST
    while not processes(words):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
def test_results_are_pushed_and_offered_in_a_pull_request(shell: FleetShell, tmp_path: Path) -> None:
    """A repository named by its address is cloned. Nothing is pushed without a yes."""
    bare = tmp_path / "remote.git"
    shell.repository.git("clone", "-q", "--bare", str(shell.repository.folder), str(bare))
    shell.repository.git("remote", "add", "origin", str(bare))
    asked, programs = tmp_path / "asked", tmp_path / "programs"
    programs.mkdir()
    gh = programs / "gh"
    gh.write_text(f'#!/bin/sh\n(printf "%s\\n" "$@"; cat) > {asked}\necho https://example.com/pull/7\n')
    gh.chmod(0o755)
    shell.environment["PATH"] = f"{programs}:{shell.environment['PATH']}"
    shell.add("tax", write("tax.py", "TAX = 2\n"), deliver="push", checks=["test -f tax.py"])
    more = {"deliver": "pull-request", "repository": bare.as_uri(), "after": ["tax"], "checks": ["test -f ship.py"]}
    shell.add("ship", write("ship.py", "SHIP = 5\n"), **more)
    shell.fleet("run", "tasks.toml", "--json")
    branches = ("branch", "--format=%(refname:short)")
    assert shell.fleet("deliver", ends=1) and run_git(bare, *branches) == "main"
    for name, value, told in (
        ("remote.origin.pushurl", "/elsewhere", "to /elsewhere"),
        ("core.sshCommand", "x", "git"),
    ):
        shell.repository.git("config", name, value)
        assert told in shell.run("fleet", "deliver", *(["--yes"] if told == "git" else [])).stderr
        shell.repository.git("config", "--unset", name)
    assert run_git(bare, *branches) == "main", "a program of the settings pushes nothing"
    results = {result["task"]: result["where"] for result in shell.told("deliver", "--yes")}
    assert results == {"tax": f"{bare} duckflow/tax-1", "ship": "https://example.com/pull/7"}
    assert run_git(bare, *branches).split() == ["duckflow/ship-1", "duckflow/tax-1", "main"]
    assert run_git(bare, "show", "duckflow/ship-1:ship.py") == "SHIP = 5"
    told = asked.read_text()
    assert "--head\nduckflow/ship-1\n--base\nmain" in told and "`test -f ship.py`: exit code 0" in told
    shell.fleet("deliver", "--yes", ends=2)


def run_git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()

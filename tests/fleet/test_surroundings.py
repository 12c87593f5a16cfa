"""The surroundings of an attempt: secrets, a container, notification commands, and checks of pull requests."""

import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from duckflow.fleet.ranking import why_first
from duckflow.fleet.task import AttemptOrder, AttemptReport, FileChange, FleetTask
from duckflow.i18n.words import Words
from tests.fleet.test_commands import FleetShell
from tests.fleet.yard import write
from tests.journeys.story import act, decide, respond

SECRET = "tulip-4711-meadow"
PODMAN = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
[ "$1" = run ] || exit 0
while [ "$1" != image:1 ]; do shift; done
shift
container=podman exec "$@"
"""


@pytest.fixture
def shell(tmp_path: Path) -> FleetShell:
    return FleetShell(tmp_path)


def add_program(shell: FleetShell, name: str, text: str) -> None:
    programs = shell.work.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(text)
    (programs / name).chmod(0o755)
    shell.environment["PATH"] = f"{programs}:{shell.environment['PATH'].removeprefix(f'{programs}:')}"


def test_commands_get_the_secrets_that_a_task_names_and_no_record_holds_them(shell: FleetShell, tmp_path: Path) -> None:
    shell.environment |= {"SHOP_TOKEN": SECRET, "OTHER_TOKEN": "unnamed-4712"}
    shell.repository.write("show.sh", 'echo "<$SHOP_TOKEN>" "<$OTHER_TOKEN>"\nexit 1\n')
    shell.repository.commit("show")
    look = decide(act("shell.run", command="sh show.sh"), next_step="continue")
    wrote = write("tax.py", "TAX = 2\n")
    shell.add("tax", look, wrote, look, wrote, secrets=["SHOP_TOKEN"], checks=["sh show.sh"])
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    # A failing check is reported with its output.
    assert "<•••> <>" in shell.fleet("show", "tax")
    leaks = [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert leaks == []
    journals = [path for path in (tmp_path / "home").rglob("sessions/*/*") if path.is_file()]
    assert "•••".encode() in b"".join(path.read_bytes() for path in journals)


def test_an_attempt_reports_a_missing_secret(shell: FleetShell) -> None:
    shell.add("tax", write("tax.py", "TAX = 2\n"), secrets="SHOP_TOKEN")
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    assert "no variable SHOP_TOKEN" in shell.fleet("show", "tax")


def test_an_attempt_runs_in_a_container_where_it_names_an_image(shell: FleetShell, tmp_path: Path) -> None:
    log = tmp_path / "podman.log"
    add_program(shell, "podman", PODMAN.format(log=log))
    add_program(shell, "duckflow", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m duckflow "$@"\n')
    shell.environment["SHOP_TOKEN"] = SECRET
    fields = {"container": "image:1", "secrets": ["SHOP_TOKEN"], "checks": ["test -f tax.py"]}
    shell.environment["OPENAI_API_KEY"] = "sk-of-the-user-4711"
    shell.add("tax", write("tax.py", "TAX = 2\n"), **fields)
    shell.fleet("run", "tasks.toml", "--yes")
    (attempt,) = shell.told("show")["attempts"]
    assert attempt["state"] == "done" and attempt["report"]["checks"][0]["code"] == 0
    called = log.read_text().splitlines()
    hosted, checked = [line for line in called if line.startswith("run ")]
    assert "image:1 duckflow attach --host led" in hosted and "--mode contained" in hosted
    assert checked.endswith("image:1 sh -c test -f tax.py")
    for line in (hosted, checked):
        assert "--env SHOP_TOKEN " in line and SECRET not in line and "/.git:ro " in line
    # Only the process that calls the model gets its key.
    assert "--env OPENAI_API_KEY " in hosted and "OPENAI_API_KEY" not in checked
    # Leftovers of its name are removed before the start and after the end.
    name = hosted.partition("--name ")[2].split()[0]
    assert called.count(f"rm --force {name}") >= 2


def test_without_an_engine_a_task_with_an_image_fails(shell: FleetShell, tmp_path: Path) -> None:
    for name in ("git", "sh", "bash"):
        (tmp_path / "few").mkdir(exist_ok=True)
        (tmp_path / "few" / name).symlink_to(str(shutil.which(name)))
    shell.environment["PATH"] = str(tmp_path / "few")
    shell.add("tax", write("tax.py", "TAX = 2\n"), container="image:1")
    shell.fleet("run", "tasks.toml", ends=1)
    assert "podman, docker" in shell.fleet("show", "tax")


def test_the_users_command_is_notified_of_questions_and_endings(shell: FleetShell, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    told = '"$DUCKFLOW_EVENT $DUCKFLOW_TASK $DUCKFLOW_SAID"'
    shell.environment["DUCKFLOW_FLEET_HOOK"] = f"printf '%s\\n' {told} >> {heard}"
    shell.add("tax", write("tax.py", "TAX = 2\n"), mode="ask")
    shell.add("nothing", decide(respond("There is nothing to do.")))
    running = shell.begin("run", "tasks.toml", "--json")
    (asked,) = shell.asked()
    shell.fleet("answer", asked["asked_id"], "yes")
    running.communicate(timeout=60)
    until = time.monotonic() + 10
    while len(heard.read_text().splitlines()) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    lines = sorted(heard.read_text().splitlines())
    assert [line.split(" ", 2)[:2] for line in lines] == [["done", "tax"], ["failed", "nothing"], ["waiting", "tax"]]
    assert "without changing anything" in lines[1]


ROLLUPS: dict[str, list[dict[str, str]]] = {
    "passed": [{"status": "COMPLETED", "conclusion": "SUCCESS"}, {"state": "SUCCESS"}],
    "pending": [{"status": "COMPLETED", "conclusion": "SUCCESS"}, {"status": "IN_PROGRESS", "conclusion": ""}],
    "failed": [{"status": "IN_PROGRESS", "conclusion": ""}, {"state": "FAILURE"}],
    "none": [],
}


def test_the_checks_of_a_pull_request_are_read_back(shell: FleetShell, tmp_path: Path) -> None:
    bare, answer = tmp_path / "remote.git", tmp_path / "answer.json"
    shell.repository.git("clone", "-q", "--bare", str(shell.repository.folder), str(bare))
    shell.repository.git("remote", "add", "origin", str(bare))
    view = f'[ "$2" = view ] && cat {answer} || echo https://example.com/pull/7'
    add_program(shell, "gh", f"#!/bin/sh\ncat > {os.devnull}\n{view}\n")
    shell.add("tax", write("tax.py", "TAX = 2\n"), deliver="pull-request")
    shell.fleet("run", "tasks.toml", "--json")
    shell.fleet("ci", ends=2)
    shell.fleet("deliver", "--yes")
    for state, rollup in ROLLUPS.items():
        answer.write_text(json.dumps({"state": "OPEN", "statusCheckRollup": rollup}))
        (told,) = json.loads(shell.fleet("ci", "--json", ends=0 if state == "passed" else 1))
        assert told == {"task": "tax", "where": "https://example.com/pull/7", "checks": state}


def test_the_reason_why_an_attempt_comes_first_is_shown() -> None:
    def report(number: int, **fields: object) -> AttemptReport:
        order = AttemptOrder(fleet="f", task=FleetTask(name="t", repository="/r", prompt="p"), number=number)
        return AttemptReport.model_validate({"order": order, "outcome": "done", "commit": "c", "rating": 7, **fields})

    small, large = [FileChange(path="a", added=2)], [FileChange(path="a", added=9)]
    words = Words("en")
    for better, worse, reason in (
        ({"rating": 9}, {}, "review is better"),
        ({"proof": "proven"}, {"files": small}, "tests prove more"),
        ({"files": small, "cost_usd": 2.0}, {"files": large, "cost_usd": 1.0}, "change is smaller"),
        ({"cost_usd": 1.0}, {"cost_usd": 2.0}, "cheaper than #1"),
        ({}, {}, "was started first"),
    ):
        (told,) = why_first([report(1, **worse), report(2, **better)], words)
        assert reason in told and told.startswith("#1" if not better else "#2"), told
    assert why_first([report(1)], words) == []

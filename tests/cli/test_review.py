"""`duckflow review`: findings with witnesses that were really run, in three forms, with an exit code for CI."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

MEAN = "def mean(values):\n    return sum(values) / len(values) if values else 0\n"
GOOD = f"{MEAN}\n\ndef double(x):\n    return x * 2\n"
BAD = GOOD.replace(" if values else 0", "")
USES = "from calc import mean\n\n\ndef report(rows):\n    return f'mean: {mean(rows)}'\n"
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="a witness needs bubblewrap")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.email=a@b", "-c", "user.name=a")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A repository whose last change breaks the mean of nothing; nothing of it is committed."""
    shell = Shell(tmp_path)
    git(shell.work, "init", "-q", "-b", "main")
    (shell.work / "calc.py").write_text(GOOD)
    (shell.work / "report.py").write_text(USES)
    git(shell.work, "add", ".")
    git(shell.work, "commit", "-qm", "start")
    (shell.work / "calc.py").write_text(BAD)
    return shell


def finding(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "path": "calc.py",
        "line": 2,
        "severity": "high",
        "text": "mean([]) divides by zero",
    } | more
    return act("review.finding", **given)


def reviewing(*actions: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return decide(*actions, next_step="continue"), decide(respond("One fault."))


PROBE = "python3 -c 'import calc; calc.mean([])'"


@needs_bubblewrap
def test_a_witness_is_run_on_the_change_and_before_it(shell: Shell) -> None:
    unshown = finding(line=6, severity="high", text="double is slow")
    model = shell.script(*reviewing(unshown, finding(command=PROBE)))
    done = shell.run("review", "-m", model)
    assert done.returncode == 9, done.stderr
    first, second = done.stdout.index("calc.py:2"), done.stdout.index("calc.py:6")
    assert first < second, "what has no witness comes last"
    assert "ZeroDivisionError" in done.stdout and "no witness" in done.stdout[second:]
    assert "requests" in done.stderr and (shell.work / "calc.py").read_text() == BAD
    assert not list(shell.home.rglob("sessions/**/*.db")), "there is nothing to go on with"


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.parametrize(
    ("command", "status"),
    [("true", "passes"), ("nosuchprogram", "broken"), ("python3 -c 'import calc, nothere'", "fails_before_too")],
)
def test_a_command_that_passes_breaks_or_fails_before_the_change_too_is_no_witness(
    shell: Shell, command: str, status: str
) -> None:
    done = shell.run("review", "--format", "json", "-m", shell.script(*reviewing(finding(command=command))))
    (only,) = json.loads(done.stdout)["findings"]
    assert only["witness"]["status"] == status and not only["shown"]
    assert done.returncode == 0


@pytest.mark.slow
@needs_bubblewrap
def test_a_failing_test_of_new_code_is_a_witness(shell: Shell) -> None:
    """On the code before the change the test cannot even be collected, so nothing speaks for the change."""
    (shell.work / "calc.py").write_text(f"{GOOD}\n\ndef triple(x):\n    return x * 2\n")
    test = {
        "test_path": "test_triple.py",
        "test": "from calc import triple\n\n\ndef test_it():\n    assert triple(1) == 3\n",
    }
    shows = finding(line=10, text="triple doubles", command="python3 -m pytest -q test_triple.py", **test)
    done = shell.run("review", "--format", "json", "-m", shell.script(*reviewing(shows)))
    (only,) = json.loads(done.stdout)["findings"]
    assert only["witness"]["status"] == "fails_new" and only["shown"] and done.returncode == 9


@pytest.mark.slow
@needs_bubblewrap
def test_a_range_elsewhere_and_a_diff_on_stdin_are_looked_at_where_they_apply(shell: Shell) -> None:
    git(shell.work, "commit", "-qam", "simplify")
    git(shell.work, "commit", "-q", "--allow-empty", "-m", "later")
    (shell.work / "calc.py").write_text(GOOD)
    model = shell.script(*reviewing(finding(command=PROBE)))
    done = shell.run("review", "HEAD~1", "--format", "json", "-m", model)
    (only,) = json.loads(done.stdout)["findings"]
    assert only["witness"]["status"] == "fails" and (shell.work / "calc.py").read_text() == GOOD
    diff = git(shell.work, "diff", "HEAD~2", "HEAD~1")
    done = shell.run("review", "-", "--format", "json", "-m", model, stdin=diff)
    (only,) = json.loads(done.stdout)["findings"]
    assert only["witness"]["status"] == "fails", "the patch was applied in a copy"
    assert (shell.work / "calc.py").read_text() == GOOD
    (shell.work / "calc.py").write_text(BAD)
    done = shell.run("review", "-", "--format", "json", "-m", model, stdin=diff)
    (only,) = json.loads(done.stdout)["findings"]
    assert only["witness"]["status"] == "fails", "the folder has the patch already"


def test_the_agent_sees_the_callers_and_only_reads(shell: Shell) -> None:
    write = act("file_ops.write_file", path="calc.py", content=GOOD)
    model = shell.script(decide(write, next_step="continue"), decide(respond("Nothing.")))
    done = shell.run("review", "-m", model, "--mode", "full-auto")
    assert done.returncode == 0 and "No problems were found" in done.stdout
    assert (shell.work / "calc.py").read_text() == BAD


def test_wrong_ranges_and_empty_changes_are_refused_with_a_reason(shell: Shell) -> None:
    model = shell.script()
    assert shell.run("review", "nosuch..range", "-m", model).returncode == 2
    assert shell.run("review", "-", "-m", model, stdin="hello").returncode == 2
    git(shell.work, "checkout", "-q", ".")
    done = shell.run("review", "-m", model)
    assert done.returncode == 2 and "no changes" in done.stderr


SCHEMA = Path(__file__).with_name("sarif-schema-2.1.0.json")
"""The schema of OASIS without its descriptions."""


@pytest.mark.slow
@needs_bubblewrap
def test_sarif_fits_its_schema(shell: Shell) -> None:
    (shell.work / "a b%あ.py").write_text("x = 1\n")
    odd = finding(path="a b%あ.py", line=1, severity="medium", text="odd\n\x1b[31mname \ud800")
    reported = reviewing(finding(command=PROBE), odd, finding(line=6, severity="low", text="ダブル"))
    done = shell.run("review", "--format", "sarif", "-o", "out.sarif", "-m", shell.script(*reported))
    assert done.returncode == 9 and done.stdout == ""
    log = json.loads((shell.work / "out.sarif").read_text("utf-8"))
    validate = fastjsonschema.compile(json.loads(SCHEMA.read_text("utf-8")))
    validate(log)
    results = log["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["shown", "unshown", "unshown"]
    for wrong in ({"level": "bad"}, {"locations": [{"physicalLocation": {"region": {"startLine": 0}}}]}):
        log["runs"][0]["results"] = [{**results[0], **wrong}]
        with pytest.raises(fastjsonschema.JsonSchemaException):
            validate(log)

"""Recognizes commands that are checks, and reads the outcome of a run from a report file or from the exit code."""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from duckflow.safety.files import read_plain
from duckflow.state.checks import NOT_STARTED, CheckKind, CheckReport
from duckflow.tools.shell.calls import (
    called,
    calls_in,
    deciding_call,
    ends_with_call,
    folder_of,
    runs_alone,
)

NAMES_KEPT = 200
LONGEST_REPORT = 20_000_000
REPORTS = "DUCKFLOW_REPORTS"
"""The variable that tells a command the folder for reports about it."""
MOST_MARKS = 500_000
"""The most elements and values in a report. There is a limit because nothing else can run while a report is read."""
LONGEST_SETTINGS = 2_000_000
RUNS_NOTHING = re.compile(
    r"--version|-V|--help|-h|--collect-only|--co|--list\S*|--no-run|--dry-run|--just-print|--exit-zero|--passWithNoTests"
    r"|--fixtures\S*|--markers|--setup-plan|--setup-only|--cache-\S+|--showConfig|--init|--if-present|--keep-going"
    r"|--print-config|--touch|--question|--ignore-errors"
)
MAKE_RUNS_NOTHING = re.compile(r"-[a-z]*[nqtik][a-z]*")
SHOWING = re.compile(
    r"-[qvxsl]+|-r\w+|--(?:tb=\w+|quiet|verbose|no-header|no-summary|color(?:=\w+)?|durations=\d+|maxfail=\d+|exitfirst"
    r"|strict-markers|strict-config|silent|runInBand|ci|run)"
)
"""Options of runners that leave no test out."""
COUNTS = {
    "unittest": r"(?m)^Ran (\d+) tests?",
    "go": r"(?m)^ok\s+\S+",
    "cargo": r"(?m)^test result: ok\. (\d+) passed;",
    "node": r"(?m)^# pass (\d+)",
    "jest": r"(?m)^Tests:.*?(\d+) passed",
    "vitest": r"(?m)^\s*Tests\s+.*?(\d+) passed",
}
"""Patterns for the tests that ran, as a runner prints them, for a run without a report. Go prints packages instead of a
number of tests."""
PYTEST_PASSED = re.compile(r"(?m)^(?:=+ )?(?:[^\n]*, )?(\d+) passed\b[^\n]* in \d[\d.]*s")
"""A pattern for the number of passed tests in the last line of pytest."""
BAD_NEWS = {
    "unittest": r"(?m)^FAILED \(.*",
    "doctest": r"(?m)^\*\*\*Test Failed\*\*\*.*",
    "go": r"(?m)^(?:--- )?FAIL\b",
    "cargo": r"(?m)^test result: FAILED\..*",
    "node": r"(?m)^(?:#|ℹ) fail [1-9]\d*",
    "jest": r"(?m)^Tests:.*?[1-9]\d* failed",
    "vitest": r"(?m)^\s*Tests\s+.*?[1-9]\d* failed",
}
"""Patterns for failed tests, as a runner prints them, for a run without a report."""
FAILED = re.compile(r"(?<!expected )\b(?:failures|errors|successes)=(\d+)|(\d+) failed|fail (\d+)")
FAILED_NAMES = {
    "unittest": r"(?m)^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (.+)",
    "go": r"(?m)^(?:\s*--- FAIL:|FAIL\t)\s*(\S+)",
    "cargo": r"(?m)^test (\S+) \.\.\. FAILED",
}
"""Patterns for the names of failed tests, as a runner prints them. Go prints no other count of failures."""
LEFT_OUT = "characters left out"
NEVER = r"(?!)"
COUNTS_ALL = frozenset(("unittest",))
"""Runners whose printed number of tests includes the failed tests."""
ONE_COUNT = frozenset(("unittest", "node", "jest", "vitest"))
PYTEST_USAGE = 4
BROKEN_SETUP = re.compile(r"while loading conftest|Error importing plugin|(?m:^E  )")
"""A pattern for output of pytest that could not start because of the project's own code."""
USAGE_LINES = 6
USAGE = re.compile(
    r"(?im)^usage: |(?:unrecognized|unknown|unexpected|invalid|no such|bad) (?:arguments?|options?|flag|command)\b"
    r"|missing script:|no rule to make target|file or directory not found|no such file or directory \(os error 2\)"
    r"|no module named '?(?:pytest|unittest|tox|nox|ruff|mypy|flake8|pylint|pyright|basedpyright)\b"
)
"""Messages by which runners say that the command itself is wrong, in the first lines that they print."""
OWN_REPORT = re.compile(r"junit|--(?:test-)?reporter|--json|--outputFile|(?:^| )--(?: |$)")
DECLARES = re.compile(r"<!(?!--)")
CONFIGURATIONS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini")
FOLDER_LIMIT = 200_000


class RecognisedCheck(NamedTuple):
    """A command that runs a check, alone or among other things."""

    words: tuple[str, ...]
    kind: CheckKind
    alone: bool
    """True if nothing else in the command can have failed."""
    folder: str = ""
    """The folder below the work folder in which the check runs. It belongs to the name of the check, because a run in
    one folder checks no files outside of it."""
    hidden: bool = False
    """True if another call may decide how the command ends (`pytest; true`). Then only a failure of the check counts,
    because a success of the command shows nothing."""

    @property
    def name(self) -> str:
        return " ".join(word for word in (*self.words, self.folder) if word and not SHOWING.fullmatch(word))


def recognised(command: str) -> RecognisedCheck | None:
    """Returns the check if it decides how the command ends, as in `cd app && pytest`; otherwise None."""
    words = deciding_call(command)
    kind = _kind_of(words)
    return RecognisedCheck(tuple(words), kind, runs_alone(command), folder_of(command)) if kind else None


def check_in(command: str) -> RecognisedCheck | None:
    """Returns the check that a command runs, however the command is written; the last check if there are several."""
    if check := recognised(command):
        return check
    return next(_checks_of(reversed(list(calls_in(command)))), None)


def _checks_of(calls: Iterable[list[str]]) -> Iterator[RecognisedCheck]:
    """Yields the checks among these calls, also those that a program before them starts, as in `stdbuf -oL pytest`."""
    from duckflow.safety.commands.words import WRAPPERS

    for call in calls:
        starts = range(len(call) if call[0] in WRAPPERS or call[0].startswith("-") else 1)
        for words in (called(call[start:]) for start in starts):
            if words and (kind := _kind_of(words)):
                yield RecognisedCheck(tuple(words), kind, alone=False, hidden=True)
                break


def _kind_of(words: list[str]) -> CheckKind | None:
    from duckflow.safety.commands.project_tools import check_kind

    if any(RUNS_NOTHING.fullmatch(word) for word in words):
        return None
    if words[:1] == ["make"] and any(MAKE_RUNS_NOTHING.fullmatch(word) for word in words[1:]):
        return None
    return check_kind(words)


class RunnerReport(NamedTuple):
    """The way to ask a runner for a report: by a variable, or by options after the command if the runner reads no
    variable."""

    options: str
    variable: str = ""


RUNNER_REPORTS = {
    "pytest": RunnerReport("--junitxml={path}", "PYTEST_ADDOPTS"),
    "node": RunnerReport(
        "--test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit "
        "--test-reporter-destination={path}",
        "NODE_OPTIONS",
    ),
    "vitest": RunnerReport("--reporter=default --reporter=junit --outputFile.junit={path}"),
    "jest": RunnerReport("--json --outputFile={path}"),
}


class ReportFile:
    """The file that a runner writes its report to. It is in the folder for temporary files, under an unpredictable
    name."""

    def __init__(self, asked: RunnerReport, folder: Path) -> None:
        self._asked = asked
        self._name = f"report-{secrets.token_hex(8)}"
        self._path = folder / self._name

    @property
    def arguments(self) -> str:
        """Returns the options to append to the command, for a runner that reads no variable."""
        return "" if self._asked.variable else " " + self._asked.options.format(path=f'"${REPORTS}/{self._name}"')

    def environment(self, before: Mapping[str, str]) -> dict[str, str]:
        """Returns the variables of the command. If the runner reads a variable for reports, it is added."""
        options = self._asked.options.format(path=f"{before[REPORTS]}/{self._name}")
        variables = {name: f"{before.get(name, '')} {options}".strip() for name in [self._asked.variable] if name}
        return {**before, **variables}

    def without_its_line(self, output: bytes) -> bytes:
        """Removes the line that says where the report is: the command alone would not have printed it."""
        line = rf"(?m)^.*{self._name}.*\n?".encode()
        return re.sub(line, b"", output) if self._name.encode() in output else output

    def read(self) -> "RunResults | None":
        """Reads the report. Returns None if there is no report, or its content makes no sense: any command can write to
        this file."""
        try:
            text = read_plain(self._path, LONGEST_REPORT, follow=False).decode("utf-8", "replace")
            self._path.unlink()
            if sum(map(text.count, "<[{")) > MOST_MARKS:
                return None
            return _from_json(text) if text.startswith("{") else _from_junit(text)
        except (OSError, ElementTree.ParseError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None


class RunResults(NamedTuple):
    """The names of the tests that passed, and of those that failed."""

    passed: list[str]
    failed: list[str]
    skipped: int = 0
    """The number of tests that are marked as skipped. Pytest marks a test that passed in the same way if a part of it
    was skipped."""

    @property
    def ran(self) -> int:
        return len(self.passed) + len(self.failed)

    def counted(self, runner: str, output: str) -> int:
        """Returns the number of tests that ran. It is the one that pytest prints, as far as the report allows it: the
        report alone cannot tell a skipped test from one with a skipped part."""
        printed_counts = PYTEST_PASSED.findall(output) if runner == "pytest" else []
        if not printed_counts:
            return self.ran
        return min(int(printed_counts[-1][:9]) + len(self.failed), self.ran + self.skipped)


def _from_junit(text: str) -> RunResults | None:
    if DECLARES.search(text):
        return None
    # Where a file has no tests, Node reports the file itself as a test that passed.
    cases = [case for case in ElementTree.fromstring(text).iter("testcase") if not case.get("name", "").startswith("/")]
    names = {case: f"{case.get('classname', '')}::{case.get('name', '')}" for case in cases}
    failed_cases = [case for case in names if case.find("failure") is not None or case.find("error") is not None]
    passed_cases = [case for case in names if not {child.tag for child in case} & {"failure", "error", "skipped"}]
    skipped = len(names) - len(passed_cases) - len(failed_cases)
    return RunResults([names[case] for case in passed_cases], [names[case] for case in failed_cases], max(skipped, 0))


def _from_json(text: str) -> RunResults:
    files: list[dict[str, Any]] = json.loads(text)["testResults"]
    cases: list[dict[str, Any]] = [case for file in files for case in file["assertionResults"]]
    passed_names, failed_names = (
        [str(case["fullName"]) for case in cases if case["status"] == status] for status in ("passed", "failed")
    )
    return RunResults(passed_names, failed_names)


def text_in(folder: Path, name: str) -> str:
    """Returns the text of a file of the folder; an empty text if the file cannot be read."""
    try:
        return read_plain(folder / name, LONGEST_SETTINGS, cut=True).decode("utf-8", "replace")
    except OSError:
        return ""


def report_for(check: RecognisedCheck, command: str, folder: Path, text_of: Callable[[str], str]) -> ReportFile | None:
    """Returns the file for the report; None where the runner has no report, or where the project or the command sets up
    reports itself."""
    runner_report = RUNNER_REPORTS.get(check.words[0])
    configurations = [text_of(name)[:FOLDER_LIMIT] for name in CONFIGURATIONS] if check.words[0] == "pytest" else []
    if (
        runner_report is None
        or OWN_REPORT.search(" ".join(check.words))
        or any("junit" in text for text in configurations)
    ):
        return None
    return ReportFile(runner_report, folder) if runner_report.variable or ends_with_call(command) else None


def _did_not_run(check: RecognisedCheck, code: int, output: str) -> bool:
    """Says whether the command itself is wrong, so that nothing was checked: there is no such program, option, file or
    script."""
    if code in NOT_STARTED:
        return True
    if check.words[0] == "pytest" and code == PYTEST_USAGE:
        return not BROKEN_SETUP.search(output)
    first_lines = "\n".join(output.strip().splitlines()[:USAGE_LINES])
    return code != 0 and USAGE.search(first_lines) is not None


def judged(check: RecognisedCheck, code: int, output: str, report: ReportFile | None) -> CheckReport:
    """Judges a run. Where a report was asked for, only the report shows success."""
    results = report.read() if report else None
    ran_count = results.counted(check.words[0], output) if results else 0
    if not (results and (results.ran or results.failed)) and _did_not_run(check, code, output):
        return _result(check, None)
    if check.hidden:
        if results and results.failed:
            return _failed(check, ran_count, len(results.failed), results.failed)
        bad_news = re.search(BAD_NEWS.get(check.words[0], NEVER), output)
        return _failed(check, 0, *_printed(check, output)) if bad_news else _result(check, None)
    if report:
        if results is None:
            return _result(check, False if code and check.alone else None)
        if code or results.failed:
            judged_run = _failed(check, ran_count, len(results.failed), results.failed)
        else:
            judged_run = _result(check, True if results.ran else None, ran_count)
        return judged_run.model_copy(update={"passed": tuple(results.passed)})
    pattern = COUNTS.get(check.words[0]) if check.kind == "tests" else None
    matches: list[str] = re.findall(pattern, output) if pattern else []
    test_counts = [int(match) if match.isdecimal() else 1 for match in matches]
    if code and not check.alone:
        return _result(check, None)
    if code:
        return _failed(check, sum(test_counts) if check.words[0] in COUNTS_ALL else 0, *_printed(check, output))
    if pattern is None:
        return _result(check, True)
    # A runner of this kind prints one number. If one of several numbers is 0, another program printed the rest.
    ran_count = 0 if check.words[0] in ONE_COUNT and 0 in test_counts else sum(test_counts)
    return _result(check, True if ran_count else None, ran_count if any(map(str.isdecimal, matches)) else 0)


def failed_check(calls: Iterable[list[str]], code: int, output: str) -> CheckReport | None:
    """Returns the first check among calls that have failed with this exit code; None if there is none."""
    failed_checks = (check for check in _checks_of(calls) if not _did_not_run(check, code, output))
    return next((_failed(check, 0, *_printed(check, output)) for check in failed_checks), None)


def _printed(check: RecognisedCheck, output: str) -> tuple[int, list[str]]:
    """Returns how many tests failed, as the runner prints it, and their names where it prints them all."""
    runner = check.words[0]
    names: list[str] = re.findall(FAILED_NAMES.get(runner, NEVER), output)
    summary = " ".join(re.findall(BAD_NEWS.get(runner, NEVER), output))
    count = sum(int(number) for numbers in FAILED.findall(summary) for number in numbers if number)
    if runner == "go" and LEFT_OUT not in output:
        count = len(names)
    return count, names


def _result(check: RecognisedCheck, ok: bool | None, tests: int = 0) -> CheckReport:
    return CheckReport(check=check.name, kind=check.kind, ok=ok, tests=tests)


def _failed(check: RecognisedCheck, tests: int, failed: int, names: list[str]) -> CheckReport:
    """Makes the report of a run that failed. An incomplete list of names is dropped."""
    names = sorted(names) if len(names) == failed else []
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest() if len(names) > NAMES_KEPT else ""
    report = CheckReport(check=check.name, kind=check.kind, ok=False, tests=tests, failed=failed, digest=digest)
    return report.model_copy(update={"failures": tuple(names[:NAMES_KEPT])})

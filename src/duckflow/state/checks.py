"""Checks: runs of tests, types, lint and builds. The last run of each is on the record with what it reported."""

from collections.abc import Sequence
from typing import Literal

from duckflow.state.noun import Value

CheckKind = Literal["tests", "types", "lint", "build"]
CHECK_KINDS: tuple[CheckKind, ...] = ("tests", "types", "lint", "build")
ChecksState = Literal["none", "outdated", "passing", "failing_before", "failing"]
SHOWN = 4
NOT_STARTED = (126, 127)
"""The exit codes of a shell that found no program to run."""


class CheckReport(Value):
    """The report of one run. `check` is the call without the options that only change what is shown."""

    check: str
    kind: CheckKind
    ok: bool | None
    """None: it tells nothing, since no test ran, or since something else decided how the command ended."""
    tests: int = 0
    """How many tests ran; 0 where the runner does not say it."""
    failed: int = 0
    failures: tuple[str, ...] = ()
    """The names of the tests that failed, where the runner tells them."""

    def covers(self, other: "CheckReport") -> bool:
        """Says whether this run leaves out nothing that the other one ran: it chooses no more than that."""
        mine, others = self.check.split(), other.check.split()
        return mine[:1] == others[:1] and set(mine) <= set(others)

    def line(self) -> str:
        """Shows the run in few signs that every language has."""
        if self.ok:
            return f"✓ {self.check}" + (f" ({self.tests})" if self.tests else "")
        return f"✗ {self.check}" + (f" ({self.failed}/{self.tests})" if self.tests else "")


class CheckRun(Value):
    """The last run of a check."""

    report: CheckReport
    turn: int
    after_change: bool = False
    """Something had been changed in its turn before it ran."""
    outdated: bool = False
    """Something was changed after it ran."""
    before: CheckReport | None = None
    """The last run before the changes of its turn, where it is known."""

    @property
    def failing(self) -> bool:
        return self.report.ok is False

    @property
    def as_before(self) -> bool:
        """Says whether the changes of its turn broke nothing: all that fails now failed before them."""
        if not self.after_change or self.before is None or self.before.ok is not False:
            return False
        if self.report.failures and self.before.failures:
            return set(self.report.failures) <= set(self.before.failures)
        return self.report.failed <= self.before.failed


def with_run(runs: Sequence[CheckRun], report: CheckReport, turn: int, after_change: bool) -> list[CheckRun]:
    """Adds a run to the record. A run that passes takes away the runs of which it leaves out nothing."""
    last = next((run for run in runs if run.report.check == report.check), None)
    before = last.before if last and last.turn == turn and last.after_change else last.report if last else None
    others = [run for run in runs if run.report.check != report.check and not (report.ok and report.covers(run.report))]
    return [*others, CheckRun(report=report, turn=turn, after_change=after_change, before=before)]


def state_of(runs: Sequence[CheckRun]) -> ChecksState:
    """Says how the checks stand as far as the record knows."""
    failing = [run for run in runs if run.failing]
    if failing:
        return "failing_before" if all(run.as_before for run in failing) else "failing"
    if not runs:
        return "none"
    return "outdated" if all(run.outdated for run in runs) else "passing"


def lines_of(runs: Sequence[CheckRun]) -> str:
    """Shows the latest runs in one line, those that fail first. A run that passed before something was changed, or
    before a run of the same program failed, says nothing beside newer ones."""
    latest_first, newer = list[CheckRun](), False
    failed = set[str]()
    for run in reversed(runs):
        program = run.report.check.partition(" ")[0]
        if run.failing or not ((run.outdated and newer) or program in failed):
            latest_first.append(run)
        newer |= not run.outdated
        failed |= {program} if run.failing else set()
    ordered = [*(run for run in latest_first if run.failing), *(run for run in latest_first if not run.failing)]
    return ", ".join(run.report.line() for run in ordered[:SHOWN])

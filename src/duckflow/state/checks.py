"""Checks: runs of tests, types, lint and builds. The state holds the last run of each check with its report."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from duckflow.state.data import FrozenData, Phrase, say

ProofVerdict = Literal["proven", "guards", "hollow", "unknown"]
NAMED = 3


class UnaskedChange(FrozenData):
    """A hunk of a turn's diff that could not be tied to anything the user asked for."""

    turn: int
    path: str
    line: int
    hunk_id: str


class RunBefore(NamedTuple):
    """Tests, by how they ended on the code before a change."""

    passed: tuple[str, ...]
    absent: tuple[str, ...]
    """Tests that cannot run there, because they need something that is missing."""
    other: tuple[str, ...]
    """Tests that were not run there."""


class Proof(FrozenData):
    """Says what the tests of a change prove. Tests are named as pytest does, `tests/test_x.py::test_y`. All lists of
    tests are empty for a turn that did not change both tests and code."""

    red: tuple[str, ...] = ()
    """Tests that fail on the code before the change, and pass now."""
    noticing: tuple[str, ...] = ()
    """Tests of new names. They fail when the new code is broken on purpose."""
    guarding: tuple[str, ...] = ()
    """Tests that prove nothing of the change, but fail when code that they run is broken on purpose."""
    hollow: tuple[str, ...] = ()
    """Tests that show nothing: they notice no change and no break of the code, assert nothing that could be false, or
    are copies of other tests."""
    passing_before: tuple[str, ...] = ()
    """Those of `guarding` and `hollow` that were run on the code before the change and passed there."""
    absent_before: tuple[str, ...] = ()
    """Those of `guarding` and `hollow` that cannot run on the code before the change, because they need something that
    is missing there."""
    untold: tuple[str, ...] = ()
    """Tests that could not be tried, so that nothing is known about them."""
    why: Phrase | None = None
    """The reason why the tests in `untold` could not be tried."""
    unreached: tuple[str, ...] = ()
    """New public names and keys of configurations that nothing else in the folder mentions."""
    unasked: tuple[UnaskedChange, ...] = ()
    """Changes that nobody asked for; each can be taken back by itself."""
    seconds: float = 0.0

    @property
    def verdict(self) -> ProofVerdict:
        if self.hollow:
            return "hollow"
        if self.red or self.noticing:
            return "proven"
        return "guards" if set(self.guarding) - set(self.absent_before) and not self.untold else "unknown"

    @property
    def holds(self) -> bool:
        """Says whether the work counts as proven where proof is required (`--require-proof`)."""
        return self.verdict == "proven"

    def by_run_before(self, tests: tuple[str, ...]) -> RunBefore:
        """Returns these tests by how they ended on the code before the change."""
        passed, absent = set(self.passing_before), set(self.absent_before)
        return RunBefore(
            tuple(name for name in tests if name in passed),
            tuple(name for name in tests if name in absent),
            tuple(name for name in tests if name not in passed | absent),
        )

    def parts(self) -> tuple[Phrase, ...]:
        """Returns the parts of the line that tells a person about the proof."""
        guarding, hollow = self.by_run_before(self.guarding), self.by_run_before(self.hollow)
        tests_by_kind = (
            ("red", self.red),
            ("noticing", self.noticing),
            ("guarding", guarding.passed),
            ("guarding_new", guarding.absent),
            ("guarding_alone", guarding.other),
        )
        phrases = [say(f"proof.{name}", count=len(tests)) for name, tests in tests_by_kind if tests]
        for name, tests in (("hollow", hollow.passed), ("hollow_new", (*hollow.absent, *hollow.other))):
            phrases += [say(f"proof.{name}", count=len(tests), names=named(tests))] if tests else []
        if self.untold:
            phrases.append(say("proof.untold", count=len(self.untold)))
        phrases += [self.why] if self.why else []
        if self.unreached:
            phrases.append(say("proof.unreached", names=named(self.unreached)))
        if self.unasked:
            unasked_places = tuple(f"{change.path}:{change.line}" for change in self.unasked)
            phrases.append(say("proof.unasked", count=len(unasked_places), places=named(unasked_places)))
        return tuple(phrases)


def named(names: tuple[str, ...]) -> str:
    """Returns the first few names in one line. Tests are named without their files."""
    short_names = [name.rpartition("::")[2] for name in names[:NAMED]]
    return ", ".join(short_names) + (" …" if len(names) > NAMED else "")


TEST_FOLDERS = frozenset(("test", "tests", "testing", "__tests__", "spec", "specs"))
TEST_FILE = re.compile(r"test_.*|.*_tests?|tests?|conftest|.*[.-](?:test|spec)|.*Tests?")
TEST_SETTINGS = frozenset(
    ("pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
     "noxfile.py", "package.json", "Cargo.toml")
)  # fmt: skip
"""Files that say how tests are run. When tests are tried on older code, these files keep their present version."""


def belongs_to_tests(path: str) -> bool:
    """Says whether a file is a test, or lies among tests, and so is not the code under test."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0] or name
    return not TEST_FOLDERS.isdisjoint(folders) or TEST_FILE.fullmatch(stem) is not None


def is_code(path: str) -> bool:
    """Says whether a file belongs to the code under test."""
    return not belongs_to_tests(path) and path.rpartition("/")[2] not in TEST_SETTINGS


CheckKind = Literal["tests", "types", "lint", "build"]
CHECK_KINDS: tuple[CheckKind, ...] = ("tests", "types", "lint", "build")
ChecksState = Literal["none", "outdated", "left_out", "passing_before", "passing", "failing_before", "failing"]
SHOWN = 4
COMMANDED = frozenset(
    ("ruff", "go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "make", "just", "tox", "nox", "mix", "gradle", "mvn",
     "dotnet", "python", "python3")
)  # fmt: skip
"""Programs whose first argument is a subcommand, as in `ruff check`."""
PLACE = re.compile(r"[/.]|::")
CHOOSES = re.compile(r"-[km]\b|--(?:deselect|ignore|lf|last-failed|sw|stepwise|pyargs|run|testNamePattern|grep)\b|-t\b")
"""Matches options by which a test runner selects some of the tests."""
NOT_STARTED = (126, 127)
"""The exit codes of a shell that could not start the program."""


class CheckReport(FrozenData):
    """The report of one run of a check. `check` is the command line without options that only change what is shown."""

    check: str
    kind: CheckKind
    ok: bool | None
    """True if the check passed, False if it failed. None means that the run shows neither: no test ran, or something
    else decided how the command ended."""
    tests: int = 0
    """The number of tests that ran; 0 where the runner does not say it."""
    failed: int = 0
    """The number of tests that failed; 0 where the runner does not say it."""
    failures: tuple[str, ...] = ()
    """The names of the failed tests, where the runner lists them all. Of very many only the first are stored."""
    digest: str = ""
    """A hash of the names of all failed tests, where there are more than are stored."""
    passed: tuple[str, ...] = Field(default=(), exclude=True)
    """The names of the tests that passed. They are not written to the journal."""
    left_out: tuple[str, ...] = ()
    """Tests that failed before and that this run neither passed nor failed: they were removed, or are skipped."""
    weakened: tuple[str, ...] = ()
    """Earlier tests, or files of the check, that are now gone, skipped, or changed until they pass."""

    @property
    def in_doubt(self) -> tuple[str, ...]:
        return self.left_out + self.weakened

    @property
    def all_named(self) -> bool:
        return bool(self.failures) and len(self.failures) == self.failed

    def covers(self, other: "CheckReport") -> bool:
        """Says whether this run contains everything that the other run did: its paths include all paths of the other
        run, and it has no further options."""
        own_call, other_call = _split_call(self.check), _split_call(other.check)
        if own_call.program != other_call.program or not own_call.options <= other_call.options:
            return False
        own_places = [place.removesuffix("...").rstrip("/.") for place in own_call.places]
        return not own_call.places or (
            bool(other_call.places)
            and all(any(_holds(place, path) for place in own_places) for path in other_call.places)
        )

    @property
    def runs_all(self) -> bool:
        """Says whether the run contains all tests of its paths, because no option selects some of them."""
        return not any(CHOOSES.match(option) for option in _split_call(self.check).options)

    def covers_file(self, path: str) -> bool:
        places = _split_call(self.check).places
        return not places or any(_holds(place.partition("::")[0].rstrip("/."), path) for place in places)

    def line(self) -> str:
        """Returns the run in one short line of names, numbers and signs that needs no translation."""
        if self.in_doubt:
            return f"◌ {self.check} ({self.tests}; – {', '.join(name.rpartition('::')[2] for name in self.in_doubt)})"
        if self.ok:
            return f"✓ {self.check}" + (f" ({self.tests})" if self.tests else "")
        return f"✗ {self.check}" + (f" ({self.failed}/{self.tests})" if self.tests else "")


class _Call(NamedTuple):
    program: tuple[str, ...]
    options: frozenset[str]
    places: tuple[str, ...]


def _split_call(check: str) -> _Call:
    """Splits a command line into program, options and paths. An option keeps the word after it, unless that word looks
    like a path."""
    words = check.split()
    length = 2 if words and words[0] in COMMANDED and len(words) > 1 and words[1][0] != "-" else 1
    options, places = list[str](), list[str]()
    for word in words[length:]:
        if word[0] == "-":
            options.append(word)
        elif options and not places and " " not in options[-1] and "=" not in options[-1] and not PLACE.search(word):
            options[-1] += f" {word}"
        else:
            places.append(word.removeprefix("./") or ".")
    return _Call(tuple(words[:length]), frozenset(options), tuple(places))


def _holds(place: str, inner: str) -> bool:
    """Says whether one path includes another: a folder its files, a file its tests, a module its parts."""
    return not place or inner.rstrip("/") == place or inner.startswith((f"{place}/", f"{place}::", f"{place}."))


class CheckRun(FrozenData):
    """The last run of a check, and what was changed before and after it."""

    report: CheckReport
    turn: int
    after_change: bool = False
    """True if something was changed in the same turn before the check ran."""
    outdated: bool = False
    """True if something that the check could look at was changed after it ran."""
    before_edit: bool = False
    """True if a document was changed after the check ran. A few tests read documents, most do not."""
    before: CheckReport | None = None
    """The last run of the check before the changes of this run's turn, if it is known."""
    before_in_turn: bool = False
    """True if the run in `before` was made in the same turn."""

    @property
    def failing(self) -> bool:
        return self.report.ok is False

    @property
    def as_before(self) -> bool:
        """Says whether the changes of the run's turn broke nothing: every test that fails now failed before the
        changes. Runs without counts cannot be compared, and where fewer tests ran, some may have been removed."""
        report, before = self.report, self.before
        if not self.after_change or before is None or before.ok is not False or report.tests < before.tests:
            return False
        if report.all_named and before.all_named:
            return set(report.failures) <= set(before.failures)
        return 0 < report.failed <= before.failed

    @property
    def same_as_before(self) -> bool:
        """Says whether exactly the same tests fail as before the changes of the run's turn."""
        if not self.as_before or self.before is None or self.report.failed != self.before.failed:
            return False
        is_comparable = self.report.all_named or bool(self.report.digest)
        return is_comparable and (self.report.failures, self.report.digest) == (
            self.before.failures,
            self.before.digest,
        )


def with_run(runs: Sequence[CheckRun], report: CheckReport, turn: int, after_change: bool) -> list[CheckRun]:
    """Adds a run to the list. If the run passes, it replaces earlier runs that did nothing more than this run."""
    last_run = next((run for run in runs if run.report.check == report.check), None)
    was_in_turn = last_run is not None and last_run.turn == turn
    if last_run and was_in_turn and last_run.after_change:
        report_before, was_in_turn = last_run.before, last_run.before_in_turn
    else:
        report_before = last_run.report if last_run else None
    replaces_others = report.ok or report.in_doubt
    other_runs = [
        run for run in runs if run.report.check != report.check and not (replaces_others and report.covers(run.report))
    ]
    return [
        *other_runs,
        CheckRun(report=report, turn=turn, after_change=after_change, before=report_before, before_in_turn=was_in_turn),
    ]


def left_out_of(runs: Sequence[CheckRun], report: CheckReport, turn: int) -> tuple[str, ...]:
    """Returns the tests that failed earlier and that this passing run did not run, though it seems to cover them."""
    replaced_runs = [run for run in runs if report.covers(run.report)]
    failed_names = [name for run in replaced_runs for name in run.report.failures]
    failed_names += [name for run in replaced_runs if run.turn == turn for name in run.report.left_out]
    return tuple(dict.fromkeys(name for name in failed_names if name not in set(report.passed)))


def state_of(runs: Sequence[CheckRun]) -> ChecksState:
    """Returns the state of all checks together: none, passing or failing."""
    failing_runs = [run for run in runs if run.failing]
    if failing_runs:
        return "failing_before" if all(run.as_before for run in failing_runs) else "failing"
    if not runs:
        return "none"
    valid_runs = [run for run in runs if not run.outdated]
    if any(run.report.in_doubt for run in valid_runs):
        return "left_out"
    return ("passing_before" if all(run.before_edit for run in valid_runs) else "passing") if valid_runs else "outdated"


def lines_of(runs: Sequence[CheckRun]) -> str:
    """Shows the latest runs in one line, failing ones first. A passing run is left out if it is outdated and a later
    run is not, or if a later run of the same program failed."""
    shown_runs, has_newer = list[CheckRun](), False
    failed_programs = set[str]()
    for run in reversed(runs):
        program = run.report.check.partition(" ")[0]
        if run.failing or not ((run.outdated and has_newer) or program in failed_programs):
            shown_runs.append(run)
        has_newer |= not run.outdated
        failed_programs |= {program} if run.failing else set()
    ordered_runs = [*(run for run in shown_runs if run.failing), *(run for run in shown_runs if not run.failing)]
    return ", ".join(run.report.line() for run in ordered_runs[:SHOWN])

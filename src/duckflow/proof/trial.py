"""Red before green: the tests of a change should fail on the code before it. If there is no code before it, or if they
pass there too, small faults (breaks) in the changed code show whether the tests can fail."""

import asyncio
import difflib
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from duckflow.errors import DuckflowError
from duckflow.proof.breaking import UNCHANGED, BrokenCode, TestRuns, by_test
from duckflow.proof.mutants import Place, breaks_of, chosen
from duckflow.proof.python_tests import FileTests, tests_in_question
from duckflow.proof.runners import TestRunner, finder_for, runner_of
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial_folder import MakeLaunch, TrialFolder
from duckflow.proof.verdicts import TrialEnd, failure_kind, names_in
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import Proof, belongs_to_tests, is_code
from duckflow.state.data import Phrase, said, say

OLD_PATIENCE = 2.0
"""The code before the change gets this many times the time that broken code gets."""
MANY = 4
"""Chooses this many times as many breaks (faults put in on purpose) as one test is tried on. Tests run different lines,
and some breaks make a file impossible to load."""
PYTHON = re.compile(r".*\.py")


@dataclass
class TestsInQuestion:
    """The tests that a change adds or alters, and the code that they are for."""

    code: list[FileVersions]
    files: dict[str, FileTests]

    @property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """Returns the tests to run, by file."""
        return {path: tests.tried for path, tests in self.files.items() if tests.tried}

    def run_by(self, command: str) -> "TestsInQuestion":
        """Returns only those of the tests that the runner in this command can run."""
        runner = runner_of(command)
        fitting_files = runner.files if runner else PYTHON
        return replace(self, files={path: tests for path, tests in self.files.items() if fitting_files.fullmatch(path)})

    def names(self, of: str) -> tuple[str, ...]:
        return tuple(f"{path}::{name}" for path, tests in self.files.items() for name in getattr(tests, of))

    def added(self) -> frozenset[str]:
        """Returns the names that only the new code has."""
        names_before, names_after = (
            frozenset(name for text in texts for name in names_in(text)) for texts in self._texts()
        )
        return names_after - names_before

    def lines(self) -> dict[str, set[int]]:
        """Returns the changed lines of code in Python, by file."""
        python_changes = [change for change in self.code if change.path.endswith(".py") and change.after is not None]
        return {change.path: lines for change in python_changes if (lines := _changed_lines(change.old, change.new))}

    def _texts(self) -> tuple[list[str], list[str]]:
        paths = [change.path.rpartition("/")[2].removesuffix(".py") for change in self.code if change.before is None]
        return [change.old for change in self.code], [*(change.new for change in self.code), *paths]


def questions_of(changes: Sequence[FileVersions]) -> TestsInQuestion | None:
    """Returns the tests of a change that are to be tried; None if the change contains no tests. If it contains nothing
    but tests, they are for the existing code, and are tried on that code with faults put in on purpose."""
    code = [change for change in changes if is_code(change.path)]
    files = {
        change.path: tests
        for change in changes
        if belongs_to_tests(change.path) and change.after is not None
        if (find := tests_in_question if change.path.endswith(".py") else finder_for(change.path))
        if any((tests := find(change.old, change.new))[:3])
    }
    return TestsInQuestion(code, files) if files else None


def _changed_lines(old: str, new: str) -> set[int]:
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        line + 1 for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for line in range(first, last)
    }


@dataclass
class RedGreenTrial:
    """One trial of the tests of a change."""

    questions: TestsInQuestion
    command: str
    """The command by which the tests were run when they passed."""
    settings: ProofSettings
    _red: set[str] = field(default_factory=set[str])
    _absent: set[str] = field(default_factory=set[str])
    _green: set[str] = field(default_factory=set[str])
    _noticing: set[str] = field(default_factory=set[str])
    _guarding: set[str] = field(default_factory=set[str])
    """Tests that notice breaks (faults put in on purpose) of code that the change did not touch."""
    _hollow: set[str] = field(default_factory=set[str])
    _reached: dict[str, dict[Place, None]] = field(default_factory=dict[str, dict[Place, None]])
    _why: Phrase | None = None

    async def run(self, sandbox: Sandbox, make_launch: MakeLaunch) -> Proof:
        """Tries all tests, for as long as the settings allow."""
        began_at, every_test = time.monotonic(), self.questions.names("tried")
        self.questions = self.questions.run_by(self.command)
        if every_test and not self.questions.files:
            return Proof(untold=every_test, why=say("proof.not_run"))
        if self.questions.tests:
            await self._try(sandbox, make_launch, began_at + self.settings.seconds)
        return self._proof(round(time.monotonic() - began_at, 1))

    async def _try(self, sandbox: Sandbox, make_launch: MakeLaunch, deadline: float) -> None:
        if sandbox.kind != "bubblewrap":
            self._why = say("proof.no_mount")
            return
        folder = TrialFolder(sandbox, make_launch, self.settings)
        try:
            if runner := runner_of(self.command):
                await self._on_both(folder, runner, deadline)
                return
            runs = TestRuns(folder, self.command, deadline)
            await self._on_new(runs)
            if not self.questions.code:
                self._green.update(self._reached)
            elif self._reached:
                await self._on_old(runs)
            if self._reached:
                await self._on_broken(BrokenCode(runs, self.questions.files))
        except TimeoutError:
            self._why = say("proof.time", seconds=round(self.settings.seconds))
        except (OSError, RecursionError, MemoryError) as problem:
            self._why = say("proof.broke", reason=str(problem))
        except DuckflowError as problem:
            self._why = said(problem)

    async def _on_both(self, folder: TrialFolder, runner: TestRunner, deadline: float) -> None:
        """Tries tests of another language than Python, with the change and without it."""
        wanted_tests = {name.partition("::")[2]: name for name in self.questions.names("tried")}
        command = runner.command(self.command, wanted_tests)
        green_now, _ = runner.read(await folder.printed(command, UNCHANGED, deadline))
        if green_now.isdisjoint(wanted_tests):
            self._why = say("proof.not_green")
            return
        versions_before = {change.path: change.before for change in self.questions.code}
        green_before, red_before = runner.read(await folder.printed(command, versions_before, deadline))
        self._red |= {name for test, name in wanted_tests.items() if test in green_now & red_before}
        untold_tests = wanted_tests.keys() - (green_now & red_before)
        passing_tests = untold_tests & green_before
        key = "passes_before" if passing_tests == untold_tests else "some_before" if passing_tests else "no_before"
        self._why = say(f"proof.{key}", count=len(passing_tests))

    async def _on_new(self, runs: TestRuns) -> None:
        """Runs the tests in the copy. The tests must pass here: only then does a failure on other code mean
        anything."""
        test_ends = await runs.first(self.questions.names("tried"), self.questions.lines())
        for test_end in test_ends:
            self._reached.setdefault(test_end.name, {}).update(dict.fromkeys(test_end.ran))
        for test_end in test_ends:
            if test_end.outcome != "passed":
                self._reached.pop(test_end.name, None)
        if not self._reached:
            self._why = say("proof.not_green" if test_ends else "proof.not_run")

    async def _on_old(self, runs: TestRuns) -> None:
        """Runs the tests on the code before the change. If a test never ends there, or ends the whole process, the
        other tests are run again without it. If no test reports an end, something that the tests need cannot be loaded
        there."""
        versions_before, tests_left = {change.path: change.before for change in self.questions.code}, set(self._reached)
        while tests_left:
            test_ends = await runs.on_other(tests_left, versions_before, OLD_PATIENCE)
            ends_by_test = by_test(test_ends, tests_left)
            for name, ends_of_test in ends_by_test.items():
                self._sort(name, ends_of_test)
            self._absent |= set() if test_ends else tests_left
            if not any(test_end.outcome == "begun" for test_end in test_ends):
                return
            tests_left -= ends_by_test.keys()

    def _sort(self, name: str, ends: Sequence[TrialEnd]) -> None:
        """Puts a test into a group by how it ended on the code before the change: it failed, it lacked something that
        it needs, or it passed."""
        files, added_names = self.questions.files, self.questions.added()
        failures = [test_end for test_end in ends if test_end.outcome in ("failed", "broken")]
        failure_kinds = {failure_kind(test_end, files[test_end.file], added_names) for test_end in failures}
        if failure_kinds & {"assertion", "error"} or any(test_end.outcome == "begun" for test_end in ends):
            self._red.add(name)
        elif "absent" in failure_kinds:
            self._absent.add(name)
        elif any(test_end.outcome == "passed" for test_end in ends):
            self._green.add(name)

    async def _on_broken(self, code: BrokenCode) -> None:
        """Tries breaks (small faults put in on purpose) of the changed lines that the tests run, then breaks of other
        code. A test that notices only breaks of other code is no proof of the change, but not hollow (worthless)
        either. If there is no time for that, the test is not judged."""
        # A test that runs none of the changed lines itself may do so in another process.
        lines, texts = self.questions.lines(), {change.path: change.new for change in self.questions.code}
        all_lines = dict.fromkeys((path, line) for path, numbers in lines.items() for line in sorted(numbers))
        undecided_tests = {name: self._reached[name] or all_lines for name in (*self._absent, *self._green)}
        breaks = [candidate for path, numbers in lines.items() for candidate in breaks_of(path, texts[path], numbers)]
        if undecided_tests and breaks:
            chosen_breaks = chosen(breaks, undecided_tests, MANY * self.settings.mutants)
            await code.find(self._noticing, chosen_breaks, texts, undecided_tests, self.settings.mutants)
        self._guarding |= {name for name in undecided_tests if name not in self._noticing and code.fails(name)}
        if doubtful_tests := undecided_tests.keys() - self._noticing - self._guarding:
            await self._on_other_code(code, doubtful_tests)

    async def _on_other_code(self, code: BrokenCode, doubtful: Collection[str]) -> None:
        test_ends = await code.runs.run(doubtful, None)
        reached_lines = {
            name: dict.fromkeys(place for test_end in ends_of_test for place in test_end.ran if is_code(place[0]))
            for name, ends_of_test in by_test(test_ends, doubtful).items()
        }
        idle_tests = {name for name in reached_lines if not reached_lines[name]}
        paths = {path for places in reached_lines.values() for path, _ in places}
        texts = await asyncio.to_thread(code.runs.folder.texts, paths.union(*map(self._imported, idle_tests)))
        for name in idle_tests:
            imported_paths = self._imported(name)
            reached_lines[name] = {
                (path, line): None for path in imported_paths for line in range(_length(texts.get(path, "")))
            }
        lines = {
            path: {line for places in reached_lines.values() for reached_path, line in places if reached_path == path}
            for path in texts
        }
        all_breaks = [candidate for path, text in texts.items() for candidate in breaks_of(path, text, lines[path])]
        breaks = [candidate for candidate in all_breaks if candidate not in code.tried]
        most_breaks = 2 * self.settings.mutants
        chosen_breaks = chosen(breaks, reached_lines, MANY * most_breaks, scattered=True)
        await code.find(self._guarding, chosen_breaks, texts, reached_lines, most_breaks, by_crash=True)
        untried_tests = {name for name in idle_tests & self._green if self.questions.code and not code.tries[name]}
        self._hollow = {name for name in doubtful if code.missed_enough(name)} - self._guarding | untried_tests

    def _imported(self, name: str) -> frozenset[str]:
        """Returns the files of code that a test imports. A test that runs no code at all was meant to run code of these
        files."""
        return self.questions.files[name.partition("::")[0]].imported

    def _proof(self, seconds: float) -> Proof:
        """Returns the result of the trial. A test that passes without the change is hollow (shows nothing) if it
        notices no break either. If it notices breaks, it still proves nothing unless another test shows the change."""
        questions = self.questions
        static_tests = {*questions.names("trivial"), *questions.names("copies")}
        hollow_tests = static_tests | self._hollow
        noticing_tests, guarding_tests = self._noticing & self._absent, self._noticing & self._green | self._guarding
        known_tests = {*self._red, *noticing_tests, *guarding_tests, *hollow_tests}
        if self._red or noticing_tests:
            # A test that was only altered does not count as new evidence.
            hollow_tests -= {*questions.names("altered")}
        untold_tests = [name for name in questions.names("tried") if name not in known_tests]
        any_unreached = any(name not in self._reached for name in untold_tests)
        cause = self._why or (say("proof.not_green" if any_unreached else "proof.undecided") if untold_tests else None)
        return Proof(
            red=tuple(sorted(self._red)),
            noticing=tuple(sorted(noticing_tests)),
            guarding=tuple(sorted(guarding_tests)),
            hollow=tuple(sorted(hollow_tests)),
            passing_before=tuple(sorted(self._green & (guarding_tests | hollow_tests))) if questions.code else (),
            absent_before=tuple(sorted(self._absent & (guarding_tests | hollow_tests))),
            untold=tuple(untold_tests),
            why=cause if untold_tests or not known_tests else None,
            seconds=seconds,
        )


def _length(text: str) -> int:
    return text.count("\n") + 2

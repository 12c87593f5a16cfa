"""Red before green: the tests of a change are tried on the code before it. If there is no code before it, or if they
pass there too, small breaks of the changed code decide."""

import asyncio
import difflib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duckflow.errors import DuckflowError
from duckflow.proof.mutants import Break, breaks_of, broken, chosen
from duckflow.proof.python_tests import FileTests, belongs_to_tests, is_code, tests_in_question
from duckflow.proof.runners import TestRunner, finder_for, runner_of
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial_folder import MakeLaunch, TrialFolder, Versions
from duckflow.proof.verdicts import TrialEnd, failure_kind, names_in, notices
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.undo.undo import FileVersions
from duckflow.state.checks import Proof
from duckflow.state.phrase import Phrase, said, say

PATIENCE, FEW_SECONDS = 2.0, 2.0
UNCHANGED: Versions = {}
PYTHON = re.compile(r".*\.py")
ENOUGH = 2
"""Number of breaks that a test of new names must have missed to be hollow, of lines that it runs, if there are so many.
For a test that passes without the change one is enough."""


@dataclass
class TestsInQuestion:
    """The tests of a change that are in question, and the code that they are for."""

    code: list[FileVersions]
    files: dict[str, FileTests]

    @property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """Returns the tests to run, by file."""
        return {path: tests.tried for path, tests in self.files.items() if tests.tried}

    def run_by(self, command: str) -> "TestsInQuestion":
        """Returns the tests that the command's runner runs."""
        runner = runner_of(command)
        fitting = runner.files if runner else PYTHON
        return replace(self, files={path: tests for path, tests in self.files.items() if fitting.fullmatch(path)})

    def names(self, of: str) -> tuple[str, ...]:
        return tuple(f"{path}::{name}" for path, tests in self.files.items() for name in getattr(tests, of))

    def added(self) -> frozenset[str]:
        """Returns the names that only the new code has."""
        old, new = (frozenset(name for text in texts for name in names_in(text)) for texts in self._texts())
        return new - old

    def lines(self) -> dict[str, set[int]]:
        """Returns the changed lines of code in Python, by file."""
        python = [change for change in self.code if change.path.endswith(".py") and change.after is not None]
        return {change.path: lines for change in python if (lines := _changed_lines(change.old, change.new))}

    def _texts(self) -> tuple[list[str], list[str]]:
        paths = [change.path.rpartition("/")[2].removesuffix(".py") for change in self.code if change.before is None]
        return [change.old for change in self.code], [*(change.new for change in self.code), *paths]


def questions_of(changes: Sequence[FileVersions]) -> TestsInQuestion | None:
    """Returns what is to be tried of a change; None where it holds no tests. If the change has no code of its own, the
    tests are for the code that is there, and breaks of that decide."""
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
    """Tests that notice breaks of code that the change did not touch."""
    _reached: dict[str, set[tuple[str, int]]] = field(default_factory=dict[str, set[tuple[str, int]]])
    _missed: dict[str, int] = field(default_factory=dict[str, int])
    """Number of breaks that each test did not notice, of lines that it runs."""
    _breakable: dict[str, int] = field(default_factory=dict[str, int])
    """Number of possible breaks of such lines."""
    _patience: float = 0.0
    """Seconds that broken code gets to run."""
    _why: Phrase | None = None

    async def run(self, sandbox: Sandbox, make_launch: MakeLaunch) -> Proof:
        """Tries all tests, for as long as the settings allow."""
        begun, every = time.monotonic(), self.questions.names("tried")
        self.questions = self.questions.run_by(self.command)
        if every and not self.questions.files:
            return Proof(untold=every, why=say("proof.not_run"))
        if self.questions.tests:
            await self._try(sandbox, make_launch, begun + self.settings.seconds)
        return self._proof(round(time.monotonic() - begun, 1))

    async def _try(self, sandbox: Sandbox, make_launch: MakeLaunch, deadline: float) -> None:
        if sandbox.kind != "bubblewrap":
            self._why = say("proof.no_mount")
            return
        folder = TrialFolder(sandbox, make_launch, self.settings)
        try:
            if runner := runner_of(self.command):
                await self._on_both(folder, runner, deadline)
                return
            await self._on_new(folder, deadline)
            if not self.questions.code:
                self._green.update(self._reached)
            elif self._reached:
                await self._on_old(folder, deadline)
            if self._reached:
                await self._on_broken(folder, deadline)
                await self._on_other_code(folder, deadline)
        except TimeoutError:
            self._why = say("proof.time", seconds=round(self.settings.seconds))
        except (OSError, RecursionError, MemoryError) as problem:
            self._why = say("proof.broke", reason=str(problem))
        except DuckflowError as problem:
            self._why = said(problem)

    async def _on_both(self, folder: TrialFolder, runner: TestRunner, deadline: float) -> None:
        """Tries tests of another language than Python, with the change and without it."""
        wanted = {name.partition("::")[2]: name for name in self.questions.names("tried")}
        command = runner.command(self.command, wanted)
        green_now, _ = runner.read(await folder.printed(command, UNCHANGED, deadline))
        if green_now.isdisjoint(wanted):
            self._why = say("proof.not_green")
            return
        before = {change.path: change.before for change in self.questions.code}
        green_before, red_before = runner.read(await folder.printed(command, before, deadline))
        self._red |= {name for test, name in wanted.items() if test in green_now & red_before}
        self._why = say("proof.passes_before" if green_before & wanted.keys() else "proof.no_before")

    async def _on_new(self, folder: TrialFolder, deadline: float) -> None:
        """Runs the tests in the copy. They must pass here; only then does a failure on other code mean anything."""
        begun = time.monotonic()
        ends = await self._run(folder, self.questions.tests, self.questions.lines(), deadline)
        self._patience = FEW_SECONDS + PATIENCE * (time.monotonic() - begun)
        for end in ends:
            self._reached.setdefault(end.name, set()).update(end.ran)
        for end in ends:
            if end.outcome != "passed":
                self._reached.pop(end.name, None)
        if not self._reached:
            self._why = say("proof.not_green" if ends else "proof.not_run")

    async def _on_old(self, folder: TrialFolder, deadline: float) -> None:
        before = {change.path: change.before for change in self.questions.code}
        ends = await self._run(folder, self._left(self._reached), {}, deadline, before)
        added, files = self.questions.added(), self.questions.files
        for name, own in _by_test(ends, self._reached).items():
            kinds = {failure_kind(end, files[end.file], added) for end in own if end.outcome in ("failed", "broken")}
            if kinds & {"assertion", "error"}:
                self._red.add(name)
            elif "absent" in kinds:
                self._absent.add(name)
            elif any(end.outcome == "passed" for end in own):
                self._green.add(name)

    async def _on_broken(self, folder: TrialFolder, deadline: float) -> None:
        # A test that runs none of the changed lines itself may do so in another process.
        all_lines = {(path, line) for path, lines in self.questions.lines().items() for line in lines}
        undecided = {name: self._reached[name] or all_lines for name in (*self._absent, *self._green)}
        if not undecided:
            return
        texts = {change.path: change.new for change in self.questions.code}
        breaks = [
            candidate
            for path, lines in self.questions.lines().items()
            for candidate in breaks_of(path, texts[path], lines)
        ]
        for name, reached in undecided.items():
            self._breakable[name] = sum((candidate.path, candidate.line) in reached for candidate in breaks)
        some = chosen(breaks, undecided, self.settings.mutants)
        await self._break(folder, undecided, some, texts, deadline, self._noticing)

    async def _on_other_code(self, folder: TrialFolder, deadline: float) -> None:
        """Tries breaks of other code that a test runs. A test that notices one is no proof of the change, but not
        hollow either. If there is no time to try it, nothing is said of the test."""
        doubtful = {name for name in (*self._green, *self._absent) if not self.questions.code or self._is_hollow(name)}
        if not doubtful:
            return
        try:
            ends = await self._run(folder, self._left(doubtful), None, deadline)
            reached = {
                name: {place for end in own for place in end.ran} for name, own in _by_test(ends, doubtful).items()
            }
            paths = {path for places in reached.values() for path, _ in places if is_code(path)}
            paths |= {path for name in reached if not reached[name] for path in self._imported(name)}
            texts = await asyncio.to_thread(folder.texts, paths)
            for name in reached if not self.questions.code else ():
                named = {(path, line) for path in self._imported(name) for line in range(_length(texts.get(path, "")))}
                reached[name] = reached[name] or named
            lines = {
                path: {line for places in reached.values() for own, line in places if own == path} for path in texts
            }
            breaks = [candidate for path, text in texts.items() for candidate in breaks_of(path, text, lines[path])]
            some = chosen(breaks, reached, 2 * self.settings.mutants, scattered=True)
            await self._break(folder, reached, some, texts, deadline, self._guarding)
        except TimeoutError:
            self._green -= doubtful
            self._absent -= doubtful
            raise

    def _imported(self, name: str) -> frozenset[str]:
        """Returns the code that a test imports: where it runs none of it, it should have."""
        return self.questions.files[name.partition("::")[0]].imported

    async def _break(
        self,
        folder: TrialFolder,
        reached: Mapping[str, set[tuple[str, int]]],
        breaks: Sequence[Break],
        texts: Mapping[str, str],
        deadline: float,
        noticing: set[str],
    ) -> None:
        """Tries breaks, until every test has noticed one. `reached` holds the lines that each test runs."""
        for broken_place in breaks:
            unnoticing = {name: lines for name, lines in reached.items() if name not in noticing}
            if not unnoticing:
                return
            ends = await self._on_one_break(
                folder,
                unnoticing,
                {broken_place.path: broken(texts[broken_place.path], broken_place).encode()},
                deadline,
            )
            for name, own in _by_test(ends, unnoticing).items():
                if any(notices(end, self.questions.files[end.file]) for end in own):
                    noticing.add(name)
                elif (broken_place.path, broken_place.line) in unnoticing[name]:
                    self._missed[name] = self._missed.get(name, 0) + 1

    async def _on_one_break(
        self, folder: TrialFolder, left: Iterable[str], versions: Versions, deadline: float
    ) -> list[TrialEnd]:
        """Runs the tests on one break. If the broken code runs forever, no test has noticed it."""
        soon = min(deadline, time.monotonic() + self._patience)
        try:
            return await self._run(folder, self._left(left), {}, soon, versions)
        except TimeoutError:
            if soon == deadline:
                raise
            return []

    async def _run(
        self,
        folder: TrialFolder,
        tests: Mapping[str, Iterable[str]],
        lines: Mapping[str, set[int]] | None,
        deadline: float,
        versions: Versions = UNCHANGED,
    ) -> list[TrialEnd]:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        wanted = {path: set(names) for path, names in tests.items()}
        return await folder.run(self.command, wanted, lines, versions, seconds)

    def _left(self, names: Iterable[str]) -> dict[str, set[str]]:
        by_file = dict[str, set[str]]()
        for name in names:
            path, _, test = name.partition("::")
            by_file.setdefault(path, set()).add(test)
        return by_file

    def _proof(self, seconds: float) -> Proof:
        """Makes the result. A test that passes without the change is hollow when it notices no break either. While no
        other test shows the change, such a test proves nothing even where it notices breaks."""
        questions = self.questions
        static = {*questions.names("trivial"), *questions.names("copies")}
        hollow = static | {name for name in (*self._green, *self._absent) if self._is_hollow(name)}
        noticing, guarding = self._noticing & self._absent, self._noticing & self._green | self._guarding
        known = {*self._red, *noticing, *guarding, *hollow}
        if self._red or noticing:
            # A test that was only altered is not offered as new evidence.
            hollow -= {*questions.names("altered")}
        untold = [name for name in questions.names("tried") if name not in known and (questions.code or self._why)]
        return Proof(
            red=tuple(sorted(self._red)),
            noticing=tuple(sorted(noticing)),
            guarding=tuple(sorted(guarding)),
            hollow=tuple(sorted(hollow)),
            untold=tuple(untold),
            why=self._why if untold or not known else None,
            seconds=seconds,
        )

    def _is_hollow(self, name: str) -> bool:
        missed, breakable = self._missed.get(name, 0), self._breakable.get(name, 0)
        if name in self._noticing or name in self._guarding:
            return False
        if not self.questions.code:
            return missed >= ENOUGH
        if name in self._green:
            return missed > 0 or not breakable
        return missed > 0 and missed >= min(ENOUGH, breakable)


def _length(text: str) -> int:
    return text.count("\n") + 2


def _by_test(ends: Iterable[TrialEnd], names: Iterable[str]) -> dict[str, list[TrialEnd]]:
    """Returns how each test ended, with all its parameters. If its file could not be loaded, that is its end."""
    by_name = {name: list[TrialEnd]() for name in names}
    for end in ends:
        ended = [name for name in by_name if name.startswith(f"{end.file}::")] if not end.test else [end.name]
        for name in ended:
            if name in by_name:
                by_name[name].append(end)
    return {name: own for name, own in by_name.items() if own}

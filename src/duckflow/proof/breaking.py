"""Runs tests of a change on other code than the present one: the code before it, and code that is broken on purpose."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from duckflow.proof.mutants import Break, Reached, broken
from duckflow.proof.python_tests import FileTests
from duckflow.proof.trial_folder import EndlessRun, TrialFolder, Versions
from duckflow.proof.verdicts import TrialEnd, notices

PATIENCE, FEW_SECONDS = 2.0, 2.0
ENOUGH = 3
"""A test is hollow (shows nothing) if it does not notice this many breaks (small faults put in on purpose) of lines
that it runs. If it was tried on fewer breaks, it must miss all of them."""
UNCHANGED: Versions = {}


@dataclass
class TestRuns:
    """Runs tests, named as in `tests/test_x.py::test_y`, in copies of the folder until a deadline."""

    folder: TrialFolder
    command: str
    deadline: float
    patience: float = 0.0
    """Seconds after which a run of broken code is stopped."""

    async def first(self, names: Iterable[str], lines: Mapping[str, set[int]]) -> list[TrialEnd]:
        """Runs the tests on the present code. The time that they take decides how long they may take on other code."""
        began_at = time.monotonic()
        test_ends = await self.run(names, lines)
        self.patience = FEW_SECONDS + PATIENCE * (time.monotonic() - began_at)
        return test_ends

    async def run(
        self,
        names: Iterable[str],
        lines: Mapping[str, set[int]] | None,
        versions: Versions = UNCHANGED,
        seconds: float | None = None,
    ) -> list[TrialEnd]:
        seconds_left = self.deadline - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError
        by_file = dict[str, set[str]]()
        for name in names:
            path, _, test = name.partition("::")
            by_file.setdefault(path, set()).add(test)
        limit = seconds_left if seconds is None else min(seconds, seconds_left)
        return await self.folder.run(self.command, by_file, lines, versions, limit)

    async def on_other(self, names: Iterable[str], versions: Versions, patience: float = 1.0) -> list[TrialEnd]:
        """Runs tests on other code, which may run forever. Returns how the tests ended, without those that were still
        running. `patience` multiplies the seconds that broken code gets."""
        try:
            return await self.run(names, {}, versions, patience * self.patience)
        except EndlessRun as problem:
            if time.monotonic() >= self.deadline:
                raise
            return problem.ends


@dataclass
class BrokenCode:
    """Tries tests on breaks (small faults put into the code on purpose), and counts the breaks that they notice."""

    runs: TestRuns
    files: Mapping[str, FileTests]
    tried: set[Break] = field(default_factory=set[Break])
    tries: Counter[str] = field(default_factory=Counter[str])
    """For each test, the number of breaks (faults put in on purpose) that it was tried on. Only breaks of lines that it
    runs count."""
    missed: Counter[str] = field(default_factory=Counter[str])
    """For each test, the number of breaks (faults put in on purpose) that it did not notice: it still passed."""
    crashed: Counter[str] = field(default_factory=Counter[str])
    """For each test, the number of breaks (faults put in on purpose) with which the test itself failed, by an assertion
    or by an error of the broken code."""

    async def find(
        self,
        noticing: set[str],
        breaks: Sequence[Break],
        texts: Mapping[str, str],
        reached: Reached,
        most: int,
        by_crash: bool = False,
    ) -> None:
        """Tries breaks (faults put in on purpose) on the tests that run the broken line, until each test has noticed a
        break or was tried on `most` breaks. Tests that notice a break are added to `noticing`. A break with which no
        test can be loaded does not count. With `by_crash`, an error of the broken code is enough for a test that
        asserts something."""
        tries_by_test = Counter[str]()
        for code_break in breaks:
            unnoticing_tests = [name for name in reached if name not in noticing and tries_by_test[name] < most]
            wanted_tests = [name for name in unnoticing_tests if (code_break.path, code_break.line) in reached[name]]
            if not wanted_tests:
                continue
            self.tried.add(code_break)
            test_ends = await self.runs.on_other(
                wanted_tests, {code_break.path: broken(texts[code_break.path], code_break).encode()}
            )
            for name, ends_of_test in by_test(
                [end for end in test_ends if end.outcome != "broken"], wanted_tests
            ).items():
                tries_by_test[name] += 1
                self.tries[name] += 1
                self.missed[name] += all(end.outcome == "passed" for end in ends_of_test)
                self.crashed[name] += any(end.outcome == "failed" and end.line > 0 for end in ends_of_test)
                if any(notices(end, self.files[end.file]) for end in ends_of_test) or (by_crash and self.fails(name)):
                    noticing.add(name)

    def fails(self, name: str) -> bool:
        """Says whether a test with assertions fails on broken code, even if an error comes before its assertions. A
        test without assertions does not count: any error makes it fail."""
        path, _, test = name.partition("::")
        return self.crashed[name] > 0 and test in self.files[path].asserting_tests

    def missed_enough(self, name: str) -> bool:
        """Says whether `ENOUGH` breaks (faults put in on purpose) went unnoticed by a test; if it was tried on fewer,
        all of them."""
        return 0 < min(ENOUGH, self.tries[name]) <= self.missed[name]


def by_test(ends: Iterable[TrialEnd], names: Iterable[str]) -> dict[str, list[TrialEnd]]:
    """Returns for each test how it ended, once for each of its parameters. If a test's file could not be loaded, that
    failure counts as the test's end."""
    by_name = {name: list[TrialEnd]() for name in names}
    for end in ends:
        ended_names = [name for name in by_name if name.startswith(f"{end.file}::")] if not end.test else [end.name]
        for name in ended_names:
            if name in by_name:
                by_name[name].append(end)
    return {name: ends_of_test for name, ends_of_test in by_name.items() if ends_of_test}

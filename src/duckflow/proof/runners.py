"""Runners of tests in other languages: how they are called for some tests only, and how their output is read.

They are run on the code before the change like those of Python. No breaks are made in their languages, so nothing is
known of a test that passes there too."""

import re
import shlex
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from duckflow.proof.python_tests import FileTests

TAP = r"^\s*(?P<end>ok|not ok) \d+ - (?P<name>.+?)(?: # (?P<left>SKIP|TODO).*)?$"
TICKS = r"^\s*(?P<end>✓|√|✔|×|✕|✗|✘) (?:.* > )?(?P<name>.+?)(?: \(?[\d.]+ ?m?s\)?)?$"
SCRIPT = re.compile(r".*(?:[.-](?:test|spec)|/__tests__/[^/]+|(?:^|/)tests?/[^/]+)\.[cm]?[jt]sx?")
SCRIPT_TEST = re.compile(r"^\s*(?:test|it)(?:\.\w+)*\(\s*(?P<sign>['\"`])(?P<name>.+?)(?P=sign)", re.MULTILINE)
PASSED, FAILED = frozenset(("ok", "PASS", "✓", "√", "✔")), frozenset(("not ok", "FAIL", "FAILED", "×", "✕", "✗", "✘"))
ABSENT = re.compile(r"is not a function|is not defined|is not a constructor|of undefined|does not provide an export")
"""A pattern for errors of a test that uses a name which only the new code has."""
NEAR = 400
"""The number of characters after each mention of a test's name in which the reason of its failure is searched for."""


class TestRunner(NamedTuple):
    """One runner. `only` is the option that selects tests. It is appended to the call of the runner, with the names of
    the tests as one pattern."""

    call: re.Pattern[str]
    files: re.Pattern[str]
    defines: re.Pattern[str]
    only: str
    ends: re.Pattern[str]

    def command(self, command: str, names: Collection[str]) -> str:
        pattern = shlex.quote("|".join(re.escape(name).replace(r"\ ", " ") for name in sorted(names)))
        return self.call.sub(lambda call: call[0] + self.only.replace("NAMES", pattern), command, count=1)

    def tests_in_question(self, before: str, after: str) -> FileTests:
        """Returns the tests that a change of a file adds or alters. The text of a test reaches to the next test."""
        old_texts, new_texts = self.tests(before), self.tests(after)
        changed_names = tuple(name for name, text in new_texts.items() if old_texts.get(name) != text)
        return FileTests(changed_names, (), (), frozenset(), frozenset(changed_names).intersection(old_texts))

    def tests(self, text: str) -> dict[str, str]:
        """Returns the tests of a file with their texts, by name."""
        return dict(self._each(text))

    def _each(self, text: str) -> Iterator[tuple[str, str]]:
        definitions = list(self.defines.finditer(text))
        for index, match in enumerate(definitions):
            end_offset = definitions[index + 1].start() if index + 1 < len(definitions) else len(text)
            yield match["name"], " ".join(text[match.start() : end_offset].split())

    def read(self, output: str) -> tuple[set[str], set[str]]:
        """Returns the names of the tests that passed, and of the tests that failed. A test that failed because a name
        is missing is in neither group."""
        passed_names, failed_names = set[str](), set[str]()
        for result_match in self.ends.finditer(output):
            name = result_match["name"]
            if result_match["end"] in PASSED and not result_match.groupdict().get("left"):
                passed_names.add(name)
            elif result_match["end"] in FAILED and not any(
                ABSENT.search(output, match.end(), match.end() + NEAR) for match in re.finditer(re.escape(name), output)
            ):
                failed_names.add(name)
        return passed_names - failed_names, failed_names


def _row(call: str, files: re.Pattern[str], defines: re.Pattern[str], only: str, ends: str) -> TestRunner:
    return TestRunner(re.compile(call), files, defines, only, re.compile(ends, re.MULTILINE))


RUNNERS = (
    _row(
        r"\bgo\s+test\b",
        re.compile(r".*_test\.go"),
        re.compile(r"^func\s+(?P<name>Test\w+)\(", re.MULTILINE),
        " -v -count=1 -run NAMES",
        r"^--- (?P<end>PASS|FAIL|SKIP): (?P<name>\w+)",
    ),
    _row(
        r"\bcargo\s+test\b",
        re.compile(r"(?:.*/)?tests/.+\.rs"),
        re.compile(r"#\[(?:\w+::)?test\][^{]*?\bfn\s+(?P<name>\w+)"),
        " --no-fail-fast --offline",
        r"^test (?:\w+::)*(?P<name>\w+) \.\.\. (?P<end>ok|FAILED|ignored)",
    ),
    _row(r"\bvitest(?:\s+run)?\b", SCRIPT, SCRIPT_TEST, " --reporter=verbose -t NAMES", TICKS),
    _row(r"\bjest\b", SCRIPT, SCRIPT_TEST, " --verbose -t NAMES", TICKS),
    _row(r"\bnode\b[^|;&]*?\s--test\b", SCRIPT, SCRIPT_TEST, " --test-reporter=tap --test-name-pattern NAMES", TAP),
)


def runner_of(command: str) -> TestRunner | None:
    return next((runner for runner in RUNNERS if runner.call.search(command)), None)


def finder_for(path: str) -> Callable[[str, str], FileTests] | None:
    """Returns the function that finds the tests in question of a file; all runners of one language find the same."""
    return next((runner.tests_in_question for runner in RUNNERS if runner.files.fullmatch(path)), None)


def tests_by_runner(path: str, text: str) -> dict[str, str]:
    """Returns the tests of a file of another language than Python, with their texts."""
    return next((runner.tests(text) for runner in RUNNERS if runner.files.fullmatch(path)), dict[str, str]())

"""Which commands are checks, and what a run of one has reported: in a file of its own, or by its exit code."""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from duckflow.state.checks import CheckKind, CheckReport
from duckflow.tools.shell.calls import deciding_call, runs_alone

NAMES_KEPT = 20
LONGEST_REPORT = 20_000_000
TEST_PROGRAMS = r"pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|bats|playwright"
CHECKS: tuple[tuple[str, CheckKind], ...] = (
    (rf"(?:{TEST_PROGRAMS})\b", "tests"),
    (r"(?:go|cargo|deno|swift|mix|dotnet|bun|flutter|rake|zig build) (?:nextest run|test)\b", "tests"),
    (r"(?:npm|pnpm|yarn) (?:run )?(?:t|test|tests|test:\S+|check)\b|node --test\b", "tests"),
    (r"(?:make|just|task|rake|gradlew?|mvnw?) (?:-\S+ )*(?:tests?|check|verify)\b|python manage\.py test\b", "tests"),
    (r"(?:mypy|pyright|basedpyright|pyre|tsc|pytype)\b|(?:npm|pnpm|yarn) run type\S*", "types"),
    (r"ruff check\b|(?:flake8|pylint|eslint|golangci-lint|shellcheck|rubocop|stylelint|import-linter)\b", "lint"),
    (r"(?:cargo clippy|go vet|biome check|make lint)\b|(?:npm|pnpm|yarn) run lint\S*", "lint"),
    (r"make(?: -\S+)*(?: all| build)?$|(?:npm|pnpm|yarn) run build\S*", "build"),
    (r"(?:cargo build|cargo check|go build|dotnet build|gradle build|mvn package)\b", "build"),
)
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
"""Options of runners that leave nothing out."""
COUNTS = {
    "unittest": r"(?m)^Ran (\d+) tests?",
    "go": r"(?m)^ok\s+\S+",
    "cargo": r"(\d+) passed;",
    "node": r"(?m)^# pass (\d+)",
    "jest": r"(?m)^Tests:.*?(\d+) passed",
    "vitest": r"(?m)^\s*Tests\s+.*?(\d+) passed",
}
"""Where a runner prints how many tests ran. It is asked only where nothing else could have printed it."""
CONFIGURATIONS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini")
FOLDER_LIMIT = 200_000


class RecognisedCheck(NamedTuple):
    """A command that is a run of a check, and nothing else."""

    words: tuple[str, ...]
    kind: CheckKind
    alone: bool
    """Nothing else in the command can have failed."""

    @property
    def name(self) -> str:
        return " ".join(word for word in self.words if not SHOWING.fullmatch(word))


def recognised(command: str) -> RecognisedCheck | None:
    words = deciding_call(command)
    text = " ".join(words)
    kinds: list[CheckKind] = [kind for pattern, kind in CHECKS if re.match(pattern, text)]
    if not kinds or any(RUNS_NOTHING.fullmatch(word) for word in words):
        return None
    if words[0] == "make" and any(MAKE_RUNS_NOTHING.fullmatch(word) for word in words[1:]):
        return None
    return RecognisedCheck(tuple(words), kinds[0], runs_alone(command))


class ReportFile:
    """The file that pytest writes its report to. It has a name that nobody knew before, in the folder for temporary
    files, and is asked for by a variable, so that the command stays as it is."""

    def __init__(self, seen_as: str, folder: Path) -> None:
        """`seen_as` is the folder as the command sees it."""
        self._name = f"report-{secrets.token_hex(8)}.xml"
        self._path = folder / self._name
        self._seen_as = f"{seen_as}/{self._name}"

    def environment(self, options: str) -> dict[str, str]:
        return {"PYTEST_ADDOPTS": f"{options} --junitxml={self._seen_as}".strip()}

    def without_its_line(self, output: bytes) -> bytes:
        """Takes away the line that says where the report is: the command alone would not have printed it."""
        return re.sub(rf"(?m)^-* ?generated xml file: \S*{self._name} ?-*\n?".encode(), b"", output)

    def read(self) -> ElementTree.Element | None:
        try:
            if self._path.is_symlink() or self._path.stat().st_size > LONGEST_REPORT:
                return None
            text = self._path.read_text("utf-8", "replace")
            self._path.unlink()
            return None if "<!" in text else ElementTree.fromstring(text)
        except (OSError, ElementTree.ParseError):
            return None


def takes_report(check: RecognisedCheck, text_of: Callable[[str], str]) -> bool:
    """Says whether a report can be asked for: not where the project or the command has its own word on reports."""
    own = [*check.words, *(text_of(name)[:FOLDER_LIMIT] for name in CONFIGURATIONS)]
    return check.words[0] == "pytest" and not any("junit" in text for text in own)


def judged(check: RecognisedCheck, code: int, output: str, report: ReportFile | None) -> CheckReport:
    """Says what a run has reported. Where a report was asked for, only that shows success."""
    if report:
        root = report.read()
        if root is not None:
            return _by_report(check, code, root)
        return _result(check, False if code and check.alone else None)
    pattern = COUNTS.get(check.words[0]) if check.kind == "tests" else None
    if code:
        return _result(check, False if check.alone else None)
    if pattern is None:
        return _result(check, True)
    counts = re.findall(pattern, output)
    ran = sum(int(count) if count.isdecimal() else 1 for count in counts)
    return _result(check, True if ran else None, ran)


def _by_report(check: RecognisedCheck, code: int, root: ElementTree.Element) -> CheckReport:
    cases = list(root.iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    ran = [case for case in cases if case.find("skipped") is None]
    names = tuple(f"{case.get('classname', '')}::{case.get('name', '')}" for case in failed)
    ok = False if code or failed else True if ran else None
    return _result(check, ok, len(ran), len(failed), names[:NAMES_KEPT])


def _result(
    check: RecognisedCheck, ok: bool | None, tests: int = 0, failed: int = 0, failures: tuple[str, ...] = ()
) -> CheckReport:
    return CheckReport(check=check.name, kind=check.kind, ok=ok, tests=tests, failed=failed, failures=failures)

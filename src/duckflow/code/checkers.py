"""The project's own checkers: finds them by their configuration, builds their commands, and reads their output. The
checkers are rows of data in checkers.json."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter

from duckflow.code.lsp import Diagnostic
from duckflow.code.syntax import available, symbols_in
from duckflow.programs.find import find_program
from duckflow.safety.files import read_plain

TABLE = Path(__file__).with_name("checkers.json")
OWN_PLACES = (".venv/bin", "venv/bin", "node_modules/.bin")
LONGEST_CONFIG = 200_000
LONGEST_LINE, DIGITS = 4000, 9
MESSAGE = 200


class EslintMessage(BaseModel):
    """One finding of eslint. A severity of 2 is an error."""

    severity: int = 0
    line: int | None = Field(default=None, ge=0, lt=10**DIGITS)
    message: str = ""


class EslintFile(BaseModel):
    """The findings of eslint in one file."""

    path: str = Field(alias="filePath")
    messages: list[EslintMessage] = []


class Checker(NamedTuple):
    """One row of the table of checkers. `scope` says which files the checker is asked about."""

    name: str
    configured: Mapping[str, str]
    """Files that show that the project uses the checker, each with a text that it must contain (empty: any content)."""
    suffixes: tuple[str, ...]
    command: str
    scope: Literal["changed", "dependents", "all"]
    line: str
    """The pattern of an error in the checker's output; empty if the output is JSON."""

    def is_used_in(self, text_of: Callable[[str], str | None]) -> bool:
        texts = ((text_of(name), section) for name, section in self.configured.items())
        return any(text is not None and section in text for text, section in texts)

    def call(self, program: str, files: Iterable[str]) -> str:
        quoted_files = " ".join(shlex.quote(f"./{path}") for path in files) if self.scope != "all" else ""
        return " ".join(filter(None, (shlex.quote(program), self.command, quoted_files)))

    def read(self, output: str, folder: Path) -> list[Diagnostic]:
        """Reads the errors in the output and ignores all else: any program may have the checker's name."""
        if not self.line:
            return _from_json(output, folder)
        lines = (line for line in output.split("\n") if len(line) <= LONGEST_LINE)
        matches = [match for line in lines if (match := re.match(self.line, line)) and len(match["line"]) <= DIGITS]
        return [_error(match["path"], int(match["line"]), match["message"], folder) for match in matches]


@cache
def checkers() -> tuple[Checker, ...]:
    table: dict[str, dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(
        Checker(name, row["configured"], tuple(row["suffixes"]), row.get("command", ""), row["scope"], row["line"])
        for name, row in table.items()
    )


def used_in(folder: Path, changed: Iterable[str]) -> list[tuple[Checker, str]]:
    """Returns the project's checkers for the changed files, with their installed programs."""
    suffixes = {PurePosixPath(path).suffix for path in changed}

    def text_of(name: str) -> str | None:
        try:
            return read_plain(folder / name, LONGEST_CONFIG, cut=True).decode("utf-8", "replace")
        except OSError:
            return None

    used_checkers = [
        checker for checker in checkers() if suffixes.intersection(checker.suffixes) and checker.is_used_in(text_of)
    ]
    return [(checker, program) for checker in used_checkers if (program := program_for(checker.name, folder))]


def program_for(name: str, folder: Path) -> str:
    """Returns the program in the project, else the one on the machine; an empty text if it is not installed."""
    project_paths = (f"{program_folder}/{name}" for program_folder in OWN_PLACES)
    return next((path for path in project_paths if (folder / path).is_file()), "") or find_program(name, folder) or ""


def _from_json(output: str, folder: Path) -> list[Diagnostic]:
    try:
        files = TypeAdapter(list[EslintFile]).validate_json(output[output.find("[") : output.rfind("]") + 1])
    except ValueError:
        return []
    return [
        _error(file.path, finding.line or 1, finding.message, folder)
        for file in files
        for finding in file.messages
        if finding.severity == 2
    ]


def _error(path: str, line: int, message: str, folder: Path) -> Diagnostic:
    named_path = Path(path.strip())
    relative_path = named_path.relative_to(folder) if named_path.is_relative_to(folder) else named_path
    return Diagnostic(str(PurePosixPath(relative_path)).removeprefix("./"), line, message.strip()[:MESSAGE])


def new_errors(before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns the errors that were not there before. Line numbers do not count, because lines move."""
    known_errors = Counter(_key(diagnostic) for diagnostic in before if diagnostic.error)
    added_errors = list[Diagnostic]()
    for diagnostic in after:
        if not diagnostic.error:
            continue
        if known_errors[_key(diagnostic)] > 0:
            known_errors[_key(diagnostic)] -= 1
        else:
            added_errors.append(diagnostic)
    return added_errors


def _key(diagnostic: Diagnostic) -> tuple[str, str]:
    return diagnostic.path, re.sub(r"\d+", "#", diagnostic.message)


def changed_names(path: str, before: str, after: str) -> set[str]:
    """Returns names whose uses elsewhere a change may have broken: names of definitions that are gone or changed."""
    if not available():
        return set()
    pieces_before, pieces_after = (_pieces(path, text) for text in (before, after))
    return {name.rpartition(".")[2] for name, piece in pieces_before.items() if pieces_after.get(name) != piece}


def _pieces(path: str, text: str) -> dict[str, str]:
    lines: Sequence[str] = text.split("\n")
    return {symbol.qualified: "\n".join(lines[symbol.start - 1 : symbol.end]) for symbol in symbols_in(text, path)}

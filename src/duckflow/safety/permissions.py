"""What the user has allowed beyond once: rules for a session, or for good."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from duckflow.errors import UsageError
from duckflow.state.noun import Value
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import FileImpact


class Permission(Value):
    """One rule: this operation, on files that fit the pattern or with commands that begin so."""

    operation: str
    pattern: str

    def covers(self, operation: str, impacts: Iterable[FileImpact], command: str) -> bool:
        """Whether everything the action would do is allowed by this rule."""
        if operation != self.operation:
            return False
        if command:
            return command == self.pattern or (command.startswith(self.pattern + " ") and _plain(command))
        paths = [impact.path for impact in impacts]
        return bool(paths) and all(fnmatchcase(path, self.pattern) for path in paths)

    def describe(self) -> Phrase:
        return say("permission.rule", operation=self.operation, pattern=self.pattern)


def rule_for(operation: str, impacts: Iterable[FileImpact], command: str) -> Permission | None:
    """The rule that `always` would save: files of the same kind in the same folder, or the same program with the same
    first word. Nothing, when no such rule can be told in a line."""
    if command:
        words = command.split()
        if not _plain(command) or not words:
            return None
        return Permission(operation=operation, pattern=" ".join(words[:2]) if len(words) > 1 else words[0])
    folders = {str(PurePosixPath(impact.path).parent) for impact in impacts}
    suffixes = {PurePosixPath(impact.path).suffix for impact in impacts}
    if len(folders) != 1 or len(suffixes) != 1:
        return None
    folder = folders.pop()
    return Permission(operation=operation, pattern=("" if folder == "." else f"{folder}/") + f"*{suffixes.pop()}")


def _plain(command: str) -> bool:
    """One simple command: nothing that could hide another one behind the allowed beginning."""
    return not set(command) & set("\n;&|<>`$(){}\\")


class Permissions:
    """The rules that hold for good, in a file of the user's own, per work folder (never in the project)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.session: list[Permission] = []
        self.always: list[Permission] = _load(path)

    def allows(self, operation: str, impacts: Iterable[FileImpact], command: str) -> bool:
        impacts = tuple(impacts)
        return any(rule.covers(operation, impacts, command) for rule in (*self.session, *self.always))

    def add(self, rule: Permission, for_good: bool) -> None:
        kept = self.always if for_good else self.session
        if rule not in kept:
            kept.append(rule)
        if for_good:
            self._save()

    def remove(self, number: int) -> Permission:
        """By its number in the list: first those for good, then the session's."""
        rules = (*self.always, *self.session)
        if not 1 <= number <= len(rules):
            raise UsageError("permission.no_such", number=number)
        rule = rules[number - 1]
        if rule in self.always:
            self.always.remove(rule)
            self._save()
        else:
            self.session.remove(rule)
        return rule

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump([rule.model_dump() for rule in self.always], file, ensure_ascii=False, indent=1)
        Path(name).replace(self._path)


def _load(path: Path) -> list[Permission]:
    """A file that cannot be read allows nothing."""
    with contextlib.suppress(OSError, ValueError):
        rules: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return [Permission.model_validate(rule) for rule in rules]
    return []

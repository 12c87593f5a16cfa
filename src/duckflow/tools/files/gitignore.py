"""The rules of .gitignore files, for folders where git itself cannot be asked."""

import re
from dataclasses import dataclass

from duckflow.errors import ToolError
from duckflow.safety.entry import FolderEntry
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.glob_pattern import translate

RULES_LIMIT = 256 * 1024
ALWAYS_IGNORED = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".gradle", ".idea"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
    )
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a .gitignore, for paths relative to the folder it lies in."""

    regex: re.Pattern[str]
    keep: bool
    folders_only: bool

    def fits(self, path: str, is_folder: bool) -> bool:
        return (is_folder or not self.folders_only) and self.regex.match(path) is not None


class IgnoreRules:
    """Reads the .gitignore of a folder when something in that folder is asked about. The deepest file decides."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rules: dict[str, tuple[Rule, ...]] = {}

    def ignores(self, found: FolderEntry) -> bool:
        """Whether to leave it out; asked from the top down, so folders above are not ignored."""
        if found.kind == "folder" and found.name in ALWAYS_IGNORED:
            return True
        names = found.path.split("/")
        for depth in range(len(names) - 1, -1, -1):
            rest = "/".join(names[depth:])
            for rule in reversed(self._in("/".join(names[:depth]))):
                if rule.fits(rest, found.kind == "folder"):
                    return not rule.keep
        return False

    def _in(self, folder: str) -> tuple[Rule, ...]:
        if folder not in self._rules:
            self._rules[folder] = self._read(folder)
        return self._rules[folder]

    def _read(self, folder: str) -> tuple[Rule, ...]:
        path = f"./{folder}/.gitignore"
        try:
            text = self._workspace.read_bytes(path, RULES_LIMIT).decode("utf-8", "replace")
        except (OSError, ToolError):
            return ()
        rules = (parse_rule(line) for line in text.splitlines())
        return tuple(rule for rule in rules if rule)


def parse_rule(line: str) -> Rule | None:
    line = line if line.endswith("\\ ") else line.rstrip(" ")
    if not line or line.startswith("#"):
        return None
    keep = line.startswith("!")
    pattern = line[1:] if keep else line
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/") if folders_only else pattern
    anchored = "/" in pattern
    try:
        regex = re.compile(("" if anchored else "(?:.*/)?") + translate(pattern.removeprefix("/")), re.DOTALL)
    except re.error:
        return None
    return Rule(regex, keep, folders_only) if pattern.strip("/") else None

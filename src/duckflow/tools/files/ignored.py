"""What listings and searches leave out: what git ignores, asked of git or read from .gitignore files; and globs."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.safety.entry import FolderEntry
from duckflow.safety.wildcard import Wildcard, wildcards
from duckflow.safety.workspace import Workspace

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

    wildcard: Wildcard
    keep: bool
    folders_only: bool

    def fits(self, path: str, is_folder: bool) -> bool:
        return (is_folder or not self.folders_only) and self.wildcard.matches(path)


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
    wildcard = Wildcard(pattern.removeprefix("/") if anchored else f"**/{pattern}")
    return Rule(wildcard, keep, folders_only) if pattern.strip("/") else None


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """For paths relative to where a search starts; a pattern without `/` fits the last name at any depth."""
    pattern = pattern.removeprefix("./")
    try:
        ways = wildcards(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}")
    except ValueError:
        ways = ()
    if not ways or not all(one.readable for one in ways):
        told = f"The glob {pattern!r} cannot be read. Use something like *.py or src/**/*.ts."
        raise ToolError(told, "file.bad_glob", glob=pattern)
    return lambda path: any(one.matches(path) for one in ways)


GIT_SECONDS = 5
ASK_GIT = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
# A repository's own settings must not make git start a program.
HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")

Ignored = Callable[[FolderEntry], bool]


def ignored_in(workspace: Workspace) -> Ignored:
    """Git's own answer where there is a repository and git; else the rules of the .gitignore files."""
    listed = _ask_git(workspace.root)
    if listed is None:
        return IgnoreRules(workspace).ignores
    return lambda found: found.path in listed or (found.kind == "folder" and found.name == ".git")


def _ask_git(folder: Path) -> frozenset[str] | None:
    git = program("git")
    if git is None or not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            [git, *HARMLESS, *ASK_GIT],
            cwd=folder,
            env={**outside, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    paths = {os.fsdecode(path).rstrip("/") for path in answer.stdout.split(b"\0") if path}
    if "." in paths:
        # A repository around that ignores the work folder as a whole says nothing about what is in it.
        return None
    # Git also names a folder in which everything is ignored; the folder itself is not.
    return frozenset(paths - {path.rpartition("/")[0] for path in paths})


def program(name: str) -> str | None:
    """A program of the system; never one that happens to lie in the current folder."""
    import shutil

    found = shutil.which(name)
    return found if found and Path(found).is_absolute() else None

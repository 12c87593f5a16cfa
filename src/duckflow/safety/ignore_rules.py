"""What git ignores, by the rules of .gitignore files: read as text, without running git."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from duckflow.safety.repository import Repository, find_repository, read_plain

RULES_FILE = ".gitignore"
LONGEST_RULES = 1024 * 1024
ANYWHERE = "**"
HEAVY = frozenset(
    (
        *("node_modules", ".venv", "__pycache__", ".tox", ".nox", ".gradle", ".hg", ".svn"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
    )
)
"""Folders that are made anew at will: left out by name, unless git tracks what is in them."""


@dataclass(frozen=True)
class IgnoreRule:
    """One line. `by_name`: it is held against the name alone, not against the path."""

    pattern: str
    by_name: bool
    keep: bool
    folders_only: bool

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.DOTALL)


class RulesFile:
    """The rules of one file, for the paths beneath its folder. Where it says nothing, the file `above` decides.

    Paths are relative to the top of the repository."""

    def __init__(self, text: str, folder: str, above: "RulesFile | None") -> None:
        self._start = len(folder) + 1 if folder else 0
        self._above = above
        self._rules = [rule for line in text.splitlines() if (rule := read_rule(line))]
        # One look for all rules together: most paths fit none of them.
        self._any_name = _joined([rule for rule in self._rules if rule.by_name])
        self._any_path = _joined([rule for rule in self._rules if not rule.by_name])
        self._decided: dict[tuple[str, bool], bool] = {}

    def ignores(self, path: str, is_folder: bool) -> bool:
        """By itself, or with a folder above it."""
        found = self._decided.get((path, is_folder))
        if found is None:
            folder, _, name = path.rpartition("/")
            found = (folder != "" and self.ignores(folder, True)) or (is_folder and name in HEAVY)
            found = self._decided[path, is_folder] = found or self._decide(path, name, is_folder)
        return found

    def _decide(self, path: str, name: str, is_folder: bool) -> bool:
        inner = path[self._start :]
        if inner and (self._any_name.fullmatch(name) or self._any_path.fullmatch(inner)):
            for rule in reversed(self._rules):
                fits = rule.regex.fullmatch(name if rule.by_name else inner)
                if fits and (is_folder or not rule.folders_only):
                    return not rule.keep
        return self._above is not None and self._above.ignores(path, is_folder)


@lru_cache(maxsize=4096)
def rules_file(text: str, folder: str = "", above: RulesFile | None = None) -> RulesFile:
    """The same one for the same text, so that it remembers what it decided."""
    return RulesFile(text, folder, above)


class IgnoredPaths:
    """What git ignores in a work folder, which may lie inside a repository or in none. Paths are relative to it."""

    def __init__(self, work: Path) -> None:
        self._repository = find_repository(work)
        self._lead = ""
        if self._repository and self._repository.top != work:
            self._lead = work.relative_to(self._repository.top).as_posix() + "/"
        self.top = _rules_above(self._repository, self._lead)

    def below(self, rules: RulesFile, folder: str, text: str) -> RulesFile:
        """The rules inside a folder that has a file of its own."""
        return rules_file(text, (self._lead + folder).rstrip("/"), rules)

    def ignores(self, rules: RulesFile, path: str, is_folder: bool) -> bool:
        """What git tracks is never ignored, nor a folder with something tracked in it."""
        whole = self._lead + path
        return rules.ignores(whole, is_folder) and not self._tracks(whole, is_folder)

    def _tracks(self, path: str, is_folder: bool) -> bool:
        if not is_folder:
            return path in self._tracked
        at = bisect_left(self._tracked_in_order, f"{path}/")
        return at < len(self._tracked_in_order) and self._tracked_in_order[at].startswith(f"{path}/")

    @cached_property
    def _tracked(self) -> dict[str, bytes]:
        return self._repository.index() if self._repository else {}

    @cached_property
    def _tracked_in_order(self) -> list[str]:
        return sorted(self._tracked)


def _rules_above(repository: Repository | None, lead: str) -> RulesFile:
    """Those of the repository, and of its folders above the work folder."""
    if repository is None:
        return rules_file("")
    rules = rules_file(_text(repository.common / "info/exclude"))
    folder = ""
    for name in lead.split("/")[:-1]:
        rules = rules_file(_text(repository.top / folder / RULES_FILE), folder, rules)
        folder = f"{folder}/{name}" if folder else name
    # A repository that ignores the work folder as a whole says nothing about what is in it.
    return rules_file("") if folder and rules.ignores(folder, is_folder=True) else rules


def _text(path: Path) -> str:
    try:
        return read_plain(path, LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _joined(rules: list[IgnoreRule]) -> re.Pattern[str]:
    # What fits nothing, where there are no rules.
    return re.compile("|".join(f"(?:{rule.pattern})" for rule in rules) or r"(?!)", re.DOTALL)


def read_rule(line: str) -> IgnoreRule | None:
    """Nothing for empty lines, remarks, and what is no pattern."""
    line = line if line.endswith("\\ ") else line.rstrip(" ")
    keep = line.startswith("!")
    pattern = line[1:] if keep else line
    folders_only = pattern.endswith("/")
    names = [name for name in pattern.split("/") if name]
    if not names or line.startswith("#"):
        return None
    by_name = "/" not in pattern.rstrip("/") and names != [ANYWHERE]
    try:
        regex = _name(names[0]) if by_name else _path(names)
        re.compile(regex)
    except re.error:
        return None
    return IgnoreRule(regex, by_name, keep, folders_only)


def _path(names: list[str]) -> str:
    """Between two `**` stands a run of names. The first place where it fits is as good as any other, so no other is

    tried: matching takes time in proportion to the path, whatever the pattern."""
    runs: list[list[str]] = [[]]
    for name in names:
        if name == ANYWHERE:
            runs.append([])
        else:
            runs[-1].append(_name(name))
    first, *others = ("/".join(run) for run in runs)
    if not others:
        return first
    start = f"{first}/" if first else ""
    middle = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in others[:-1] if run)
    return start + middle + (f"(?:[^/]+/)*{others[-1]}" if others[-1] else ".+")


def _name(glob: str) -> str:
    """A name or a part of a path. A star takes as little as will do, and is not tried again with more."""
    parts = [""]
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            parts.append("")
        elif char == "?":
            parts[-1] += "[^/]"
        elif char == "[" and (end := glob.find("]", at + 1 + (glob[at : at + 1] in "!^"))) > 0:
            chosen = glob[at:end].replace("\\", "\\\\").replace("[", "\\[")
            parts[-1] += f"(?!/)[{'^' + chosen[1:] if chosen[0] in '!^' else chosen}]"
            at = end + 1
        else:
            if char == "\\" and at < len(glob):
                char = glob[at]
                at += 1
            parts[-1] += re.escape(char)
    first, *others = parts
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{part})" for part in others[:-1]) + f"[^/]*{others[-1]}"

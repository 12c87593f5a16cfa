"""Rules for ignored files, read from .gitignore files without running git, and patterns that match paths."""

import contextlib
import fnmatch
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.files import FolderEntry, open_regular, read_plain
from duckflow.safety.git_settings import plain_value, read_settings
from duckflow.safety.repository import LARGEST_CONFIG, Repository, find_repository
from duckflow.safety.workspace import Workspace

ANY_FOLDERS = "**"
PARTS = r"(?s)\[([!^]?)(\]?[^\]]*)\]|\\(.)"
"""Matches a class of characters (which may begin with `!` or `^`), or an escaped character that stands for itself."""


class Wildcard:
    """A pattern that must match a path completely, name by name between the slashes."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _names(self) -> list[re.Pattern[str] | None]:
        """Returns the patterns of the names. They are compiled at the first try, as most rules of a file are never
        tried."""
        names = pairwise(["", *self._pattern.split("/")])
        # Several `**` in a row mean the same as one.
        return [_name(name) for name_before, name in names if not name == name_before == ANY_FOLDERS]

    @property
    def readable(self) -> bool:
        """False for a pattern with a range that runs backwards, such as `[z-a]`: it matches nothing."""
        return not any(name and "(?!)" in name.pattern for name in self._names)

    def matches(self, path: str) -> bool:
        return _match(self._names, path.split("/"))


def _name(pattern: str) -> re.Pattern[str] | None:
    """Compiles the pattern of one name. Returns None for `**`, which matches any number of folders."""
    if pattern == ANY_FOLDERS:
        return None
    return re.compile(fnmatch.translate(re.sub(PARTS, _as_library_says, pattern)))


def _as_library_says(part: re.Match[str]) -> str:
    if part[3] is None:
        return f"[{'!' if part[1] else ''}{part[2]}]"
    return part[3] if part[3] == "!" else f"[{part[3]}]"


def _match(names: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Matches a path name by name. After a `**`, the next patterns are tried at every depth until they fit."""
    name_index = path_index = 0
    retry_indexes: tuple[int, int] | None = None
    while path_index < len(path):
        name = names[name_index] if name_index < len(names) else None
        if name_index < len(names) and name is None:
            if name_index + 1 == len(names):
                return True
            retry_indexes, name_index = (name_index + 1, path_index), name_index + 1
        elif name and name.match(path[path_index]):
            name_index, path_index = name_index + 1, path_index + 1
        elif retry_indexes:
            name_index, path_index = retry_indexes[0], retry_indexes[1] + 1
            retry_indexes = (name_index, path_index)
        else:
            return False
    return name_index == len(names)


RULES_FILE = ".gitignore"
LONGEST_RULES = 1024 * 1024
LONGEST_RULE = 500
"""The longest rule that is read. No path that a person uses needs a longer one."""
MOST_PATTERNS = 2000
"""The largest number of rules in a file that are tried on every path. No file that a person keeps has more."""
SPECIAL = frozenset("*?[\\")
HEAVY = frozenset(
    ("node_modules", ".venv", "__pycache__", ".tox", ".nox", ".gradle", ".hg", ".svn", ".mypy_cache", ".pytest_cache")
    + (".ruff_cache",)
)
"""Folders that can be made again at any time. They are left out by name, unless git tracks something in them."""

CACHE = re.compile(r"(?:^|/)[\w.-]*cache_*(?:/|$)|\.py[co]$", re.IGNORECASE)
"""Caches such as `__pycache__`, `.pytest_cache` and `.eslintcache`: programs fill them again by themselves."""
MADE_ANEW = re.compile(
    "|".join(map(re.escape, HEAVY))
    + r"|venv|build|dist|target|out|\.next|\.nuxt|\.turbo|htmlcov|coverage|\.coverage.*|coverage\.xml|junit.*\.xml"
    r"|.*\.(?:egg-info|log|pyc|pyo|o|obj|class|tsbuildinfo)"
)
"""Names of folders of packages, caches, builds and reports, which tools can make again at any time."""


def made_anew(path: str) -> bool:
    """Says whether tools can make this file or folder again, by its name or that of a folder above it."""
    return any(map(MADE_ANEW.fullmatch, path.split("/"))) or CACHE.search(path) is not None


class IgnoreRule(NamedTuple):
    """One line of a rules file. With `by_name` the rule is compared with the file's name alone, not with the path."""

    wildcard: Wildcard
    by_name: bool
    keep: bool
    folders_only: bool
    place: int


class RulesFile:
    """The rules of one file, for the paths beneath its folder. Where no rule matches, the rules file `above` decides.
    Paths are relative to the top of the repository."""

    def __init__(self, text: str, folder: str, above: "RulesFile | None") -> None:
        self._start = len(folder) + 1 if folder else 0
        self._text = text = text.removeprefix("\ufeff")
        self._above = above
        # Rules are sorted by the name that they are about, so that most of them are never tried.
        self._by_name: dict[str, list[IgnoreRule]] = {}
        self._by_ending: dict[str, list[IgnoreRule]] = {}
        self._by_first: dict[str, list[IgnoreRule]] = {}
        self._others: list[IgnoreRule] = []
        for line_number, line in enumerate(_bytewise(text).split("\n")):
            self._add(line.removesuffix("\r"), line_number)
        self._decided: dict[tuple[str, bool], bool] = {}

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Says whether the rules ignore the path itself or a folder above it."""
        is_ignored = self._decided.get((path, is_folder))
        if is_ignored is None:
            folder, _, name = path.rpartition("/")
            is_ignored = (folder != "" and self.ignores(folder, True)) or (is_folder and name in HEAVY)
            is_ignored = self._decided[path, is_folder] = is_ignored or self._decide(path, is_folder)
        return is_ignored

    def seen_from(self, folder: str) -> str:
        """Returns these rules and those above as one text, for a program that reads them as rules of this folder."""
        lines = (_seen_from(folder[self._start :], line) for line in self._text.split("\n"))
        return "\n".join((self._above.seen_from(folder) if self._above else "", *lines))

    def _decide(self, path: str, is_folder: bool) -> bool:
        inner_path = _bytewise(path[self._start :])
        if inner_path and (rule := self._last(inner_path, is_folder)):
            return not rule.keep
        return self._above is not None and self._above._decide(path, is_folder)

    def _add(self, line: str, place: int) -> None:
        pattern = _without_spaces(line).removeprefix("!")
        folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        if line.startswith("#") or not pattern.strip("/") or len(pattern) > LONGEST_RULE:
            return
        by_name = "/" not in pattern
        pattern = pattern.removeprefix("/")
        rule = IgnoreRule(Wildcard(pattern), by_name, line.startswith("!"), folders_only, place)
        if not by_name:
            rules_by_key, key = self._by_first, pattern.partition("/")[0]
        elif pattern.startswith("*."):
            rules_by_key, key = self._by_ending, pattern[1:]
        else:
            rules_by_key, key = self._by_name, pattern
        if SPECIAL.isdisjoint(key):
            rules_by_key.setdefault(key, []).append(rule)
        elif len(self._others) < MOST_PATTERNS:
            self._others.append(rule)

    def _last(self, path: str, is_folder: bool) -> IgnoreRule | None:
        """Returns the last rule that matches the path: in git, the last one decides."""
        name = path.rpartition("/")[2]
        candidates = [*self._others, *self._by_first.get(path.partition("/")[0], ()), *self._by_name.get(name, ())]
        dot = name.find(".") if self._by_ending else -1
        while dot >= 0:
            candidates += self._by_ending.get(name[dot:], ())
            dot = name.find(".", dot + 1)
        last_rule = None
        for rule in candidates:
            if (last_rule is None or rule.place > last_rule.place) and (is_folder or not rule.folders_only):
                last_rule = rule if rule.wildcard.matches(name if rule.by_name else path) else last_rule
        return last_rule


def _seen_from(folder: str, line: str) -> str:
    """Returns a rule for the paths beneath a folder, or an empty text where it is about other places."""
    pattern = line.removeprefix("!")
    if not folder or "/" not in pattern.rstrip("/\r ") or pattern.startswith(("#", f"{ANY_FOLDERS}/")):
        return line
    depth, names = folder.count("/") + 1, pattern.removeprefix("/").split("/")
    is_about_folder = any(names[depth:]) and Wildcard("/".join(names[:depth])).matches(folder)
    return "/".join(("!" * line.startswith("!"), *names[depth:])) if is_about_folder else ""


@lru_cache(maxsize=4096)
def rules_file(text: str, folder: str = "", above: RulesFile | None = None) -> RulesFile:
    """Returns the rules in a text. Equal texts share one object, so that its decisions are remembered."""
    return RulesFile(text, folder, above)


class IgnoredPaths:
    """Says which paths git ignores in a work folder, which may lie inside a repository or in none. Paths are relative
    to the work folder."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._repository = find_repository(work)
        self._lead = ""
        if self._repository and self._repository.top != work:
            self._lead = work.relative_to(self._repository.top).as_posix() + "/"
        self.top = _rules_above(self._repository, self._lead)

    def above(self, folder: str) -> str:
        """Returns the rules that do not stand in the work folder, as a text of rules for a folder in it."""
        return self.top.seen_from(f"/{self._lead}{folder}".removesuffix("/.").strip("/"))

    def below(self, rules: RulesFile, folder: str, text: str) -> RulesFile:
        """Returns the rules inside a folder that has a rules file of its own with this text."""
        return rules_file(text, (self._lead + folder).rstrip("/"), rules)

    def ignores(self, rules: RulesFile, path: str, is_folder: bool) -> bool:
        """Says whether a path is ignored. A tracked file is never ignored, nor is a folder with a tracked file in
        it."""
        full_path = self._lead + path
        return rules.ignores(full_path, is_folder) and not self._tracks(full_path, is_folder)

    def ignores_file(self, path: str) -> bool:
        """Says whether a file is ignored by the rules of the folders above it."""
        rules, names = self.top, path.split("/")
        if ".." in names:
            return False
        for depth in range(len(names)):
            folder = "/".join(names[:depth])
            if text := _text(self._work / folder / RULES_FILE):
                rules = self.below(rules, folder, text)
        try:
            return self.ignores(rules, path, (self._work / path).is_dir())
        except OSError:
            return False

    def _tracks(self, path: str, is_folder: bool) -> bool:
        if not is_folder:
            return path in self._tracked
        index = bisect_left(self._tracked_in_order, f"{path}/")
        return index < len(self._tracked_in_order) and self._tracked_in_order[index].startswith(f"{path}/")

    @cached_property
    def _tracked(self) -> dict[str, bytes]:
        return self._repository.index() if self._repository else {}

    @cached_property
    def _tracked_in_order(self) -> list[str]:
        return sorted(self._tracked)


def _rules_above(repository: Repository | None, lead: str) -> RulesFile:
    """Returns the rules of the user, of the repository, and of its folders above the work folder."""
    users_path = _users_file(repository)
    users = rules_file(_text(users_path)) if users_path else rules_file("")
    if repository is None:
        return users
    rules = rules_file(_text(repository.common / "info/exclude"), above=users)
    folder = ""
    for name in lead.split("/")[:-1]:
        rules = rules_file(_text(repository.top / folder / RULES_FILE), folder, rules)
        folder = f"{folder}/{name}" if folder else name
    # A repository that ignores the work folder as a whole says nothing about what is in it.
    return users if folder and rules.ignores(folder, is_folder=True) else rules


def _text(path: Path) -> str:
    try:
        return read_plain(path, LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _bytewise(text: str) -> str:
    """Returns the text with one character for each byte: as in git, a letter of two bytes matches `??`."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def _without_spaces(line: str) -> str:
    """Removes spaces at the end of a line, unless the first of them is escaped."""
    bare_line = line.rstrip(" ")
    is_escaped = (len(bare_line) - len(bare_line.rstrip("\\"))) % 2
    return line[: len(bare_line) + 1] if is_escaped else bare_line


def _users_file(repository: Repository | None) -> Path | None:
    """Returns the path of the user's own ignore rules, for all repositories or for this one."""
    home, config_home = Path.home(), os.environ.get("XDG_CONFIG_HOME")
    git_config_folder = (Path(config_home) if config_home else home / ".config") / "git"
    ignore_path = str(git_config_folder / "ignore")
    repository_configs = [repository.common / "config"] if repository else []
    for path in (Path("/etc/gitconfig"), git_config_folder / "config", home / ".gitconfig", *repository_configs):
        with contextlib.suppress(OSError, ValueError):
            settings = dict(read_settings(read_plain(path, LARGEST_CONFIG).decode("utf-8")))
            ignore_path = plain_value(settings.get("core.excludesfile", ignore_path))
    with contextlib.suppress(RuntimeError):
        return Path(ignore_path).expanduser() if ignore_path else None


GIT = ".git"
MOST_BRACES = 64
ALWAYS_IGNORED = HEAVY | {GIT, ".idea"}

Ignored = Callable[[FolderEntry], bool]


def ignored_in(workspace: Workspace) -> Ignored:
    """Returns a function that says whether an entry of the work folder is ignored. It runs no git: a repository's
    settings could make git start a program."""
    paths = IgnoredPaths(workspace.root)
    rules_by_folder: dict[str, RulesFile] = {}

    def rules_in(folder: str) -> RulesFile:
        if folder not in rules_by_folder:
            parent_rules = rules_in(folder.rpartition("/")[0]) if folder else paths.top
            text = _rules_text(workspace, folder)
            rules_by_folder[folder] = paths.below(parent_rules, folder, text) if text else parent_rules
        return rules_by_folder[folder]

    def ignored(item: FolderEntry) -> bool:
        is_folder = item.kind == "folder"
        if is_folder and item.name == GIT:
            return True
        return paths.ignores(rules_in(item.path.rpartition("/")[0]), item.path, is_folder)

    return ignored


def _rules_text(workspace: Workspace, folder: str) -> str:
    try:
        return workspace.read_bytes(f"./{folder}/{RULES_FILE}", LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, ToolError):
        return ""


def rules_beneath(folder: int) -> str:
    """Returns the text of the rules file in an open folder, or an empty text where none can be read."""
    try:
        with os.fdopen(open_regular(folder, RULES_FILE), "rb") as file:
            return file.read(LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, PathRefused):
        return ""


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Returns a matcher for paths relative to the start of a search; a pattern without `/` matches the last name at any
    depth."""
    pattern = pattern.removeprefix("./")
    try:
        all_wildcards = wildcards(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}")
    except ValueError:
        all_wildcards = ()
    if not all_wildcards or not all(wildcard.readable for wildcard in all_wildcards):
        message = f"The glob {pattern!r} cannot be read. Use something like *.py or src/**/*.ts."
        raise ToolError(message, "file.bad_glob", glob=pattern)
    return lambda path: any(wildcard.matches(path) for wildcard in all_wildcards)


@lru_cache(maxsize=256)
def wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """Returns a Wildcard for each way to read the braces, or raises a ValueError when there are too many."""
    return tuple(Wildcard(simple_pattern) for simple_pattern in _unbraced(pattern))


def _unbraced(pattern: str) -> list[str]:
    """Expands braces: `a{b,c}` becomes `ab` and `ac`. Braces that do not close are ordinary characters."""
    waiting_patterns, expanded_patterns = [pattern], list[str]()
    while waiting_patterns:
        candidate = waiting_patterns.pop()
        first_opening = candidate.find("{")
        closing_index = candidate.find("}", first_opening)
        inner_opening = candidate.rfind("{", 0, closing_index)
        if first_opening < 0 or closing_index < 0 or inner_opening < 0:
            expanded_patterns.append(candidate)
            continue
        waiting_patterns += [
            candidate[:inner_opening] + choice + candidate[closing_index + 1 :]
            for choice in candidate[inner_opening + 1 : closing_index].split(",")
        ]
        if len(waiting_patterns) + len(expanded_patterns) > MOST_BRACES:
            raise ValueError(pattern)
    return expanded_patterns

"""What git ignores and what listings leave out, read from .gitignore files without running git; patterns over paths."""

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

from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry, read_plain
from duckflow.safety.repository import LARGEST_CONFIG, Repository, find_repository, read_settings
from duckflow.safety.workspace import Workspace

ANY_FOLDERS = "**"
PARTS = r"(?s)\[([!^]?)(\]?[^\]]*)\]|\\(.)"
"""A class of characters, which may begin with `!` or `^`, or a character that is meant as it stands."""


class Wildcard:
    """One pattern for the whole of a path whose names are parted by `/`."""

    def __init__(self, pattern: str) -> None:
        names = pattern.split("/")
        # Several `**` in a row say no more than one.
        self._names = [_name(one) for before, one in pairwise(["", *names]) if not one == before == ANY_FOLDERS]
        self.readable = not any(name and "(?!)" in name.pattern for name in self._names)
        """Not with a range in it that runs backwards, such as `[z-a]`: that fits nothing."""

    def matches(self, path: str) -> bool:
        return _match(self._names, path.split("/"))


def escaped(path: str) -> str:
    """The pattern that fits this path and nothing else."""
    return re.sub(r"([*?\[\\{])", r"\\\1", path)


def _name(pattern: str) -> re.Pattern[str] | None:
    """For one name; nothing stands for any folders."""
    if pattern == ANY_FOLDERS:
        return None
    return re.compile(fnmatch.translate(re.sub(PARTS, _as_library_says, pattern)))


def _as_library_says(found: re.Match[str]) -> str:
    if found[3] is None:
        return f"[{'!' if found[1] else ''}{found[2]}]"
    return found[3] if found[3] == "!" else f"[{found[3]}]"


def _match(names: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Folder by folder; after a `**` the rest is tried further down until it fits."""
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(path):
        name = names[at] if at < len(names) else None
        if at < len(names) and name is None:
            if at + 1 == len(names):
                return True
            back, at = (at + 1, place), at + 1
        elif name and name.match(path[place]):
            at, place = at + 1, place + 1
        elif back:
            at, place = back[0], back[1] + 1
            back = (at, place)
        else:
            return False
    return at == len(names)


RULES_FILE = ".gitignore"
LONGEST_RULES = 1024 * 1024
LONGEST_RULE = 500
"""No path that a person has is named by a longer one."""
SPECIAL = frozenset("*?[\\")
HEAVY = frozenset(
    ("node_modules", ".venv", "__pycache__", ".tox", ".nox", ".gradle", ".hg", ".svn", ".mypy_cache", ".pytest_cache")
    + (".ruff_cache",)
)
"""Folders that are made anew at will: left out by name, unless git tracks what is in them."""

CACHE = re.compile(r"(?:^|/)[\w.-]*cache_*(?:/|$)|\.py[co]$", re.IGNORECASE)
"""`__pycache__`, `.pytest_cache`, `.eslintcache`: programs fill them anew by themselves."""


class IgnoreRule(NamedTuple):
    """One line. `by_name`: it is held against the name alone, not against the path."""

    wildcard: Wildcard
    by_name: bool
    keep: bool
    folders_only: bool
    place: int


class RulesFile:
    """The rules of one file, for the paths beneath its folder. Where it says nothing, the file `above` decides. Paths
    are relative to the top of the repository."""

    def __init__(self, text: str, folder: str, above: "RulesFile | None") -> None:
        self._start = len(folder) + 1 if folder else 0
        self._above = above
        # By the name that they are about, so that most rules are never tried.
        self._by_name: dict[str, list[IgnoreRule]] = {}
        self._by_ending: dict[str, list[IgnoreRule]] = {}
        self._by_first: dict[str, list[IgnoreRule]] = {}
        self._others: list[IgnoreRule] = []
        for place, line in enumerate(_bytewise(text.removeprefix("\ufeff")).split("\n")):
            self._add(line.removesuffix("\r"), place)
        self._decided: dict[tuple[str, bool], bool] = {}

    def ignores(self, path: str, is_folder: bool) -> bool:
        """By itself, or with a folder above it."""
        found = self._decided.get((path, is_folder))
        if found is None:
            folder, _, name = path.rpartition("/")
            found = (folder != "" and self.ignores(folder, True)) or (is_folder and name in HEAVY)
            found = self._decided[path, is_folder] = found or self._decide(path, is_folder)
        return found

    def _decide(self, path: str, is_folder: bool) -> bool:
        inner = _bytewise(path[self._start :])
        if inner and (rule := self._last(inner, is_folder)):
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
            known, key = self._by_first, pattern.partition("/")[0]
        elif pattern.startswith("*."):
            known, key = self._by_ending, pattern[1:]
        else:
            known, key = self._by_name, pattern
        (known.setdefault(key, []) if SPECIAL.isdisjoint(key) else self._others).append(rule)

    def _last(self, path: str, is_folder: bool) -> IgnoreRule | None:
        """The last rule that fits."""
        name = path.rpartition("/")[2]
        tried = [*self._others, *self._by_first.get(path.partition("/")[0], ()), *self._by_name.get(name, ())]
        dot = name.find(".") if self._by_ending else -1
        while dot >= 0:
            tried += self._by_ending.get(name[dot:], ())
            dot = name.find(".", dot + 1)
        last = None
        for rule in tried:
            if (last is None or rule.place > last.place) and (is_folder or not rule.folders_only):
                last = rule if rule.wildcard.matches(name if rule.by_name else path) else last
        return last


@lru_cache(maxsize=4096)
def rules_file(text: str, folder: str = "", above: RulesFile | None = None) -> RulesFile:
    """The same one for the same text, so that it remembers what it decided."""
    return RulesFile(text, folder, above)


class IgnoredPaths:
    """What git ignores in a work folder, which may lie inside a repository or in none. Paths are relative to it."""

    def __init__(self, work: Path) -> None:
        self._work = work
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

    def ignores_file(self, path: str) -> bool:
        """Whether the rules of all folders above this path ignore it."""
        rules, names = self.top, path.split("/")
        if ".." in names:
            return False
        for depth in range(len(names)):
            above = "/".join(names[:depth])
            if text := _text(self._work / above / RULES_FILE):
                rules = self.below(rules, above, text)
        try:
            return self.ignores(rules, path, (self._work / path).is_dir())
        except OSError:
            return False

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
    """Those of the user, of the repository, and of its folders above the work folder."""
    own = _users_file(repository)
    users = rules_file(_text(own)) if own else rules_file("")
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
    """A character for each byte: as in git, a letter that takes two is fitted by two `?`."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def _without_spaces(line: str) -> str:
    """Spaces at its end do not count unless the first of them is escaped."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
    return line[: len(bare) + 1] if escaped else bare


def _users_file(repository: Repository | None) -> Path | None:
    """The file with the user's own ignore rules, for all repositories or for this one."""
    home, elsewhere = Path.home(), os.environ.get("XDG_CONFIG_HOME")
    mine = (Path(elsewhere) if elsewhere else home / ".config") / "git"
    chosen = str(mine / "ignore")
    own = [repository.common / "config"] if repository else []
    for path in (Path("/etc/gitconfig"), mine / "config", home / ".gitconfig", *own):
        with contextlib.suppress(OSError, ValueError):
            settings = dict(read_settings(read_plain(path, LARGEST_CONFIG).decode("utf-8")))
            chosen = _unquoted(settings.get("core.excludesfile", chosen))
    with contextlib.suppress(RuntimeError):
        return Path(chosen).expanduser() if chosen else None


def _unquoted(value: str) -> str:
    """A value as it is meant: without quotes, escapes, and what comes after `#` or `;`."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|\\(.)|([^"\\#;]+)|([#;].*)', value)
    said = (re.sub(r"\\(.)", r"\1", quoted) + escaped + plain for quoted, escaped, plain, _ in parts)
    return "".join(said).strip()


GIT = ".git"
MOST_BRACES = 64
ALWAYS_IGNORED = HEAVY | {GIT, ".idea"}

Ignored = Callable[[FolderEntry], bool]


def ignored_in(workspace: Workspace) -> Ignored:
    """For what lies in the work folder. No git runs: a repository's settings could make it start a program."""
    paths = IgnoredPaths(workspace.root)
    known: dict[str, RulesFile] = {}

    def rules_in(folder: str) -> RulesFile:
        if folder not in known:
            above = rules_in(folder.rpartition("/")[0]) if folder else paths.top
            text = _rules_text(workspace, folder)
            known[folder] = paths.below(above, folder, text) if text else above
        return known[folder]

    def ignored(found: FolderEntry) -> bool:
        is_folder = found.kind == "folder"
        if is_folder and found.name == GIT:
            return True
        return paths.ignores(rules_in(found.path.rpartition("/")[0]), found.path, is_folder)

    return ignored


def _rules_text(workspace: Workspace, folder: str) -> str:
    try:
        return workspace.read_bytes(f"./{folder}/{RULES_FILE}", LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, ToolError):
        return ""


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


@lru_cache(maxsize=256)
def wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """One for each way to read the braces; a ValueError when these are too many."""
    return tuple(Wildcard(one) for one in _unbraced(pattern))


def _unbraced(pattern: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`; braces that do not close are ordinary characters."""
    waiting, found = [pattern], list[str]()
    while waiting:
        one = waiting.pop()
        opened = one.find("{")
        closed = one.find("}", opened)
        inner = one.rfind("{", 0, closed)
        if opened < 0 or closed < 0 or inner < 0:
            found.append(one)
            continue
        waiting += [one[:inner] + choice + one[closed + 1 :] for choice in one[inner + 1 : closed].split(",")]
        if len(waiting) + len(found) > MOST_BRACES:
            raise ValueError(pattern)
    return found

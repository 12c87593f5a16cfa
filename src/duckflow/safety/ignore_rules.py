"""What git ignores, by the rules of .gitignore files: read as text, without running git."""

import contextlib
import os
import re
from bisect import bisect_left
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.files import read_plain
from duckflow.safety.repository import LARGEST_CONFIG, Repository, find_repository, read_settings
from duckflow.safety.wildcard import Wildcard

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

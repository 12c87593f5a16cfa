"""One walk through the work folder: what lies in it, and what is left out."""

import contextlib
import os
import re
import stat
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.files import open_regular
from duckflow.safety.ignore_rules import HEAVY, LONGEST_RULES, RULES_FILE, IgnoredPaths, RulesFile
from duckflow.safety.path_names import MAX_DEPTH
from duckflow.safety.undo.fact import Seen, Stamp
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.tree import READ_FOLDER, Tree

GIT = ".git"
OWN_TEMPORARY = re.compile(r"\.duckflow-[0-9a-f]{12}\.tmp")
Facts = os.stat_result


class TooManyFiles(Exception):
    """More than may be covered."""


@dataclass(slots=True)
class Survey:
    """What lies in the folder, by path."""

    covered: dict[str, Seen] = field(default_factory=dict[str, Seen])
    watched: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """Files that git ignores: only whether they changed is known."""
    places: set[str] = field(default_factory=set[str])
    """The ignored files and folders that these belong to."""
    blind: dict[str, str] = field(default_factory=dict[str, str])
    """Folders of which nothing is known: not ours to read, too deep, or more than is watched. And what to call them."""
    repositories: list[str] = field(default_factory=list[str])

    def left_out(self, path: str) -> bool:
        """Whether something may have been there that is not covered."""
        return any(above in self.places or above in self.blind for above in upwards(path))

    def unseen(self, path: str) -> bool:
        return any(above in self.blind for above in upwards(path))

    def touched_since(self, before: "Survey") -> dict[str, int]:
        """How many ignored files are new, gone or different, by the ignored file or folder they belong to."""
        found: dict[str, int] = {}
        for path in (before.watched | self.watched).keys() - before.covered.keys():
            old, seen = before.watched.get(path), self.covered.get(path)
            new = seen.stamp if seen else self.watched.get(path)
            if old != new and (old or not before.unseen(path)) and (new or not self.unseen(path)):
                place = next(above for above in upwards(path) if above in before.places | self.places)
                found[place] = found.get(place, 0) + 1
        return found


class FolderWalk:
    """Goes by handles of folders. Files whose stamp is known are not read again. `own`: what is left out (undo's data,
    private places)."""

    def __init__(
        self, tree: Tree, known: Mapping[str, Seen], settings: UndoSettings, own: Container[tuple[int, int]]
    ) -> None:
        self._tree = tree
        self._known = known
        self._settings = settings
        self._own = own
        self._ignored: IgnoredPaths | None = None
        self._survey = Survey()

    def walk(self, start: str, work: Path | None = None) -> Survey:
        """All beneath a folder; of the work folder without what git ignores and git's own files."""
        self._ignored = IgnoredPaths(work) if work else None
        handle = self._tree.open_folder(start)
        try:
            self._list(handle, f"{start}/" if start else "", self._ignored and self._ignored.top, "")
        finally:
            os.close(handle)
        return self._survey

    def _list(self, handle: int, prefix: str, rules: RulesFile | None, place: str) -> None:
        """`place`: the ignored folder that this one lies in, if it does."""
        files: dict[str, Facts] = {}
        folders: dict[str, Facts] = {}
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    # Removed while we looked.
                    continue
                if (facts.st_dev, facts.st_ino) not in self._own:
                    (folders if stat.S_ISDIR(facts.st_mode) else files)[entry.name] = facts
        if (GIT in folders or GIT in files) and not place:
            self._survey.repositories.append(prefix.rstrip("/"))
            # A repository within the work folder has rules of its own, which are not read.
            rules = None if prefix else rules
        if RULES_FILE in files and self._ignored and rules and not place:
            rules = self._ignored.below(rules, prefix, _rules_text(handle))
        for name, facts in files.items():
            self._file(handle, prefix + name, facts, rules, place)
        for name, facts in folders.items():
            if name != GIT or self._ignored is None:
                self._folder(handle, prefix + name, facts, rules, place)

    def _file(self, handle: int, path: str, facts: Facts, rules: RulesFile | None, place: str) -> None:
        stamp = Stamp.of(facts)
        if place or self._ignores(path, rules, is_folder=False):
            self._survey.places.add(place or path)
            if self._watches_enough:
                # Its whole folder is unknown then, where that is ignored too.
                self._survey.blind[path.rpartition("/")[0] if place else path] = place or path
            else:
                self._survey.watched[path] = stamp
            return
        known = self._known.get(path)
        if known is None or known.stamp != stamp or not known.settled:
            name = path.rpartition("/")[2]
            if OWN_TEMPORARY.fullmatch(name):
                return
            try:
                known = self._tree.see(handle, name, facts)
            except FileNotFoundError:
                return
        if len(self._survey.covered) >= self._settings.files:
            raise TooManyFiles
        self._survey.covered[path] = known

    def _folder(self, handle: int, path: str, facts: Facts, rules: RulesFile | None, place: str) -> None:
        name, known = path.rpartition("/")[2], self._known.get(path)
        if place or self._ignores(path, rules, is_folder=True):
            place = place or path
            self._survey.places.add(place)
        else:
            found = self._tree.see(handle, name, facts)
            self._survey.covered[path] = known if known and known.fact == found.fact else found
        try:
            if path.count("/") >= MAX_DEPTH or (place and self._watches_enough):
                raise PermissionError
            inner = os.open(name, READ_FOLDER, dir_fd=handle)
        except FileNotFoundError:
            return
        except OSError:
            self._survey.blind[path] = place or path
            return
        try:
            self._list(inner, f"{path}/", rules, place)
        finally:
            os.close(inner)

    @property
    def _watches_enough(self) -> bool:
        return len(self._survey.watched) >= self._settings.watched_files

    def _ignores(self, path: str, rules: RulesFile | None, is_folder: bool) -> bool:
        if self._ignored is None or rules is None:
            return self._ignored is not None and is_folder and path.rpartition("/")[2] in HEAVY
        return self._ignored.ignores(rules, path, is_folder)


def _rules_text(folder: int) -> str:
    with contextlib.suppress(OSError, PathRefused), os.fdopen(open_regular(folder, RULES_FILE), "rb") as file:
        return file.read(LONGEST_RULES).decode("utf-8", "surrogateescape")
    return ""


def upwards(path: str) -> list[str]:
    """The path itself, and every folder above it."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 0, -1)]

"""One walk through the work folder."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from duckflow.safety.path_names import MAX_DEPTH
from duckflow.safety.undo.fact import Fact, Seen, Stamp
from duckflow.safety.undo.ignored import GIT, Ignored, upwards
from duckflow.safety.undo.tree import READ_FOLDER, Tree

OWN_TEMPORARY = re.compile(r"\.duckflow-[0-9a-f]{12}\.tmp")


class TooManyFiles(Exception):
    """More than may be covered."""


@dataclass(slots=True)
class Survey:
    """What lies in the folder, and what was left out."""

    covered: dict[str, Seen] = field(default_factory=dict[str, Seen])
    watched: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """Ignored files: only whether they changed is known."""
    ignored: set[str] = field(default_factory=set[str])
    """The ignored files and folders that hold what is watched."""
    blind: set[str] = field(default_factory=set[str])
    """Folders of which nothing is known: not ours to read, too deep, or more than is watched."""
    repositories: list[str] = field(default_factory=list[str])
    """Folders that are git repositories."""

    def unseen(self, path: str) -> bool:
        """Whether something may have been there without being noticed."""
        return bool(self.blind) and any(above in self.blind for above in upwards(path))

    def may_have_had(self, path: str, is_folder: bool) -> bool:
        """Whether something was there that is not covered, as far as is known."""
        if path in self.watched or self.unseen(path):
            return True
        return is_folder and any(above in self.ignored for above in upwards(path))

    def ignored_above(self, path: str) -> str:
        return next((above for above in upwards(path) if above in self.ignored), path)

    def touched_since(self, before: "Survey") -> dict[str, int]:
        """How many ignored files are new, gone or different, by the ignored file or folder they belong to."""
        found: dict[str, int] = {}
        for path in before.watched.keys() | self.watched.keys():
            covered = self.covered.get(path)
            old, new = before.watched.get(path), covered.stamp if covered else self.watched.get(path)
            unknown = (old is None and before.unseen(path)) or (new is None and self.unseen(path))
            if old != new and not unknown and not (old is None and path in before.covered):
                place = self.ignored_above(path) if path in self.watched else before.ignored_above(path)
                found[place] = found.get(place, 0) + 1
        return found


class Surveyor:
    """Walks by handles of folders; files whose stamp is known are not read again."""

    def __init__(self, tree: Tree, left_out: tuple[int, int], files: int, watched: int) -> None:
        self._tree = tree
        self._left_out = left_out
        self._most_files = files
        self._most_watched = watched

    def take(self, known: Mapping[str, Seen], ignored: Ignored, start: str = "") -> Survey:
        """All beneath `start` (the start itself excluded)."""
        walk = _Walk(self._tree, known, ignored, self._left_out, (self._most_files, self._most_watched))
        handle = self._tree.open_folder(start)
        try:
            walk.cover(handle, f"{start}/" if start else "", foreign=False)
        finally:
            os.close(handle)
        return walk.survey


class _Walk:
    def __init__(
        self,
        tree: Tree,
        known: Mapping[str, Seen],
        ignored: Ignored,
        left_out: tuple[int, int],
        limits: tuple[int, int],
    ) -> None:
        self.survey = Survey()
        self._reader = tree.reader
        self._known = known
        self._ignored = ignored
        self._left_out = left_out
        self._most_files, self._most_watched = limits

    def cover(self, handle: int, prefix: str, foreign: bool) -> None:
        folders: list[str] = []
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(facts.st_mode):
                        if (facts.st_dev, facts.st_ino) != self._left_out:
                            folders.append(entry.name)
                    else:
                        self._cover_file(handle, entry.name, prefix + entry.name, facts)
                except FileNotFoundError:
                    # Removed while we looked.
                    continue
        if GIT in folders or f"{prefix}{GIT}" in self.survey.covered:
            self.survey.repositories.append(prefix.rstrip("/"))
            foreign = foreign or bool(prefix)
        for name in folders:
            if name != GIT or self._ignored.covers_git:
                self._cover_folder(handle, name, prefix + name, foreign)

    def _cover_file(self, handle: int, name: str, path: str, facts: os.stat_result) -> None:
        stamp = Stamp.of(facts)
        if self._ignored.file(path):
            self.survey.ignored.add(path)
            self._watch_file(path, stamp, or_else=path)
            return
        known = self._known.get(path)
        if known is None or known.stamp != stamp or not known.settled:
            if OWN_TEMPORARY.fullmatch(name):
                return
            known = self._reader.see(handle, name, facts)
        if len(self.survey.covered) >= self._most_files:
            raise TooManyFiles
        self.survey.covered[path] = known

    def _cover_folder(self, handle: int, name: str, path: str, foreign: bool) -> None:
        if self._ignored.folder(path, foreign):
            self.survey.ignored.add(path)
            self._enter(handle, name, path, foreign=None)
        else:
            self._enter(handle, name, path, foreign)

    def _enter(self, handle: int, name: str, path: str, foreign: bool | None) -> None:
        """`foreign` is nothing where files are only watched."""
        if path.count("/") >= MAX_DEPTH:
            self.survey.blind.add(path)
            return
        try:
            inner = os.open(name, READ_FOLDER, dir_fd=handle)
        except FileNotFoundError:
            return
        except OSError:
            self._cover_closed(handle, name, path, foreign)
            return
        try:
            if foreign is None:
                self._watch(inner, f"{path}/")
            else:
                self._add_folder(path, os.fstat(inner))
                self.cover(inner, f"{path}/", foreign)
        finally:
            os.close(inner)

    def _cover_closed(self, handle: int, name: str, path: str, foreign: bool | None) -> None:
        """A folder that may not be listed: it is known, what is in it is not."""
        self.survey.blind.add(path)
        facts = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if foreign is not None and stat.S_ISDIR(facts.st_mode):
            self._add_folder(path, facts)

    def _add_folder(self, path: str, facts: os.stat_result) -> None:
        fact = Fact("folder", facts.st_mode & 0o7777, facts.st_uid, facts.st_gid, 0, "")
        known = self._known.get(path)
        same = known is not None and known.fact == fact
        self.survey.covered[path] = known if known and same else Seen(fact, Stamp.of(facts), settled=True)

    def _watch(self, handle: int, prefix: str) -> None:
        folders: list[str] = []
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if not stat.S_ISDIR(facts.st_mode):
                    self._watch_file(prefix + entry.name, Stamp.of(facts), or_else=prefix.rstrip("/"))
                elif (facts.st_dev, facts.st_ino) != self._left_out:
                    folders.append(entry.name)
        for name in folders:
            if len(self.survey.watched) >= self._most_watched:
                self.survey.blind.add(prefix + name)
            else:
                self._enter(handle, name, prefix + name, foreign=None)

    def _watch_file(self, path: str, stamp: Stamp, or_else: str) -> None:
        if len(self.survey.watched) < self._most_watched:
            self.survey.watched[path] = stamp
        else:
            self.survey.blind.add(or_else)

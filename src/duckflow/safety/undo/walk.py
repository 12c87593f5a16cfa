"""A survey of the whole work folder for undo: which files are kept, which are only watched, and which cannot be
seen."""

import contextlib
import os
import re
import stat
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from duckflow.safety.ignore_rules import CACHE, HEAVY, RULES_FILE, IgnoredPaths, RulesFile, made_anew, rules_beneath
from duckflow.safety.path_names import MAX_DEPTH
from duckflow.safety.risk import runs_later
from duckflow.safety.undo.facts import Change, Fact, Seen, Stamp
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.tree import APART, FAN_OUT, GIT, OBJECT, READ_FOLDER, Tree, is_guarded_pack, upwards

OWN_TEMPORARY = re.compile(r"\.duckflow-[0-9a-f]{12}\.tmp")
MOST_LOOKED_AT = 200
MOST_TOLD = 20
Facts = os.stat_result
Rules = Mapping[str, RulesFile]
"""The rules by which git ignores files, by the folders in which they hold."""


@dataclass(slots=True)
class Survey:
    """The files of the folder by their paths: those that undo can restore, and those that it cannot."""

    covered: dict[str, Seen] = field(default_factory=dict[str, Seen])
    watched: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """Files that git ignores: undo knows their stamps (size, times and the like), but not their contents."""
    places: set[str] = field(default_factory=set[str])
    """The ignored files and folders in which the watched files lie; an ignored file stands for itself."""
    blind: dict[str, str] = field(default_factory=dict[str, str])
    """Folders whose files undo does not know (unreadable, too deep, or more files than are watched), each with its name
    for people."""
    crowded: set[str] = field(default_factory=set[str])
    """Folders with more new files than undo may cover. Files that were known before are still covered."""
    repositories: list[str] = field(default_factory=list[str])
    rules: dict[str, RulesFile] = field(default_factory=dict[str, RulesFile])
    linked: dict[tuple[int, int, int], list[str]] = field(default_factory=dict[tuple[int, int, int], list[str]])
    """The covered files that have several names (hard links). The key is device, inode and number of names; the value
    lists the names seen here."""

    def lead_out(self) -> list[str]:
        """Returns the covered files that have a further name (hard link) which was not seen in the folder."""
        return [path for (_, _, count), paths in self.linked.items() if len(paths) < count for path in paths]

    def left_out(self, path: str) -> bool:
        """Says whether a file that undo does not cover may have been at this path."""
        parents = upwards(path)
        is_crowded = any(parent.rpartition("/")[0] in self.crowded for parent in parents)
        return is_crowded or any(parent in self.places or parent in self.blind for parent in parents)

    def unseen(self, path: str) -> bool:
        return any(parent in self.blind for parent in upwards(path))

    def running_later(self, before: "Survey", work: Path) -> Iterator[Change]:
        """Yields the ignored files that are new or different and may make code run later. Of each ignored folder those
        come first that lie highest, and not more than `MOST_TOLD`. What tools make anew is left out."""
        paths_by_place = dict[str, list[str]]()
        for path, stamp in self.watched.items():
            if before.watched.get(path) != stamp and path not in before.covered and not made_anew(path):
                paths_by_place.setdefault(self._place(before, path), []).append(path)
        for paths in paths_by_place.values():
            # Looking at settings that name a file takes time, so it is done only where few files have changed.
            folder = work if len(paths) <= MOST_LOOKED_AT else None
            seen_paths = [path for path in paths if path in before.watched or not before.unseen(path)]
            ordered_paths = sorted(seen_paths, key=lambda path: (path.count("/"), path))
            later = (path for path in ordered_paths if runs_later(path, path not in before.watched, folder))
            for path in islice(later, MOST_TOLD):
                yield Change(path, _unread(before.watched.get(path)), _unread(self.watched[path]), own=False)

    def _place(self, before: "Survey", path: str) -> str:
        return next(parent for parent in upwards(path) if parent in before.places or parent in self.places)

    def touched_since(self, before: "Survey") -> dict[str, int]:
        """Counts the ignored files that are new, gone or different, by the ignored file or folder they are in. Caches
        are left out, and so is what tools make anew, unless it is gone: a report that each run of the tests writes is
        no loss, but a folder of packages has to be filled again."""
        count_by_folder: dict[str, int] = {}
        paths = (before.watched | self.watched).keys() - before.covered.keys()
        for path in (path for path in paths if not CACHE.search(path)):
            old_stamp, seen_entry = before.watched.get(path), self.covered.get(path)
            new = seen_entry.stamp if seen_entry else self.watched.get(path)
            is_remade = new is not None and made_anew(path)
            is_known = (old_stamp or not before.unseen(path)) and (new or not self.unseen(path))
            if old_stamp != new and is_known and not is_remade:
                ignored_folder = self._place(before, path)
                count_by_folder[ignored_folder] = count_by_folder.get(ignored_folder, 0) + 1
        return count_by_folder


class FolderWalk:
    """Walks through a folder by handles. Files whose stamp is known are not read again. `own` lists files and folders
    that are left out (undo's data, private places). `kept` lists paths that were not ignored when the first command
    ran, and `held` those of which a kept turn holds a state: a command cannot make them, or what comes beneath them,
    ignored later. With `earlier_rules`, git's rules before a command that has ended,
    what the command itself calls ignored is covered, except what tools make anew."""

    def __init__(
        self,
        tree: Tree,
        known: Mapping[str, Seen],
        settings: UndoSettings,
        own: Container[tuple[int, int]],
        kept: Container[str] = (),
        held: Container[str] = (),
        earlier_rules: Rules | None = None,
    ) -> None:
        self._tree = tree
        self._kept = kept
        self._held = held
        self._earlier_rules = earlier_rules
        self._known = known
        self._settings = settings
        self._own = own
        self._ignored: IgnoredPaths | None = None
        self._survey = Survey()
        self._in_git = False
        self._of_git = 0

    def walk(self, start: str, work: Path | None = None) -> Survey:
        """Surveys everything beneath a folder. With `work` (the work folder), ignored files and git's packs are left
        out."""
        self._ignored = IgnoredPaths(work) if work else None
        handle = self._tree.open_folder(start)
        try:
            self._list(handle, f"{start}/" if start else "", self._ignored and self._ignored.top, "")
        finally:
            os.close(handle)
        return self._survey

    def _list(self, handle: int, prefix: str, rules: RulesFile | None, place: str) -> None:
        """Surveys the entries of a folder. `place` is the ignored folder that this one lies in, if there is one."""
        files: dict[str, Facts] = {}
        folders: dict[str, Facts] = {}
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    entry_stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    # The entry was removed while the folder was listed.
                    continue
                if (entry_stat.st_dev, entry_stat.st_ino) not in self._own:
                    (folders if stat.S_ISDIR(entry_stat.st_mode) else files)[entry.name] = entry_stat
        if (GIT in folders or GIT in files) and (not place or prefix.rstrip("/") in self._survey.covered):
            self._survey.repositories.append(prefix.rstrip("/"))
            # A repository within the work folder has rules of its own, which are not read.
            rules = None if prefix else rules
        if RULES_FILE in files and self._ignored and rules and not place:
            rules = self._ignored.below(rules, prefix, rules_beneath(handle))
        if rules and not place:
            self._survey.rules[prefix.rstrip("/")] = rules
        for name, entry_stat in files.items():
            self._file(handle, prefix + name, entry_stat, rules, place)
        for name, entry_stat in folders.items():
            if name != GIT or self._ignored is None:
                self._folder(handle, prefix + name, entry_stat, rules, place)
            elif not place or prefix.rstrip("/") in self._survey.covered:
                self._in_git = True
                self._folder(handle, prefix + name, entry_stat, None, "")
                self._in_git = False

    def _file(self, handle: int, path: str, facts: Facts, rules: RulesFile | None, place: str) -> None:
        stamp = Stamp.of(facts)
        if place or self._ignores(path, rules, is_folder=False):
            self._survey.places.add(place or path)
            if self._watches_enough:
                # The limit is reached: nothing is known of this file, nor of its folder where that is ignored too.
                self._survey.blind[path.rpartition("/")[0] if place else path] = place or path
            else:
                self._survey.watched[path] = stamp
            return
        seen_entry = self._known.get(path)
        if seen_entry is None and self._is_full(path):
            return
        if seen_entry is None or seen_entry.stamp != stamp or not seen_entry.settled:
            name = path.rpartition("/")[2]
            if OWN_TEMPORARY.fullmatch(name) or (self._in_git and is_guarded_pack(path)):
                return
            try:
                seen_entry = self._tree.see(handle, name, facts)
            except FileNotFoundError:
                return
        self._of_git += self._in_git
        self._survey.covered[path] = seen_entry
        if facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode) and not self._in_git:
            self._survey.linked.setdefault((facts.st_dev, facts.st_ino, facts.st_nlink), []).append(path)

    def _folder(self, handle: int, path: str, facts: Facts, rules: RulesFile | None, place: str) -> None:
        name, known_entry = path.rpartition("/")[2], self._known.get(path)
        if place or self._ignores(path, rules, is_folder=True):
            place = place or path
            self._survey.places.add(place)
            if _holds_repository(handle, name):
                # The history of a repository is kept, with the folders above it, though its files are ignored.
                for folder in upwards(path):
                    if seen := self._survey.covered.get(folder) or self._known.get(folder) or self._tree.look(folder):
                        self._survey.covered[folder] = seen
        else:
            if known_entry is None and self._is_full(path):
                return
            seen = self._tree.see(handle, name, facts)
            if self._in_git and FAN_OUT.search(path):
                self._objects(handle, path, seen)
                return
            self._survey.covered[path] = known_entry if known_entry and known_entry.fact == seen.fact else seen
            if self._in_git and APART.search(path):
                self._survey.blind[path] = path
                return
        try:
            if path.count("/") >= MAX_DEPTH or (place and self._watches_enough):
                raise PermissionError
            inner_handle = os.open(name, READ_FOLDER, dir_fd=handle)
        except FileNotFoundError:
            return
        except OSError:
            self._survey.blind[path] = place or path
            return
        try:
            self._list(inner_handle, f"{path}/", rules, place)
        finally:
            os.close(inner_handle)

    def _objects(self, handle: int, path: str, folder: Seen) -> None:
        """Surveys a folder of git's objects. Objects never change, so a known object is not looked at again. Where no
        object came or went since the folder was listed, the folder is not listed again."""
        known_entry = self._known.get(path)
        if known_entry and known_entry.stamp == folder.stamp and known_entry.settled:
            self._survey.covered[path] = known_entry
            objects = self._known_objects.get(path, {})
            self._survey.covered |= objects
            self._of_git += len(objects)
            return
        self._survey.covered[path] = folder._replace(settled=folder.stamp.settled)
        inner_handle = os.open(path.rpartition("/")[2], READ_FOLDER, dir_fd=handle)
        try:
            for name in os.listdir(inner_handle):
                if seen_object := self._known.get(object_path := f"{path}/{name}"):
                    self._of_git += 1
                    self._survey.covered[object_path] = seen_object
                elif OBJECT.search(object_path):
                    with contextlib.suppress(FileNotFoundError):
                        self._file(
                            inner_handle,
                            object_path,
                            os.stat(name, dir_fd=inner_handle, follow_symlinks=False),
                            None,
                            "",
                        )
        finally:
            os.close(inner_handle)

    @cached_property
    def _known_objects(self) -> dict[str, dict[str, Seen]]:
        """Returns git's objects that are known from before, by their folder."""
        objects_by_folder: dict[str, dict[str, Seen]] = {}
        for path, seen_object in self._known.items():
            if "objects/" in path and OBJECT.search(path):
                objects_by_folder.setdefault(path.rpartition("/")[0], {})[path] = seen_object
        return objects_by_folder

    def _is_full(self, path: str) -> bool:
        """Says whether no more new files are covered. Files that are already known stay covered, so that nobody can
        make undo forget them by filling the folder."""
        covered_count = self._of_git if self._in_git else len(self._survey.covered) - self._of_git
        if covered_count < self._settings.files or path in self._held:
            return False
        self._survey.crowded.add(path.rpartition("/")[0])
        return True

    @property
    def _watches_enough(self) -> bool:
        return len(self._survey.watched) >= self._settings.watched_files

    def _ignores(self, path: str, rules: RulesFile | None, is_folder: bool) -> bool:
        if path in self._kept:
            return False
        if self._ignored is None or rules is None:
            return self._ignored is not None and is_folder and path.rpartition("/")[2] in HEAVY
        if not self._ignored.ignores(rules, path, is_folder):
            return False
        if made_anew(path):
            return path not in self._held
        if any(parent in self._held for parent in upwards(path)):
            return False
        if (earlier := self._earlier_rules) is None:
            return True
        rules = next((earlier[folder] for folder in (*upwards(path)[1:], "") if folder in earlier), None)
        return rules is not None and self._ignored.ignores(rules, path, is_folder)


def _unread(stamp: Stamp | None) -> Fact | None:
    """Returns the state of a file of which only the stamp is known."""
    return stamp and Fact("file", stamp.mode & 0o7777, stamp.owner, stamp.group, stamp.size, stamp.unkept_content)


def _holds_repository(folder: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISDIR(os.stat(f"{name}/{GIT}", dir_fd=folder, follow_symlinks=False).st_mode)
    return False

"""The work folder as undo reaches it: beneath one handle, never through a link; and looked through as a whole."""

import contextlib
import errno
import os
import re
import stat
import weakref
from collections.abc import Container, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.files import NEW, changed, kind_of, open_regular
from duckflow.safety.ignore_rules import CACHE, HEAVY, LONGEST_RULES, RULES_FILE, IgnoredPaths, RulesFile
from duckflow.safety.path_names import MAX_DEPTH
from duckflow.safety.undo.git_files import APART, FAN_OUT, GIT, OBJECT, PACK
from duckflow.safety.undo.ledger import Contents, Fact, Seen, Stamp, content_id
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.workspace import Trail

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class Tree:
    """Looks at single paths and puts things back. Paths are relative, without `.`, `..` and links."""

    def __init__(self, root: Path, contents: Contents, largest: int, token: str) -> None:
        self.root = os.open(root, READ_FOLDER)
        self.close = weakref.finalize(self, os.close, self.root)
        self._contents = contents
        self._largest = largest
        self._temporary = temporary_name(token)

    def look(self, path: str) -> Seen | None:
        """What lies there; nothing when there is nothing, or only something beyond a link. Its content is kept."""
        try:
            with self._place(path) as (folder, name):
                return self.see(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError as problem:
            if problem.errno not in NOT_THERE:
                raise
        return None

    def see(self, folder: int, name: str, facts: os.stat_result) -> Seen:
        """What a name stands for. Raises FileNotFoundError when it is gone meanwhile."""
        stamp, kind = Stamp.of(facts), kind_of(facts.st_mode)
        if kind == "file":
            return self._read(folder, name) or _file(stamp, stamp.unkept_content, settled=True)
        if kind == "link":
            fact = Fact(kind, 0, stamp.owner, stamp.group, 0, os.readlink(name, dir_fd=folder))
            return Seen(fact, stamp, stamp.settled)
        return Seen(Fact(kind, facts.st_mode & 0o7777, stamp.owner, stamp.group, 0, ""), stamp, settled=True)

    def _read(self, folder: int, name: str) -> Seen | None:
        """A plain file, its content kept; nothing when it is too large, or not ours to read."""
        try:
            with os.fdopen(open_regular(folder, name), "rb", buffering=0) as file:
                before = Stamp.of(os.fstat(file.fileno()))
                if before.size > self._largest:
                    return None
                data = file.read(before.size + 1)
                stamp = Stamp.of(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise
        except (OSError, PathRefused):
            return None
        blob = content_id(data)
        if not self._contents.keep(blob, data):
            return _file(stamp, stamp.unkept_content, settled=True)
        whole = stamp == before and len(data) == stamp.size
        return _file(stamp._replace(size=len(data)), blob, whole and stamp.settled)

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """The stamp of everything that lies directly in a folder; none when it is not there."""
        found: dict[str, Stamp] = {}
        with contextlib.suppress(OSError):
            handle = self.open_folder(folder)
            try:
                with os.scandir(handle) as entries:
                    for entry in entries:
                        found[f"{folder}/{entry.name}"] = Stamp.of(entry.stat(follow_symlinks=False))
            finally:
                os.close(handle)
        return found

    def open_folder(self, path: str) -> int:
        """For listing; the caller closes it."""
        if not path:
            return os.open(".", READ_FOLDER, dir_fd=self.root)
        with self._place(path) as (folder, name):
            return os.open(name, READ_FOLDER, dir_fd=folder)

    def put(self, path: str, fact: Fact, now: Seen | None) -> None:
        """A file or link in place of what is there `now`: whole or not at all, with the fact's mode and owner."""
        data = self._contents.get(fact.blob) if fact.blob else b""
        if data is None:
            raise OSError(0, "the content is gone", path)
        with self._place(path) as (folder, name):
            try:
                if fact.kind == "link":
                    os.symlink(fact.content, self._temporary, dir_fd=folder)
                else:
                    with os.fdopen(os.open(self._temporary, NEW, 0o600, dir_fd=folder), "wb") as file:
                        file.write(data)
                _dress(folder, self._temporary, fact)
                self._refuse_if_touched(folder, name, path, now)
                os.rename(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary, dir_fd=folder)
                raise

    def make_folder(self, path: str) -> None:
        """Open to its owner only, until `dress` gives it its mode: what is put into it must be possible to put."""
        with self._place(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)

    def dress(self, path: str, fact: Fact) -> None:
        """Give a file or folder the fact's mode and owner; its content stays."""
        with self._place(path) as (folder, name):
            _dress(folder, name, fact)

    def remove(self, path: str, now: Seen) -> None:
        """A file or link that is still what was looked at."""
        with self._place(path) as (folder, name):
            self._refuse_if_touched(folder, name, path, now)
            os.unlink(name, dir_fd=folder)

    def remove_folder(self, path: str) -> bool:
        """Only an empty one; says whether it is gone."""
        with self._place(path) as (folder, name):
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as problem:
                if problem.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def clean_up(self, token: str, paths: Iterable[str]) -> None:
        """Remove what a process that died while it put these paths back may have left beside them."""
        for folder in {path.rpartition("/")[0] for path in paths}:
            place = self._place(f"{folder}/{temporary_name(token)}".lstrip("/"))
            with contextlib.suppress(OSError), place as (handle, name):
                os.unlink(name, dir_fd=handle)

    @contextmanager
    def _place(self, path: str) -> Generator[tuple[int, str]]:
        *parents, name = path.split("/")
        with contextlib.closing(Trail(self.root)) as trail:
            for parent in parents:
                trail.enter(parent)
            yield trail.folder, name

    def _refuse_if_touched(self, folder: int, name: str, path: str, now: Seen | None) -> None:
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            facts = None
        if facts is None or now is None:
            same = facts is now
        else:
            # The time of the last change also moves when another name of the same file is removed.
            same = Stamp.of(facts) == now.stamp or self.see(folder, name, facts).fact == now.fact
        if not same:
            raise changed(path)


def temporary_name(token: str) -> str:
    """One for each process, so that what a dead one left behind is known."""
    return f".duckflow-{token[:12]}.tmp"


def _file(stamp: Stamp, content: str, settled: bool) -> Seen:
    fact = Fact("file", stamp.mode & 0o7777, stamp.owner, stamp.group, stamp.size, content)
    return Seen(fact, stamp, settled)


def _dress(folder: int, name: str, fact: Fact) -> None:
    """Also what its owner may not read, and never what a link points to."""
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if (facts.st_uid, facts.st_gid) != (fact.owner, fact.group):
        with contextlib.suppress(PermissionError):
            os.chown(name, fact.owner, fact.group, dir_fd=folder, follow_symlinks=False)
    if fact.kind == "link":
        return
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, fact.mode, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(fact.mode)
    finally:
        os.close(handle)


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
        """How many ignored files are new, gone or different, by the ignored file or folder they are in; no caches."""
        found: dict[str, int] = {}
        paths = (before.watched | self.watched).keys() - before.covered.keys()
        for path in (path for path in paths if not CACHE.search(path)):
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
        self._in_git = False
        self._of_git = 0

    def walk(self, start: str, work: Path | None = None) -> Survey:
        """All beneath a folder; of the work folder without what git ignores and git's packs."""
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
            elif not place:
                self._in_git = True
                self._folder(handle, prefix + name, facts, None, place)
                self._in_git = False

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
            if OWN_TEMPORARY.fullmatch(name) or (self._in_git and PACK.search(path)):
                return
            try:
                known = self._tree.see(handle, name, facts)
            except FileNotFoundError:
                return
        self._of_git += self._in_git
        if (self._of_git if self._in_git else len(self._survey.covered) - self._of_git) >= self._settings.files:
            raise TooManyFiles
        self._survey.covered[path] = known

    def _folder(self, handle: int, path: str, facts: Facts, rules: RulesFile | None, place: str) -> None:
        name, known = path.rpartition("/")[2], self._known.get(path)
        if place or self._ignores(path, rules, is_folder=True):
            place = place or path
            self._survey.places.add(place)
        else:
            found = self._tree.see(handle, name, facts)
            if self._in_git and FAN_OUT.search(path):
                self._objects(handle, path, found)
                return
            self._survey.covered[path] = known if known and known.fact == found.fact else found
            if self._in_git and APART.search(path):
                self._survey.blind[path] = path
                return
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

    def _objects(self, handle: int, path: str, found: Seen) -> None:
        """Objects never change, so one that is known is not looked at again; where none came or went since the folder
        was listed, the folder is not listed again."""
        known = self._known.get(path)
        if known and known.stamp == found.stamp and known.settled:
            self._survey.covered[path] = known
            objects = self._known_objects.get(path, {})
            self._survey.covered |= objects
            self._of_git += len(objects)
            return
        self._survey.covered[path] = found._replace(settled=found.stamp.settled)
        inner = os.open(path.rpartition("/")[2], READ_FOLDER, dir_fd=handle)
        try:
            for name in os.listdir(inner):
                if seen := self._known.get(full := f"{path}/{name}"):
                    self._of_git += 1
                    self._survey.covered[full] = seen
                elif OBJECT.search(full):
                    with contextlib.suppress(FileNotFoundError):
                        self._file(inner, full, os.stat(name, dir_fd=inner, follow_symlinks=False), None, "")
        finally:
            os.close(inner)

    @cached_property
    def _known_objects(self) -> dict[str, dict[str, Seen]]:
        """The known objects by their folder."""
        found: dict[str, dict[str, Seen]] = {}
        for path, seen in self._known.items():
            if "objects/" in path and OBJECT.search(path):
                found.setdefault(path.rpartition("/")[0], {})[path] = seen
        return found

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

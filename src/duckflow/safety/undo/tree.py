"""The work folder as undo reaches it: only through the open handle of that folder, and never through a link."""

import contextlib
import errno
import os
import re
import weakref
from collections.abc import Container, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.files import NEW, changed, kind_of, open_regular
from duckflow.safety.repository import same_staged
from duckflow.safety.undo.facts import Change, Fact, Seen, Stamp
from duckflow.safety.undo.ledger import Contents, content_id
from duckflow.safety.undo.settings import MB
from duckflow.safety.workspace import Trail

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
GIT = ".git"
FAN_OUT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}$")
"""Matches one of the 256 folders in which git keeps the objects that are not packed."""
OBJECT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})$")
PACK = re.compile(r"(?:^|/)\.git/(?:.*/)?objects/pack/(?:pack-[0-9a-f]{40,64}\.|tmp_|\.tmp-)[^/]*$")
"""Matches git's packs. They may be huge and never change."""
APART = re.compile(r"(?:^|/)\.git/(?:lfs|annex)$")
"""Matches folders in which an extension of git, such as LFS, keeps the contents of large files."""


def is_guarded_pack(path: str) -> bool:
    """Says whether this is a pack that the sandbox keeps commands from touching, so that undo need not copy it: one of
    a repository in the work folder or one level down."""
    return PACK.search(path) is not None and path.split("/").index(GIT) <= 1


def adds_only(path: str) -> bool:
    """Says whether a new file of this name only adds something to the repository. Later commits of the user may need
    the file, so undo leaves it."""
    return OBJECT.search(path) is not None or FAN_OUT.search(path) is not None


def git_folder(path: str) -> str:
    """Returns the `.git` that a path lies in or is; an empty text for any other path."""
    names = path.split("/")
    return "/".join(names[: names.index(GIT) + 1]) if GIT in names else ""


def same_index(contents: Contents, path: str, old: Fact, new: Fact) -> bool:
    """Says whether the path is git's index, and stages the same in both states."""
    if not (path.endswith("/index") and git_folder(path) and old.blob and new.blob):
        return False
    old_bytes, new_bytes = (contents.get(fact.blob) for fact in (old, new))
    return old_bytes is not None and new_bytes is not None and same_staged(old_bytes, new_bytes)


def left_out_of(changes: Iterable[Change], largest_mb: int) -> Iterator[tuple[str, str]]:
    """Yields the files that cannot be brought back, each after the reason: `large`, `special` (pipes and the like), or
    `unkept` (not readable, or beyond the limit of copied data)."""
    for change in changes:
        for fact in [fact for fact in (change.before or change.after,) if fact and not fact.kept]:
            size_reason = "large" if fact.size > largest_mb * MB else "unkept"
            yield "special" if fact.kind == "special" else size_reason, change.path


class Tree:
    """Looks at single paths, and puts files back. Paths are relative, without `.`, `..` and links."""

    def __init__(self, root: Path, contents: Contents, largest: int, token: str) -> None:
        self.root = os.open(root, READ_FOLDER)
        self.close = weakref.finalize(self, os.close, self.root)
        self._contents = contents
        self._largest = largest
        self._temporary = temporary_name(token)

    def look(self, path: str) -> Seen | None:
        """Returns the state of a path, and keeps its content; None when the path is missing, or leads through a
        link."""
        try:
            with self._place(path) as (folder, name):
                return self.see(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError as problem:
            if problem.errno not in NOT_THERE:
                raise
        return None

    def see(self, folder: int, name: str, facts: os.stat_result) -> Seen:
        """Returns the state of the entry with this name. Raises FileNotFoundError when the entry is gone meanwhile."""
        stamp, kind = Stamp.of(facts), kind_of(facts.st_mode)
        if kind == "file":
            return self._read(folder, name) or _file(stamp, stamp.unkept_content, settled=True)
        if kind == "link":
            fact = Fact(kind, 0, stamp.owner, stamp.group, 0, os.readlink(name, dir_fd=folder))
            return Seen(fact, stamp, stamp.settled)
        return Seen(Fact(kind, facts.st_mode & 0o7777, stamp.owner, stamp.group, 0, ""), stamp, settled=True)

    def _read(self, folder: int, name: str) -> Seen | None:
        """Reads a plain file and keeps its content; returns None when the file is too large, or may not be read."""
        try:
            with os.fdopen(open_regular(folder, name), "rb", buffering=0) as file:
                stamp_before = Stamp.of(os.fstat(file.fileno()))
                if stamp_before.size > self._largest:
                    return None
                file_bytes = file.read(stamp_before.size + 1)
                stamp = Stamp.of(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise
        except (OSError, PathRefused):
            return None
        blob = content_id(file_bytes)
        if not self._contents.keep(blob, file_bytes):
            return _file(stamp, stamp.unkept_content, settled=True)
        is_unchanged = stamp == stamp_before and len(file_bytes) == stamp.size
        return _file(stamp._replace(size=len(file_bytes)), blob, is_unchanged and stamp.settled)

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """Returns the stamp of everything that lies directly in a folder; empty when the folder does not exist."""
        stamp_by_path: dict[str, Stamp] = {}
        with contextlib.suppress(OSError):
            handle = self.open_folder(folder)
            try:
                with os.scandir(handle) as entries:
                    for entry in entries:
                        stamp_by_path[f"{folder}/{entry.name}"] = Stamp.of(entry.stat(follow_symlinks=False))
            finally:
                os.close(handle)
        return stamp_by_path

    def open_folder(self, path: str) -> int:
        """Opens a folder for listing; the caller closes it."""
        if not path:
            return os.open(".", READ_FOLDER, dir_fd=self.root)
        with self._place(path) as (folder, name):
            return os.open(name, READ_FOLDER, dir_fd=folder)

    def put(self, path: str, fact: Fact, now: Seen | None) -> None:
        """Puts a file or link in place of what is there `now`: whole or not at all, with the fact's mode and owner."""
        content = self._contents.get(fact.blob) if fact.blob else b""
        if content is None:
            raise OSError(0, "the content is gone", path)
        with self._place(path) as (folder, name):
            try:
                if fact.kind == "link":
                    os.symlink(fact.content, self._temporary, dir_fd=folder)
                else:
                    with os.fdopen(os.open(self._temporary, NEW, 0o600, dir_fd=folder), "wb") as file:
                        file.write(content)
                _dress(folder, self._temporary, fact)
                self._refuse_if_touched(folder, name, path, now)
                os.rename(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary, dir_fd=folder)
                raise

    def make_own(self, path: str, seen: Seen) -> Seen | None:
        """Puts a copy in the place of a file that has other names (hard links), with the same time. Returns the new
        state."""
        self.put(path, seen.fact, seen)
        with self._place(path) as (folder, name):
            os.utime(name, ns=(seen.stamp.modified, seen.stamp.modified), dir_fd=folder, follow_symlinks=False)
        return self.look(path)

    def make_folder(self, path: str) -> None:
        """Makes a folder that only its owner can open, so that files can be put into it. `dress` gives it its mode
        later."""
        with self._place(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)

    def dress(self, path: str, fact: Fact) -> None:
        """Gives a file or folder the fact's mode and owner; its content stays."""
        with self._place(path) as (folder, name):
            _dress(folder, name, fact)

    def remove(self, path: str, now: Seen) -> None:
        """Removes a file or link that is still the same as when it was looked at."""
        with self._place(path) as (folder, name):
            self._refuse_if_touched(folder, name, path, now)
            os.unlink(name, dir_fd=folder)

    def remove_folder(self, path: str) -> bool:
        """Removes an empty folder; says whether it is gone."""
        with self._place(path) as (folder, name):
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as problem:
                if problem.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def rename(self, path: str, name: str) -> None:
        """Gives a file or folder another name in its folder."""
        with self._place(path) as (folder, old_name):
            os.rename(old_name, name, src_dir_fd=folder, dst_dir_fd=folder)

    def clean_up(self, token: str, paths: Iterable[str]) -> None:
        """Removes temporary files beside these paths. A process that died while it put the paths back may have left
        such files."""
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
            file_stat = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            file_stat = None
        if file_stat is None or now is None:
            is_untouched = file_stat is now
        else:
            # The time of the last change also moves when another name of the same file is removed.
            is_untouched = Stamp.of(file_stat) == now.stamp or self.see(folder, name, file_stat).fact == now.fact
        if not is_untouched:
            raise changed(path)


class Cleared:
    """The work folder as it would be without some paths and what is beneath them."""

    def __init__(self, tree: Tree, cleared: Container[str] = ()) -> None:
        self._tree = tree
        self._cleared = cleared

    def look(self, path: str) -> Seen | None:
        return None if self._is_cleared(path) else self._tree.look(path)

    def stamps(self, folder: str) -> dict[str, Stamp]:
        stamps = self._tree.stamps(folder).items()
        return {path: stamp for path, stamp in stamps if not self._is_cleared(path)}

    def _is_cleared(self, path: str) -> bool:
        return any(parent in self._cleared for parent in upwards(path))


def temporary_name(token: str) -> str:
    """Returns the name of this process's temporary files, so that the leftovers of a dead process are recognised."""
    return f".duckflow-{token[:12]}.tmp"


def _file(stamp: Stamp, content: str, settled: bool) -> Seen:
    fact = Fact("file", stamp.mode & 0o7777, stamp.owner, stamp.group, stamp.size, content)
    return Seen(fact, stamp, settled)


def _dress(folder: int, name: str, fact: Fact) -> None:
    """Sets mode and owner, even of a file that its owner may not read, and never of a link's target."""
    file_stat = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if (file_stat.st_uid, file_stat.st_gid) != (fact.owner, fact.group):
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


def upwards(path: str) -> list[str]:
    """Returns the path itself, and every folder above it."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 0, -1)]

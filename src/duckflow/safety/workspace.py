"""The work folder: everything that Duckflow does with files goes through here and stays beneath it."""

import contextlib
import errno
import os
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.files import FolderEntry, digest, entry, open_regular, rename_new, write_whole
from duckflow.safety.path_names import (
    MAX_DEPTH,
    beneath,
    names_of,
    outside,
    path_of_handle,
    refuse_private,
    shown,
    shown_size,
    split,
)

MAX_LINKS = 40
FOLDER: int = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


def link_text(folder: int, name: str) -> str | None:
    """Returns the target of a symbolic link, or None when the name is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


class Trail:
    """The open folders from the root down to where the walk is. `..` goes back along this list and is never passed to
    the file system."""

    def __init__(self, root: int) -> None:
        self.names: list[str] = []
        self._root = root
        self._folders: list[int] = []

    @property
    def folder(self) -> int:
        return self._folders[-1] if self._folders else self._root

    def enter(self, name: str) -> None:
        self._folders.append(os.open(name, FOLDER, dir_fd=self.folder))
        self.names.append(name)

    def up(self) -> None:
        if not self._folders:
            raise outside("..")
        os.close(self._folders.pop())
        self.names.pop()

    def to_root(self) -> None:
        while self._folders:
            self.up()

    def take(self) -> int:
        """Returns the folder's handle; now the caller must close it."""
        return self._folders.pop() if self._folders else os.dup(self._root)

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())


class Walk:
    """Follows a path down from the root, name by name, and resolves every link itself."""

    def __init__(self, root: int) -> None:
        self._root = root

    def open_folder(self, names: Sequence[str], create: bool = False) -> int:
        with contextlib.closing(Trail(self._root)) as trail:
            problem = self._descend(trail, deque(names), create)
            if problem:
                raise problem
            return trail.take()

    def real_names(self, names: Sequence[str]) -> list[str]:
        """Returns the names of the same place without links and `..`; names that do not exist (yet) stay as they
        are."""
        pending_names = deque(names)
        with contextlib.closing(Trail(self._root)) as trail:
            self._descend(trail, pending_names, create=False)
            resolved_names = list(trail.names)
        for name in pending_names:
            if name != "..":
                resolved_names.append(name)
            elif resolved_names:
                resolved_names.pop()
            else:
                raise outside("..")
        return resolved_names

    def _descend(self, trail: Trail, pending: deque[str], create: bool) -> OSError | None:
        """Follows the names as long as they are folders. The names after that stay in `pending`, and the reason for
        stopping is returned."""
        link_count = 0
        while pending:
            name = pending.popleft()
            if name == "..":
                trail.up()
                continue
            try:
                self._enter(trail, name, create)
            except OSError as problem:
                link_target = link_text(trail.folder, name) if problem.errno in NOT_A_FOLDER else None
                if link_target is None:
                    pending.appendleft(name)
                    return problem
                link_count += 1
                if link_count > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
                pending.extendleft(reversed(self._target(trail, link_target)))
        return None

    def _enter(self, trail: Trail, name: str, create: bool) -> None:
        try:
            trail.enter(name)
        except FileNotFoundError:
            if not create:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=trail.folder)
            trail.enter(name)

    def _target(self, trail: Trail, target: str) -> list[str]:
        if not target.startswith("/"):
            return split(target)
        names = beneath(target, os.fstat(self._root))
        trail.to_root()
        return names


READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
HERE = "."


class Place(NamedTuple):
    """A name in an open folder. Everything done with it is done relative to the folder's handle."""

    folder: int
    name: str


class Workspace:
    """Opens, writes, moves and deletes files beneath one folder; a path that leads out is refused. Missing files, full
    disks and the like raise OSError; a refusal raises PathRefused. `private` lists places beneath the folder that are
    refused too, and `kept` those that may only be read."""

    added: tuple[Path, ...] = ()  # Further folders that the user has added, in a workspace that knows them.

    def __init__(self, folder: Path, private: Sequence[Path] = (), kept: Sequence[Path] = ()) -> None:
        self.root = folder.resolve()
        self.private, self._kept = tuple(private), tuple(kept)
        self._root = os.open(self.root, READ_FOLDER)
        self._let_go = weakref.finalize(self, os.close, self._root)
        self._walk = Walk(self._root)

    def close(self) -> None:
        """Closes the folder. Later calls are refused, even when another folder has got its handle's number by then."""
        self._let_go()
        self._root, self._walk = -1, Walk(-1)

    def root_of(self, path: str) -> Path:
        """Returns the folder that this path lies in: the work folder or one that was added."""
        return self.root

    def relative(self, path: str, follow: bool = True) -> str:
        """Returns the standard spelling of a path: relative, without links and `..`. With `follow` the last name is
        resolved too."""
        names = self._names(path)
        unfollowed_names = [] if follow or not names or names[-1] == ".." else [names.pop()]
        with _naming(path):
            real_path = "/".join(self._walk.real_names(names) + unfollowed_names)
        # A name that starts with `~` must not read as the home folder when it is used again.
        return f"./{real_path}" if real_path.startswith("~") else real_path or HERE

    def open(self, path: str, write: bool = False) -> BinaryIO:
        """Opens a plain file for reading. With `write`, also opens it for writing, and makes it if it is missing."""
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        with self._place(path, changes=write) as place:
            return os.fdopen(open_regular(place.folder, place.name, flags), "r+b" if write else "rb")

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Returns the whole file; one larger than `limit` is refused before it is read."""
        with self.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            file_bytes = file.read(limit + 1) if size <= limit else b""
        if size > limit or len(file_bytes) > limit:
            name = shown(path)
            raise ToolError(
                f"{name} is too large ({shown_size(size)}; at most {shown_size(limit)} are read). "
                "Search it for the part you need.",
                "file.too_large",
                path=name,
                size=shown_size(size),
                limit=shown_size(limit),
            )
        return file_bytes

    def write_atomic(self, path: str, data: bytes, expect: str | None = None) -> str:
        """Replaces or makes the file and its folders, and returns the new digest. The file must still have the digest
        `expect`."""
        with self._place(path, create=True, changes=True) as place:
            write_whole(place.folder, place.name, data, expect)
        return digest(data)

    def delete(self, path: str, recursive: bool = False) -> None:
        """Deletes a file, a link (not its target), an empty folder, or with `recursive` a folder and everything in
        it."""
        with self._place(path, follow=False, changes=True) as place:
            self._not_root(place)
            if self._entry(place, path, follow=False).kind == "folder":
                _remove_folder(place, recursive)
            else:
                os.unlink(place.name, dir_fd=place.folder)

    def move(self, source: str, target: str) -> None:
        """Renames a file, link or folder; never over something that exists."""
        with self._place(source, follow=False, changes=True) as source_place:
            self._not_root(source_place)
            self._entry(source_place, source, follow=False)
            with self._place(target, follow=False, create=True, changes=True) as target_place:
                self._not_root(target_place)
                rename_new(source_place.folder, source_place.name, target_place.folder, target_place.name)

    def make_folder(self, path: str) -> None:
        """Makes a folder and all folders above it; a folder that exists already is fine."""
        self._refuse_private(path)
        with _naming(path):
            os.close(self._walk.open_folder(self._names(path), create=True))

    def stat(self, path: str, follow: bool = True) -> FolderEntry:
        with self._place(path, follow=follow) as place:
            return self._entry(place, path, follow)

    def listdir(self, path: str = HERE) -> list[FolderEntry]:
        """Returns the entries of a folder, sorted by name; links are named, not followed."""
        prefix = self.relative(path)
        with self._place(path) as place:
            handle = os.open(place.name, READ_FOLDER, dir_fd=place.folder)
        try:
            with os.scandir(handle) as folder_scan:
                return sorted(_entries(folder_scan, "" if prefix == HERE else prefix + "/"), key=lambda item: item.path)
        finally:
            os.close(handle)

    def walk(
        self, path: str = HERE, enter: Callable[[FolderEntry], bool] = lambda folder: True
    ) -> Iterator[FolderEntry]:
        """Yields everything beneath a folder, each folder before its entries. A folder that `enter` refuses is yielded
        but not entered."""
        pending_entries = self.listdir(path)[::-1]
        while pending_entries:
            folder_entry = pending_entries.pop()
            yield folder_entry
            if folder_entry.kind != "folder" or folder_entry.path.count("/") >= MAX_DEPTH or not enter(folder_entry):
                continue
            try:
                pending_entries.extend(reversed(self.listdir(f"./{folder_entry.path}")))
            except (OSError, PathRefused):
                # The folder was removed meanwhile, or may not be read. Other folders can still be listed.
                continue

    def _names(self, path: str) -> list[str]:
        root_stat = os.fstat(self._root)
        if root_stat.st_nlink == 0:
            folder_name = shown(str(self.root))
            raise PathRefused(
                f"The work folder {folder_name} was removed. Tell the user.", "path.no_folder", path=folder_name
            )
        with _naming(path):
            return names_of(path, root_stat)

    @contextmanager
    def _place(self, path: str, follow: bool = True, create: bool = False, changes: bool = False) -> Generator[Place]:
        refused_places = (*self.private, *self._kept) if changes else self.private
        if refused_places:
            refuse_private(refused_places, self.root / self.relative(path, follow), path, changes)
        with _naming(path):
            place = self._find(self._names(path), follow, create)
        try:
            # A link may have been put in place since the check above; what is open now stays what it is.
            if refused_places and (real_folder := path_of_handle(place.folder)):
                refuse_private(refused_places, real_folder / place.name, path)
            yield place
        finally:
            os.close(place.folder)

    def _refuse_private(self, path: str, follow: bool = True, whole: bool = False) -> None:
        if self.private:
            refuse_private(self.private, self.root / self.relative(path, follow), path, whole)

    def _find(self, names: list[str], follow: bool, create: bool) -> Place:
        """Opens the place that the names lead to. If the last name is a link, its text is followed, so that the thing
        that is opened in the end is never a link."""
        for _ in range(MAX_LINKS):
            if not names or names[-1] == "..":
                return Place(self._walk.open_folder(names, create), HERE)
            folder = self._walk.open_folder(names[:-1], create)
            try:
                link_target = link_text(folder, names[-1]) if follow else None
            except BaseException:
                os.close(folder)
                raise
            if link_target is None:
                return Place(folder, names[-1])
            os.close(folder)
            is_absolute = link_target.startswith("/")
            names = beneath(link_target, os.fstat(self._root)) if is_absolute else [*names[:-1], *split(link_target)]
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), names[-1])

    def _entry(self, place: Place, path: str, follow: bool) -> FolderEntry:
        file_stat = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        return entry(self.relative(path, follow), file_stat)

    def _not_root(self, place: Place) -> None:
        if place.name == HERE:
            raise PathRefused("Name a file or folder inside the work folder, not `.` or `..`.", "path.whole_folder")


@contextmanager
def _naming(path: str) -> Generator[None]:
    """Makes a refused path appear in the error as the caller spelled it."""
    try:
        yield
    except PathRefused as refused:
        if refused.key != "path.outside":
            raise
        raise outside(path) from None


def _remove_folder(place: Place, recursive: bool) -> None:
    if not recursive:
        os.rmdir(place.name, dir_fd=place.folder)
        return
    import shutil

    try:
        shutil.rmtree(place.name, dir_fd=place.folder)
    except RecursionError:
        raise OSError(errno.ENAMETOOLONG, "folders nested too deep", place.name) from None


def _entries(scanned: Iterator["os.DirEntry[str]"], prefix: str) -> Iterator[FolderEntry]:
    for dir_entry in scanned:
        try:
            yield entry(prefix + dir_entry.name, dir_entry.stat(follow_symlinks=False))
        except OSError:
            # The entry was removed while the folder was listed.
            continue

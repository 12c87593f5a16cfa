"""Reads plain files only, writes a file either completely or not at all, and holds locks."""

import contextlib
import errno
import hashlib
import os
import stat
import weakref
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.path_names import path_of_handle, shown

ABSENT = "absent"
"""Stands in place of a digest where there is no file."""
ALWAYS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FolderInstead(FileNotFoundError, IsADirectoryError):
    """Raised where a file was expected and a folder has that name."""


def open_regular(folder: int, name: str, flags: int = os.O_RDONLY) -> int:
    """Opens a plain file and returns its handle. It checks the kind before opening, because opening a device can
    already do something."""
    try:
        refuse_special(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
    except FileNotFoundError as missing:
        if isinstance(missing, FolderInstead) or not flags & os.O_CREAT:
            raise
    handle = os.open(name, flags | ALWAYS, 0o666, dir_fd=folder)
    try:
        refuse_special(os.fstat(handle), name)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_plain(path: Path, limit: int, follow: bool = True, cut: bool = False, within: Path | None = None) -> bytes:
    """Returns the content of a file, or raises an OSError where it is not a plain file, or too large. Where commands
    can write, files are read only by this function or by the workspace: such a file may be a pipe that nobody writes
    to, or have no end. With `follow` a link is followed. With `cut` only the beginning of a large file is read. The
    opened file must lie in the folder `within`: a command that still runs may swap a folder for a link meanwhile."""
    handle = os.open(path, os.O_RDONLY | (ALWAYS & ~os.O_NOFOLLOW if follow else ALWAYS))
    try:
        file_stat = os.fstat(handle)
        if not stat.S_ISREG(file_stat.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        real_path = path_of_handle(handle) if within else None
        if within and real_path and not real_path.is_relative_to(os.path.realpath(within)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if file_stat.st_size > limit and not cut:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(handle)


def refuse_special(facts: os.stat_result, name: str) -> None:
    """Refuses devices, pipes, sockets and folders. Links are not refused here, as opening does not follow them."""
    if stat.S_ISDIR(facts.st_mode):
        raise FolderInstead(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        raise PathRefused(
            f"{shown(name)} is a device, pipe or socket, not a plain file. Use another path.",
            "path.not_file",
            path=shown(name),
        )


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_at(folder: int, name: str) -> str:
    """Returns the digest of a file as it is now, read piece by piece; `absent` when there is none."""
    try:
        handle = open_regular(folder, name)
    except FileNotFoundError as problem:
        if isinstance(problem, IsADirectoryError):
            raise
        return ABSENT
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
RENAME_NOREPLACE = 1


def write_whole(folder: int, name: str, data: bytes, expect: str | None) -> None:
    """Puts `data` in place of the file if it still has the digest `expect` (`absent`: if there is none yet). The name
    must not be a link. An old file's mode and owner stay."""
    old_stat = _facts(folder, name)
    if old_stat:
        refuse_special(old_stat, name)
        if stat.S_ISLNK(old_stat.st_mode):
            raise changed(name)
        # Renaming over it would work, but a file marked read-only is meant to stay.
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    new_name = f".duckflow-{os.urandom(6).hex()}.tmp"
    handle = os.open(new_name, NEW, 0o600 if old_stat else 0o666, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if old_stat:
                _keep_owner_and_mode(file.fileno(), old_stat)
            os.fsync(file.fileno())
        _put_in_place(folder, new_name, name, expect)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new_name, dir_fd=folder)
        raise
    _sync(folder)


def rename_new(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """Renames a file or folder, but never over something that exists."""
    error_number = _rename_by_kernel(source_folder, source, target_folder, target)
    if error_number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        if _facts(target_folder, target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
    elif error_number:
        raise OSError(error_number, os.strerror(error_number), target)
    _sync(target_folder)


def changed(name: str) -> ToolError:
    return ToolError(
        f"{shown(name)} was changed by someone else meanwhile, so nothing was done. Read it again, then decide.",
        "file.changed",
        path=shown(name),
    )


def _put_in_place(folder: int, temporary: str, name: str, expect: str | None) -> None:
    if expect == ABSENT:
        # This reserves the new name, and fails when another process was faster.
        try:
            os.close(os.open(name, NEW, 0o600, dir_fd=folder))
        except FileExistsError:
            raise changed(name) from None
    elif expect is not None and digest_at(folder, name) != expect:
        raise changed(name)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        if expect == ABSENT:
            os.unlink(name, dir_fd=folder)
        raise


def _facts(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _keep_owner_and_mode(handle: int, old: os.stat_result) -> None:
    new_stat = os.fstat(handle)
    if (new_stat.st_uid, new_stat.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, old.st_mode & 0o7777)


def _sync(folder: int) -> None:
    """Makes sure that a new name in a folder survives a power cut. Some file systems cannot do that; then only the
    content of the file is safe."""
    with contextlib.suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _rename_by_kernel(source_folder: int, source: str, target_folder: int, target: str) -> int:
    """Renames without replacing anything. Returns 0 or the error number; ENOSYS if the C library has no renameat2."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return errno.ENOSYS
    has_failed = libc.renameat2(
        source_folder, os.fsencode(source), target_folder, os.fsencode(target), ctypes.c_uint(RENAME_NOREPLACE)
    )
    return ctypes.get_errno() if has_failed else 0


Kind = Literal["file", "folder", "link", "special"]


class FolderEntry(NamedTuple):
    """One entry of a folder, with its path relative to the work folder."""

    path: str
    kind: Kind
    size: int
    modified: float
    links: int = 1
    """The number of hard links to the file."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def entry(path: str, facts: os.stat_result) -> FolderEntry:
    return FolderEntry(path, kind_of(facts.st_mode), facts.st_size, facts.st_mtime, facts.st_nlink)


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"


def hold_lock(path: Path, create: int = 0) -> int:
    """Takes a lock and holds it while the process lives. It raises an OSError when another process holds it, or when
    the lock file does not exist."""
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | create, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


class Presence:
    """Shows other processes that this one is alive, by a lock that the system releases when the process dies."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        for lock_file in folder.iterdir():
            self.alive(lock_file.name)
        self.token = os.urandom(8).hex()
        self.close = weakref.finalize(self, os.close, hold_lock(folder / self.token, os.O_CREAT))

    def alive(self, token: str) -> bool:
        """Says whether the process with this token still runs; the lock file of a dead one is removed."""
        try:
            os.close(hold_lock(self._folder / token))
        except FileNotFoundError:
            return False
        except OSError:
            return True
        (self._folder / token).unlink(missing_ok=True)
        return False


def folders_in(path: Path) -> list[Path]:
    """Returns the folders directly in a folder, without links. The list is empty where the folder cannot be read."""
    try:
        with os.scandir(path) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []

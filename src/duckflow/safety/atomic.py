"""Writing and renaming so that a file is either the old one or the new one, and nothing is overwritten unseen."""

import contextlib
import errno
import os
import stat

from duckflow.errors import ToolError
from duckflow.safety.regular import ABSENT, digest_at, refuse_special
from duckflow.safety.shown import shown

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
RENAME_NOREPLACE = 1


def write_whole(folder: int, name: str, data: bytes, expect: str | None) -> None:
    """Put `data` in place of the file if it still has the digest `expect` (`absent`: if there is none yet). The name
    must not be a link. Mode and owner of an old file are kept."""
    old = _facts(folder, name)
    if old:
        refuse_special(old, name)
        if stat.S_ISLNK(old.st_mode):
            raise changed(name)
        # Renaming over it would work, but a file marked read-only is meant to stay.
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    temporary = f".duckflow-{os.urandom(6).hex()}.tmp"
    handle = os.open(temporary, NEW, 0o600 if old else 0o666, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if old:
                _keep_owner_and_mode(file.fileno(), old)
            os.fsync(file.fileno())
        _put_in_place(folder, temporary, name, expect)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    _sync(folder)


def rename_new(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """Rename, but never over something that exists."""
    done = _rename_by_kernel(source_folder, source, target_folder, target)
    if done in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        if _facts(target_folder, target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
    elif done:
        raise OSError(done, os.strerror(done), target)
    _sync(target_folder)


def changed(name: str) -> ToolError:
    return ToolError(
        f"{shown(name)} was changed by someone else meanwhile, so nothing was done. Read it again, then decide.",
        "file.changed",
        path=shown(name),
    )


def _put_in_place(folder: int, temporary: str, name: str, expect: str | None) -> None:
    if expect == ABSENT:
        # Take the new name for ourselves; fails when somebody was faster.
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
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, old.st_mode & 0o7777)


def _sync(folder: int) -> None:
    """Make the new name last; some file systems cannot, and the file itself is safe already."""
    with contextlib.suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _rename_by_kernel(source_folder: int, source: str, target_folder: int, target: str) -> int:
    """0 or the error number; ENOSYS where the C library has no renameat2."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return errno.ENOSYS
    failed = libc.renameat2(
        source_folder, os.fsencode(source), target_folder, os.fsencode(target), ctypes.c_uint(RENAME_NOREPLACE)
    )
    return ctypes.get_errno() if failed else 0

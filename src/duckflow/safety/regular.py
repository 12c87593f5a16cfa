"""Opening plain files: no device, pipe or socket, and never through a link; and how one is recognised as unchanged."""

import errno
import hashlib
import os
import stat

from duckflow.errors import PathRefused
from duckflow.safety.shown import shown

ABSENT = "absent"
"""Stands in place of a digest where there is no file."""
ALWAYS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FolderInstead(FileNotFoundError, IsADirectoryError):
    """No file is there: a folder has that name."""


def open_regular(folder: int, name: str, flags: int = os.O_RDONLY) -> int:
    """A handle of a plain file. Looked at before opening, because opening a device can already do something."""
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


def refuse_special(facts: os.stat_result, name: str) -> None:
    """Links pass here: opening refuses to follow them."""
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
    """Of a file as it lies there now, read piece by piece; `absent` when there is none."""
    try:
        handle = open_regular(folder, name)
    except FileNotFoundError as problem:
        if isinstance(problem, IsADirectoryError):
            raise
        return ABSENT
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

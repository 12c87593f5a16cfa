"""Opening plain files: no device, pipe or socket, and never through a link."""

import errno
import os
import stat

from duckflow.errors import PathRefused
from duckflow.safety.shown import shown

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

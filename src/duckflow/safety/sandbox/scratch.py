"""The temporary files of the commands: theirs alone, kept from one command to the next, gone at the end."""

import contextlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from duckflow.safety.files import hold_lock

PREFIX = "duckflow-"
LOCK = "lock"


class Scratch:
    """A folder for temporary files, and an empty file and folder to put in the place of secrets."""

    def __init__(self) -> None:
        made = Path(tempfile.mkdtemp(prefix="new-")).resolve()
        self._lock = hold_lock(made / LOCK, os.O_CREAT)
        # Only now: under this name it could be swept away by others before it was locked.
        self.top = made.rename(made.with_name(PREFIX + made.name.removeprefix("new-")))
        self.folder = self.top / "tmp"
        self.folder.mkdir(mode=0o700)
        self.empty = self.top / "empty"
        self.empty.touch(mode=0o444)
        self.locked = self.top / "locked"
        self.locked.touch(mode=0o000)
        self.empty_folder = self.top / "empty-folder"
        self.empty_folder.mkdir(mode=0o555)
        # Not tempfile.TemporaryDirectory: to remove a stubborn folder it changes modes through links, and commands
        # can put links here.
        self.close = weakref.finalize(self, _remove, str(self.top), self._lock)


def sweep_scratch() -> int:
    """Remove what sessions that were killed have left; how many there were. The system lets go of a dead process's
    lock, so a folder whose lock can be had belongs to nobody."""
    swept = 0
    for top in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if top.is_symlink() or top.lstat().st_uid != os.getuid():
                continue
            lock = hold_lock(top / LOCK)
            shutil.rmtree(top, ignore_errors=True)
            os.close(lock)
            swept += 1
    return swept


def _remove(top: str, lock: int) -> None:
    shutil.rmtree(top, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)

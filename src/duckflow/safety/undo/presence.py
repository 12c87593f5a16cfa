"""Which Duckflow processes are alive: a lock that the system takes away when a process dies."""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path


class Presence:
    """Held as long as the object lives."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.token = os.urandom(8).hex()
        handle = os.open(folder / self.token, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        weakref.finalize(self, _leave, handle, folder / self.token)

    def alive(self, token: str) -> bool:
        """Whether the process that showed this token still runs."""
        try:
            handle = os.open(self._folder / token, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            (self._folder / token).unlink(missing_ok=True)
            return False
        finally:
            os.close(handle)


def _leave(handle: int, path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)

"""Who is alive: locks that the system takes away from a process when it dies."""

import os
import weakref
from pathlib import Path


def hold_lock(path: Path, create: int = 0) -> int:
    """Held while the process lives; an OSError when another one holds it, or when there is none."""
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | create, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


class Presence:
    """Shows that this process is alive, by a lock that the system takes away when it dies."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        for left in folder.iterdir():
            self.alive(left.name)
        self.token = os.urandom(8).hex()
        self.close = weakref.finalize(self, os.close, hold_lock(folder / self.token, os.O_CREAT))

    def alive(self, token: str) -> bool:
        """Whether the process that showed this token still runs; what a dead one left is removed."""
        try:
            os.close(hold_lock(self._folder / token))
        except FileNotFoundError:
            return False
        except OSError:
            return True
        (self._folder / token).unlink(missing_ok=True)
        return False

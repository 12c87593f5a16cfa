"""One process at a time writes a journal."""

import fcntl
import os
from pathlib import Path

from duckflow.errors import JournalInUse


class Lock:
    """Held until it is released or the process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise JournalInUse("journal.in_use") from None

    def release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

"""Messages on their way into the archive: a file that is quick to write to. All sessions of a project share it."""

import fcntl
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Row = tuple[int, str, str, str, str, float, str]
"""Length in bytes, message id, session, role, operation, time, text."""


class Inbox:
    """What was put in stays until it has been taken over whole; OSError when the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def put(self, row: Row) -> None:
        with self._locked() as file:
            os.write(file, json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def waiting(self) -> bool:
        try:
            return (os.fstat(self._file) if self._file >= 0 else self._path.stat()).st_size > 0
        except FileNotFoundError:
            return False

    @contextmanager
    def emptied(self) -> Generator[list[Row]]:
        """What is in it; gone when this is left without an error. Nobody puts anything in meanwhile."""
        with self._locked() as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
            yield list(_rows(data))
            os.ftruncate(file, 0)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @contextmanager
    def _locked(self) -> Generator[int]:
        if self._file < 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield self._file
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _rows(data: bytes) -> Iterator[Row]:
    """A line that was not written to its end is left out."""
    for line in data.split(b"\n"):
        with suppress(ValueError):
            size, message_id, session, role, operation, at, text = json.loads(line)
            yield size, message_id, session, role, operation, at, text

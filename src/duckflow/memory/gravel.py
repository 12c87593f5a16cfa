"""Gravel: the archive of messages that left the context. It takes them in and finds them again."""

import fcntl
import json
import logging
import os
import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.memory.archive_hit import WIDE, ArchiveHit, Reach, Row
from duckflow.state.message import Message
from duckflow.whole_file import make_private, private_folder
from duckflow.whole_text import without_keys

if TYPE_CHECKING:
    from duckflow.memory.archive import Archive

log = logging.getLogger(__name__)


class Inbox:
    """A file where messages wait until the archive has taken them all. Raises OSError when the file cannot be used."""

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
        """Yields the waiting rows, and removes them when the block ends without an error. Nobody can add any
        meanwhile."""
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
            private_folder(self._path.parent)
            make_private(self._path)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield self._file
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _rows(data: bytes) -> Iterator[Row]:
    """Reads the rows; a line that was not written to its end is left out."""
    for line in data.split(b"\n"):
        with suppress(ValueError):
            size, message_id, session, role, operation, timestamp, text = json.loads(line)
            yield size, message_id, session, role, operation, timestamp, text


INDEX_EVERY = 32
"""The number of messages that are indexed together. Each is on disk at once, and indexed at the latest before a
search."""


class Gravel:
    """The archive. It is only an aid: when its files cannot be used, the conversation goes on without it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inbox = Inbox(path.with_suffix(".inbox"))
        self._unwritten: list[Row] = []
        self._put = 0
        self._only_ours = True

    @property
    def is_new(self) -> bool:
        """Says whether it holds nothing but what this process has added."""
        return self._only_ours and not self._path.exists()

    def add(self, session: str, message: Message) -> None:
        text = without_keys(message.whole if message.whole.isascii() else _sound(message.whole))
        message_fields = (message.message_id, session, message.role, message.operation, message.at)
        row = (len(text.encode()), *message_fields, text)
        try:
            if not self._put:
                self._only_ours &= not self._inbox.waiting()
            self._inbox.put(row)
        except OSError as problem:
            log.warning("archive %s cannot be written: %s", self._path, problem)
            self._unwritten.append(row)
        self._put += 1
        if self._put >= INDEX_EVERY:
            self._settle()

    def catch_up(self, session: str, messages: Collection[Message]) -> set[str]:
        """Adds the messages of a session from before it had an archive, or while the archive could not be written.

        Returns the ids of the messages that were forgotten meanwhile."""
        self._settle()
        known_messages = self._archive.known(session)
        for message in messages:
            if message.message_id not in known_messages:
                self.add(session, message)
        return {message_id for message_id, is_forgotten in known_messages.items() if is_forgotten}

    def search(
        self, question: str, limit: int, leave_out: Collection[str] = (), reach: Reach = WIDE
    ) -> list[ArchiveHit]:
        """Returns the messages that answer best, the best first."""
        self._settle()
        return self._archive.search(_sound(question), limit, leave_out, reach)

    def forget(self, numbers: Iterable[int]) -> None:
        """Removes the text of messages for good. Their places stay, so that no session brings them back."""
        self._archive.forget(numbers)

    def holding(self, words: str) -> list[ArchiveHit]:
        """Returns every message that contains exactly these words."""
        self._settle()
        return self._archive.holding(words)

    def count(self) -> int:
        self._settle()
        return self._archive.count()

    def close(self) -> None:
        self._inbox.close()
        if "_archive" in self.__dict__:
            self._archive.close()

    def _settle(self) -> None:
        """Indexes the waiting messages."""
        self._put = 0
        try:
            if self._unwritten:
                self._archive.take(self._unwritten)
                self._unwritten = []
            if self._inbox.waiting():
                with self._inbox.emptied() as rows:
                    self._archive.take(rows)
        except (OSError, sqlite3.Error) as problem:
            log.warning("archive %s cannot be used: %s", self._path, problem)

    @cached_property
    def _archive(self) -> "Archive":
        from duckflow.memory.archive import Archive

        return Archive(self._path)


def _sound(text: str) -> str:
    """Replaces halves of characters (lone surrogates), which cannot be stored."""
    return text.encode("utf-8", "replace").decode()

"""The journal of a session: an SQLite file with one row for each event, and one writer. A damaged journal is salvaged.

Events that a newer Duckflow has written into a journal of a known version are skipped, but never deleted."""

import fcntl
import logging
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import JournalDamaged, JournalError, JournalInUse
from duckflow.events.types import BY_KIND, Event, MessageAdded
from duckflow.store.older import stored_kinds, upgraded, upgraded_snapshot
from duckflow.whole_file import make_private, private_folder
from duckflow.whole_text import without_keys


class Lock:
    """A lock on a file, held until it is released or the process dies in whatever way."""

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


SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS messages ON events (seq) WHERE kind = 'message_added';
CREATE TABLE IF NOT EXISTS snapshots (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS headline (only INTEGER PRIMARY KEY CHECK (only = 1), body TEXT NOT NULL);
"""
VERSION = 2
"""The version of the journal. It goes up when an older Duckflow could not continue the journal; new kinds and fields of
events need no new version. Rows of an older version stay as they are, and are read through `store.older`."""
FORESEEN = 100
"""The highest version that a newer Duckflow may have written. A higher number is damage."""
KEPT_SNAPSHOTS = 2
LOG_HEADER, FRAME_HEADER = 32, 24
NEWEST_FORMAT = 2
"""The newest file format. SQLite opens a file that claims a newer format only for reading."""
NO_DAMAGE = frozenset(
    (
        sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_AUTH, sqlite3.SQLITE_OK,
    )
)  # fmt: skip
"""Errors such as a full disk or missing rights, which are no damage: the file must stay at its place."""

log = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """The state of a session after event number `seq`, without the messages."""

    seq: int
    body: str


class Row(NamedTuple):
    """One event of a journal, as Duckflow writes it."""

    seq: int
    kind: str
    body: str


class StoredRow(NamedTuple):
    """One event of a journal as it lies in the file, with its checksum."""

    seq: int
    kind: bytes
    body: bytes
    crc: int

    @property
    def whole(self) -> bool:
        return checksum(self.kind, self.body) == self.crc

    def read(self) -> Row:
        """Returns the event in the form of the present version, however old it is."""
        return Row(self.seq, *upgraded(self.kind.decode(), self.body.decode()))


def _whole(*columns: object) -> StoredRow | None:
    """Returns the row; None if it is damaged, because then it may hold anything."""
    match columns:
        case int(seq), bytes(kind), bytes(body), int(crc) if checksum(kind, body) == crc:
            return StoredRow(seq, kind, body, crc)
        case _:
            return None


def checksum(kind: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(kind))


class JournalReader:
    """Reads a journal. Any process may read, even while another one writes."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    @classmethod
    def open(cls, path: Path) -> "JournalReader":
        try:
            return cls(path, connect_read_only(path))
        except (OSError, sqlite3.Error) as problem:
            raise _failure(problem, "journal.unusable", path) from problem

    @property
    def number(self) -> int:
        """Returns the number of the last event."""
        try:
            return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem

    def last_snapshot(self) -> Snapshot | None:
        """Returns the newest undamaged snapshot of the state."""
        try:
            rows = self._db.execute("SELECT seq, body, crc FROM snapshots ORDER BY seq DESC").fetchall()
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem
        undamaged_rows = filter(None, (_whole(seq, b"", body, crc) for seq, body, crc in rows))
        return next((Snapshot(row.seq, upgraded_snapshot(row.body.decode())) for row in undamaged_rows), None)

    def check(self) -> None:
        """Raises JournalDamaged unless every page is sound and every entry is as it was written. Raises JournalError if
        a newer version has written the journal."""
        try:
            _known_version(self._db)
            check_result = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if check_result != b"ok":
                raise _damage(self.path, check_result.decode(errors="replace"))
            with self.path.open("rb") as open_file:
                if max(open_file.read(20)[18:], default=0) > NEWEST_FORMAT:
                    raise _damage(self.path, "it says that it cannot be written")
            number = 0
            for number, row in enumerate(self._stored("1"), 1):
                if row.seq != number:
                    raise _damage(self.path, f"entry {number} is missing")
            if not number:
                raise _damage(self.path, "it is empty")
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Returns every event after the event number `after` that this version knows, in order."""
        for row in self._select("seq > ?", after):
            if event := read_event(row):
                yield row.seq, event

    def rows(self) -> "Iterator[Row]":
        """Returns every row as it was written, even events that this version does not know."""
        yield from self._select("seq > ?", 0)

    def messages(self, until: int) -> Iterator[MessageAdded]:
        for row in self._select("kind = 'message_added' AND seq <= ?", until):
            if isinstance(event := read_event(row), MessageAdded):
                yield event

    def last(self, most: int, before: int) -> "list[Row]":
        """Returns the last rows before event number `before`, at most `most` of them, in order."""
        newest_rows = self._select("seq < ?", before, order="seq DESC", most=most)
        return list(newest_rows)[::-1]

    def first(self, most: int, after: int) -> "list[Row]":
        """Returns the first rows after event number `after`, at most `most` of them, in order."""
        return list(self._select("seq > ?", after, most=most))

    def of_kinds(self, kinds: Sequence[str]) -> "Iterator[Row]":
        kind_names = stored_kinds(kinds)
        yield from self._select(f"kind IN ({', '.join('?' * len(kind_names))})", *kind_names)

    def _select(self, where: str, *values: int | str, order: str = "seq", most: int = -1) -> "Iterator[Row]":
        for row in self._stored(where, *values, order=order, most=most):
            yield row.read()

    def _stored(self, where: str, *values: int | str, order: str = "seq", most: int = -1) -> Iterator[StoredRow]:
        query = f"SELECT seq, kind, body, crc FROM events WHERE {where} ORDER BY {order} LIMIT ?"
        try:
            for columns in self._db.execute(query, (*values, most)):
                if row := _whole(*columns):
                    yield row
                else:
                    raise _damage(self.path, f"entry {columns[0]}")
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem

    def close(self) -> None:
        self._db.close()


class Journal(JournalReader):
    """The writer of a journal. It only appends, and survives crashes: an event is written either wholly or not at all.

    WAL with synchronous=NORMAL survives the death of the process at any moment; a power cut may cost the last events
    but never the file."""

    def __init__(self, path: Path) -> None:
        try:
            private_folder(path.parent)
            self._lock = Lock(path.with_suffix(".lock"))
        except OSError as problem:
            raise JournalError("journal.unusable", path=str(path), reason=str(problem)) from problem
        try:
            _check_log(path)
            super().__init__(path, _connect(path))
            self.last_seq = self.number
        except (OSError, sqlite3.Error) as problem:
            self._lock.release()
            raise _failure(problem, "journal.unusable", path) from problem
        except JournalError:
            self._lock.release()
            raise

    def append(self, event: Event) -> int:
        return self.append_row(event.kind, event.model_dump_json())

    def append_row(self, kind: str, body: str) -> int:
        body = without_keys(body)
        try:
            crc = checksum(kind.encode(), body.encode())
            self._db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (self.last_seq + 1, kind, body, crc))
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem
        self.last_seq += 1
        return self.last_seq

    def save_snapshot(self, seq: int, body: str) -> None:
        body = without_keys(body)
        try:
            crc = checksum(b"", body.encode())
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (seq, body, crc))
            self._db.execute(
                "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                (KEPT_SNAPSHOTS,),
            )
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem

    def save_headline(self, body: str) -> None:
        """Stores the headline (the line of this session in a list of sessions), so that the list need not read the
        journal."""
        try:
            self._db.execute("INSERT OR REPLACE INTO headline VALUES (1, ?)", (without_keys(body),))
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem

    def close(self) -> None:
        super().close()
        self._lock.release()


def _failure(problem: Exception, key: str, path: Path) -> JournalError:
    """Makes the error for a problem: damage, a file in use, or trouble of the machine. Only a damaged file is put
    aside."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalInUse("journal.in_use")
    if code & 0xFF in NO_DAMAGE and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return JournalError(key, path=str(path), reason=str(problem))
    return _damage(path, str(problem))


def _damage(path: Path, reason: str) -> JournalDamaged:
    return JournalDamaged("journal.damaged", path=str(path), session=path.stem, reason=reason)


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Opens a journal for reading. If no other process has it open, no files for sharing the journal are made."""
    log_file = path.with_name(path.name + "-wal")
    access_option = "mode=ro" if log_file.exists() and log_file.stat().st_size else "immutable=1"
    db = sqlite3.connect(f"{path.as_uri()}?{access_option}", uri=True, timeout=1)
    # Texts stay bytes until their checksum is right: damaged texts may not be UTF-8.
    db.text_factory = bytes
    return db


def _check_log(path: Path) -> None:
    """Raises an error if the log that a crash left is damaged. SQLite reads the log up to the first incomplete frame
    and ignores the rest; the file for sharing the log says how far it read. The connection may not write, so that
    closing it leaves the log as it is."""
    log_file, index_file = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    if not log_file.exists() or log_file.stat().st_size <= LOG_HEADER:
        return
    with closing(connect_read_only(path)) as db:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        size = int(db.execute("PRAGMA page_size").fetchone()[0]) + FRAME_HEADER
        frame_count = int.from_bytes(index_file.read_bytes()[16:20], sys.byteorder)
    log_bytes = log_file.read_bytes()
    frame_headers = [
        log_bytes[offset : offset + FRAME_HEADER] for offset in range(LOG_HEADER, len(log_bytes) - size + 1, size)
    ]
    # All frames of one use of the log have the same mark, and the last frame of a transaction holds the size of the
    # file.
    salts = {frame[8:16] for frame in frame_headers[: frame_count or 1]}
    if any(frame[8:16] in salts and any(frame[4:8]) for frame in frame_headers[frame_count:]):
        raise _damage(path, f"{log_file.name}, frame {frame_count + 1}")


def _known_version(db: sqlite3.Connection) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if VERSION < version < FORESEEN:
        raise JournalError("journal.newer", version=version, known=VERSION)
    return version


def _connect(path: Path) -> sqlite3.Connection:
    # Nobody else may read what was said in a session.
    make_private(path)
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    db.text_factory = bytes
    is_new_file = path.stat().st_size == 0
    try:
        version = _known_version(db)
        if not is_new_file:
            # A file that is not a journal is left as it is.
            db.execute("SELECT seq, kind, body, crc FROM events LIMIT 0")
        # A new file has nothing to lose yet: waiting for the disk six times would only delay the first reply.
        db.execute(f"PRAGMA synchronous={'OFF' if is_new_file else 'NORMAL'}")
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(SCHEMA)
        if version != VERSION:
            db.execute(f"PRAGMA user_version={VERSION}")
        db.execute("PRAGMA synchronous=NORMAL")
    except (OSError, sqlite3.Error, JournalError):
        db.close()
        raise
    return db


def read_event(row: Row) -> Event | None:
    """Returns the event; None if it is undamaged but unknown to this version. Unknown fields are ignored."""
    try:
        return BY_KIND[row.kind].model_validate_json(row.body)
    except (KeyError, ValueError):
        log.warning("entry %s of the journal is passed over: %s", row.seq, row.kind)
        return None

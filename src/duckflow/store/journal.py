"""The journal of a session: SQLite, one row an event, one writer; what is damaged is salvaged.

What a newer Duckflow has written into a journal of a known version is kept and passed over, never thrown away."""

import fcntl
import logging
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import JournalDamaged, JournalError, JournalInUse
from duckflow.events.types import BY_KIND, Event, MessageAdded, SessionOpened, UsageReported
from duckflow.state.agent import AgentState
from duckflow.state.known_keys import without_keys
from duckflow.state.noun import Line100, Value
from duckflow.store.older import stored_kinds, upgraded, upgraded_snapshot
from duckflow.store.paths import make_private, private_folder


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


SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS messages ON events (seq) WHERE kind = 'message_added';
CREATE TABLE IF NOT EXISTS snapshots (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS headline (only INTEGER PRIMARY KEY CHECK (only = 1), body TEXT NOT NULL);
"""
VERSION = 2
"""Goes up when an older Duckflow could not go on with the journal. New kinds and fields of events need no new one. What
an older version wrote stays as it is, and is read through `store.older`."""
KEPT_SNAPSHOTS = 2

log = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """The state, without its messages, as it was after event `seq`."""

    seq: int
    body: str


class Row(NamedTuple):
    """One event as it is written."""

    seq: int
    kind: str
    body: str


def checksum(kind: str, body: str) -> int:
    return zlib.crc32(body.encode(), zlib.crc32(kind.encode()))


class JournalReader:
    """What a journal holds; anybody may read it, also while somebody writes."""

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
        """Of the last event."""
        try:
            return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem

    def last_snapshot(self) -> Snapshot | None:
        """The newest snapshot that is whole."""
        try:
            rows = self._db.execute("SELECT seq, body, crc FROM snapshots ORDER BY seq DESC").fetchall()
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem
        whole = ((seq, body) for seq, body, crc in rows if checksum("", body) == crc)
        return next((Snapshot(seq, upgraded_snapshot(body)) for seq, body in whole), None)

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Every known event after `after`, in order."""
        for row in self._select("seq > ?", after):
            if event := read_event(row):
                yield row.seq, event

    def rows(self) -> "Iterator[Row]":
        """Everything as it was written, also what is not known here."""
        yield from self._select("seq > ?", 0)

    def messages(self, until: int) -> Iterator[MessageAdded]:
        for row in self._select("kind = 'message_added' AND seq <= ?", until):
            if isinstance(event := read_event(row), MessageAdded):
                yield event

    def last(self, most: int, before: int) -> "list[Row]":
        """The last ones before that number, in order."""
        newest = self._select("seq < ?", before, order="seq DESC", most=most)
        return list(newest)[::-1]

    def first(self, most: int, after: int) -> "list[Row]":
        """The first ones after that number, in order."""
        return list(self._select("seq > ?", after, most=most))

    def of_kinds(self, kinds: Sequence[str]) -> "Iterator[Row]":
        stored = stored_kinds(kinds)
        yield from self._select(f"kind IN ({', '.join('?' * len(stored))})", *stored)

    def _select(self, where: str, *values: int | str, order: str = "seq", most: int = -1) -> "Iterator[Row]":
        query = f"SELECT seq, kind, body, crc FROM events WHERE {where} ORDER BY {order} LIMIT ?"
        try:
            rows = self._db.execute(query, (*values, most))
            for seq, kind, body, crc in rows:
                if checksum(kind, body) != crc:
                    raise JournalDamaged("journal.damaged_at", seq=seq)
                yield Row(seq, *upgraded(kind, body))
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unusable", self.path) from problem

    def close(self) -> None:
        self._db.close()


class Journal(JournalReader):
    """Append-only and crash-proof: an event is either wholly there or not at all.

    WAL with synchronous=NORMAL survives the death of the process at any moment; a power cut may cost the last events
    but never the file.
    """

    def __init__(self, path: Path) -> None:
        try:
            private_folder(path.parent)
            self._lock = Lock(path.with_suffix(".lock"))
        except OSError as problem:
            raise JournalError("journal.unusable", path=str(path), reason=str(problem)) from problem
        try:
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
            self._db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?)", (self.last_seq + 1, kind, body, checksum(kind, body))
            )
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem
        self.last_seq += 1
        return self.last_seq

    def save_snapshot(self, seq: int, body: str) -> None:
        body = without_keys(body)
        try:
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (seq, body, checksum("", body)))
            self._db.execute(
                "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                (KEPT_SNAPSHOTS,),
            )
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem

    def save_headline(self, body: str) -> None:
        """What a list of sessions shows of this one, so that the list need not read the journal."""
        try:
            self._db.execute("INSERT OR REPLACE INTO headline VALUES (1, ?)", (without_keys(body),))
        except sqlite3.Error as problem:
            raise _failure(problem, "journal.unwritable", self.path) from problem

    def close(self) -> None:
        super().close()
        self._lock.release()


def _failure(problem: Exception, key: str, path: Path) -> JournalError:
    """A full disk, missing rights or another program at the file are no damage: the file must stay where it is."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return JournalDamaged(key, path=str(path), reason=str(problem))
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalInUse("journal.in_use")
    return JournalError(key, path=str(path), reason=str(problem))


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A journal that nobody has open is read without making the files that sharing it would need."""
    ahead = path.with_name(path.name + "-wal")
    how = "mode=ro" if ahead.exists() and ahead.stat().st_size else "immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=1)


def _connect(path: Path) -> sqlite3.Connection:
    # What was said in a session is nobody else's business.
    make_private(path)
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise JournalError("journal.newer", version=version, known=VERSION)
        # A new file has nothing to lose yet: waiting for the disk six times would only delay the first word.
        db.execute(f"PRAGMA synchronous={'OFF' if path.stat().st_size == 0 else 'NORMAL'}")
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(SCHEMA)
        if version < VERSION:
            db.execute(f"PRAGMA user_version={VERSION}")
        db.execute("PRAGMA synchronous=NORMAL")
    except (OSError, sqlite3.Error, JournalError):
        db.close()
        raise
    return db


def read_event(row: Row) -> Event | None:
    """Nothing for what is written whole but cannot be understood here. Fields that are not known are passed over."""
    try:
        return BY_KIND[row.kind].model_validate_json(row.body)
    except (KeyError, ValueError):
        log.warning("entry %s of the journal is passed over: %s", row.seq, row.kind)
        return None


class Headline(Value):
    """One session in a line. `asked` is how it began, `title` what it turned out to be about."""

    title: Line100 = ""
    asked: Line100 = ""
    folder: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    tokens: int = 0

    @classmethod
    def of(cls, state: AgentState) -> "Headline":
        plan = state.plan or next(reversed(state.plans.values()), None)
        return cls(
            title=state.named or (plan.name if plan else "") or state.five.goal or state.title,
            asked=state.title,
            folder=state.folder,
            turns=state.turn,
            cost_usd=state.usage.cost_usd,
            tokens=state.usage.prompt_tokens + state.usage.completion_tokens,
        )


def read_headline(path: Path) -> Headline | None:
    """Nothing for a session in which nothing was said; a journal that cannot be read has one without a title."""
    try:
        with closing(connect_read_only(path)) as db:
            kept = db.execute("SELECT body FROM headline").fetchone()
            return Headline.model_validate_json(kept[0]) if kept else _gathered(db)
    except (sqlite3.Error, ValueError):
        return Headline(title="?")


def _gathered(db: sqlite3.Connection) -> Headline | None:
    """Read from the events themselves: a turn that never ended has left no headline."""
    first = db.execute("SELECT body FROM events WHERE kind = 'message_added' ORDER BY seq LIMIT 1").fetchone()
    if first is None:
        return None
    opened = db.execute("SELECT body FROM events WHERE kind = 'session_opened' ORDER BY seq LIMIT 1").fetchone()
    turns = db.execute("SELECT count(*) FROM events WHERE kind = 'turn_began'").fetchone()[0]
    told = db.execute("SELECT body FROM events WHERE kind = 'usage_reported'").fetchall()
    usages = [UsageReported.model_validate_json(body).usage for (body,) in told]
    asked = MessageAdded.model_validate_json(first[0]).message.text
    return Headline(
        title=asked,
        asked=asked,
        folder=SessionOpened.model_validate_json(opened[0]).folder if opened else "",
        turns=turns,
        cost_usd=sum(usage.cost_usd for usage in usages),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
    )

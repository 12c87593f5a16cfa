"""What undo keeps on disk: facts about files, their contents, and what each turn changed."""

import contextlib
import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.safety.files import Kind

UNKEPT = "~"
TICK = 2_000_000_000
"""Nanoseconds in which two writes may get the same time, even where the file system counts in whole seconds."""


class Fact(NamedTuple):
    """`content` is a file's content id or a link's target; of a file that is too large to keep, or cannot be read, it
    only tells whether it is the same."""

    kind: Kind
    mode: int
    owner: int
    group: int
    size: int
    content: str

    @property
    def kept(self) -> bool:
        """Whether it could be put back after it was removed."""
        return self.kind != "special" and not (self.kind == "file" and self.content.startswith(UNKEPT))

    @property
    def blob(self) -> str:
        """The id of the content to keep for it, or nothing."""
        return self.content if self.kind == "file" and self.kept else ""

    @property
    def bare(self) -> "Fact":
        """Without mode and owner."""
        return self._replace(mode=0, owner=0, group=0)


class Stamp(NamedTuple):
    """What the file system says of a file. While it stays the same, so does the content: no program can set the time
    of the last change (`changed`)."""

    inode: int
    size: int
    modified: int
    changed: int
    mode: int
    owner: int
    group: int

    @classmethod
    def of(cls, facts: os.stat_result) -> "Stamp":
        times = (facts.st_mtime_ns, facts.st_ctime_ns)
        return cls(facts.st_ino, facts.st_size, *times, facts.st_mode, facts.st_uid, facts.st_gid)

    @property
    def unkept_content(self) -> str:
        """Stays the same when a file is renamed, and changes when it is written to."""
        return f"{UNKEPT}{self.inode}-{self.size}-{self.modified}"

    @property
    def written(self) -> tuple[int, ...]:
        """Changes when a file is replaced, written to, or given another mode; not when it gets another name."""
        return (self.inode, self.size, self.modified, self.mode)

    @property
    def settled(self) -> bool:
        """Not when a file written to again right now would get the same time."""
        return self.changed < time.time_ns() - TICK


class Seen(NamedTuple):
    """A fact with the stamp it was seen under. Unsettled: written so lately that the stamp proves nothing."""

    fact: Fact
    stamp: Stamp
    settled: bool


def load_seen(text: str) -> Seen:
    fact, stamp, settled = json.loads(text)
    return Seen(Fact._make(fact), Stamp._make(stamp), settled)


FILE = "undo-3.sqlite"
"""What other versions kept, in a form that is not read here, has another number."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (blob TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS baseline (path BLOB PRIMARY KEY, seen TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    session TEXT, number INTEGER, at REAL NOT NULL, undone INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE TABLE IF NOT EXISTS windows (id INTEGER PRIMARY KEY AUTOINCREMENT, window TEXT NOT NULL);
"""
PATIENCE = 30.0
FAST = 1
SETTINGS = ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=FULL", "journal_size_limit=16777216")
NOTHING = "[[], {}]"
"""The record of a turn that is too old."""
WindowKind = Literal["change", "command", "restore", "watch"]


class Database:
    """SQLite. What a transaction wrote survives even a power cut, or is not there at all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for other in folder.glob("undo*.sqlite*"):
            if not other.name.startswith(FILE):
                other.unlink(missing_ok=True)
        path = folder / FILE
        # It holds the contents of the user's files.
        path.touch(0o600)
        # Used by one thread at a time; which one it is may differ.
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE, check_same_thread=False)
        try:
            for setting in SETTINGS:
                self.execute(f"PRAGMA {setting}")
            self._connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        except BaseException:
            self._connection.close()
            raise

    def execute(self, question: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(question, tuple(values)).fetchall()

    def each(self, question: str, rows: Iterable[Iterable[Any]]) -> None:
        self._connection.executemany(question, (tuple(row) for row in rows))

    @contextlib.contextmanager
    def transaction(self) -> Generator[None]:
        """Alone: other processes wait."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            raise

    @property
    def version(self) -> int:
        """Changes when another process has written something."""
        return self.execute("PRAGMA data_version")[0][0]

    @property
    def size(self) -> int:
        """Bytes in use; freed ones do not count."""
        ((pages,),), ((free,),), ((size,),) = (
            self.execute(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def close(self) -> None:
        self._connection.close()


def content_id(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


class Contents:
    """A content is known by its id, so the same content is kept once. Nothing is taken from the user's repository: what
    lies there is not ours to rely on."""

    def __init__(self, database: Database, budget: int) -> None:
        self._database = database
        self._budget = self._left = budget
        self._held: set[str] | None = None

    def begin(self) -> None:
        """Before a survey: as much may be copied as one takes."""
        self._left = self._budget

    def keep(self, blob: str, data: bytes) -> bool:
        """Make sure of it; not when that is more than may be copied."""
        if blob in self._all():
            return True
        if self._left < len(data):
            return False
        self._left -= len(data)
        self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (blob, zlib.compress(data, FAST)))
        self._all().add(blob)
        return True

    def get(self, blob: str) -> bytes | None:
        for (data,) in self._database.execute("SELECT data FROM contents WHERE blob = ?", (blob,)):
            return zlib.decompress(data)
        return None

    def forget_all_but(self, needed: set[str]) -> None:
        self._database.each("DELETE FROM contents WHERE blob = ?", [(blob,) for blob in self._all() - needed])
        self.look_again()

    def look_again(self) -> None:
        """Another process wrote, or what we wrote was taken back."""
        self._held = None

    def _all(self) -> set[str]:
        if self._held is None:
            self._held = {row[0] for row in self._database.execute("SELECT blob FROM contents")}
        return self._held


class Change(NamedTuple):
    """What a turn made of a path. `own`: Duckflow did it, or a command known to write there; else it happened while a
    command ran, or around the time Duckflow was interrupted, by whomever."""

    path: str
    before: Fact | None
    after: Fact | None
    own: bool = True
    undone: bool = False


@dataclass
class UndoTurn:
    """One turn of one session: what it changed, and what of that undo does not cover (kind, name, number of files).
    `undone`: its place in the order of undoing, 0 when it is not undone."""

    session: str
    number: int
    at: float
    undone: int = 0
    paths: dict[str, Change] = field(default_factory=dict[str, Change])
    left_out: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    @property
    def changes(self) -> list[Change]:
        """Without paths that ended as they began."""
        return sorted(one for one in self.paths.values() if one.before != one.after)

    def record(self, changes: Iterable[Change]) -> None:
        """A path changed twice keeps what it was first and what it is now."""
        for one in changes:
            first = self.paths.get(one.path)
            if first:
                # Or did somebody change it between the two?
                own = first.own and one.own and first.after == one.before
                one = one._replace(before=first.before, own=own)
            self.paths[one.path] = one
            self.undone = 0

    def leave_out(self, kind: str, names: Mapping[str, int]) -> None:
        for name, count in names.items():
            known = self.left_out.setdefault(kind, {})
            known[name] = max(count, known.get(name, 0))


class Window(NamedTuple):
    """A change, command or undo under way; one that is left over from a crash is closed later. `paths`: what is
    changed, or what a command is known to write. `marks`: where the repositories stood before."""

    session: str
    number: int
    token: str
    kind: WindowKind
    paths: Sequence[str]
    marks: dict[str, list[str]]


class UndoLedger:
    """The tables of turns and windows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, window: Window) -> int:
        self._database.execute("INSERT INTO windows (window) VALUES (?)", (json.dumps(window),))
        return self._database.execute("SELECT last_insert_rowid()")[0][0]

    def close(self, window_id: int) -> None:
        self._database.execute("DELETE FROM windows WHERE id = ?", (window_id,))

    def windows(self) -> dict[int, Window]:
        rows = self._database.execute("SELECT id, window FROM windows ORDER BY id")
        return {window_id: Window._make(json.loads(window)) for window_id, window in rows}

    def turn(self, session: str, number: int) -> UndoTurn:
        """A new one when nothing is known of it."""
        rows = self._database.execute("SELECT * FROM turns WHERE session = ? AND number = ?", (session, number))
        return _load(rows[0]) if rows else UndoTurn(session, number, time.time())

    def save(self, turn: UndoTurn) -> None:
        """What was of no effect leaves no trace."""
        if not turn.paths and not turn.left_out:
            return
        record = json.dumps([list(turn.paths.values()), turn.left_out])
        row = (turn.session, turn.number, turn.at, turn.undone, record)
        self._database.execute("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?)", row)

    def turns(self, session: str) -> list[UndoTurn]:
        """Those that changed something, covered or not."""
        rows = self._database.execute("SELECT * FROM turns WHERE session = ? ORDER BY number", (session,))
        return [turn for turn in map(_load, rows) if turn.changes or turn.left_out]

    def last_undone(self) -> int:
        return self._database.execute("SELECT coalesce(max(undone), 0) FROM turns")[0][0]

    def forget(self, session: str, number: int) -> None:
        """Only that there was something stays known."""
        question = "UPDATE turns SET record = ? WHERE session = ? AND number = ?"
        self._database.execute(question, (NOTHING, session, number))

    def forgotten(self, session: str) -> int:
        """The last turn of which nothing is known any more; 0 for none."""
        question = "SELECT coalesce(max(number), 0) FROM turns WHERE session = ? AND record = ?"
        return self._database.execute(question, (session, NOTHING))[0][0]

    def oldest_first(self) -> list[tuple[str, int]]:
        question = "SELECT session, number FROM turns WHERE record != ? ORDER BY at"
        return [(session, number) for session, number in self._database.execute(question, (NOTHING,))]

    def blobs(self) -> set[str]:
        """Every content that a turn may need."""
        turns = (_load(row) for row in self._database.execute("SELECT * FROM turns"))
        changes = (change for turn in turns for change in turn.paths.values())
        return {fact.blob for change in changes for fact in (change.before, change.after) if fact}


def _load(row: tuple[Any, ...]) -> UndoTurn:
    changes, left_out = json.loads(row[4])
    paths = {
        path: Change(path, before and Fact._make(before), after and Fact._make(after), *rest)
        for path, before, after, *rest in changes
    }
    session, number, at, undone, _ = row
    return UndoTurn(session, number, at, undone, paths, left_out)

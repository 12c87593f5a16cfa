"""What undo remembers, in one file that several processes may share: turns, changes under way, who is alive."""

import contextlib
import json
import os
import sqlite3
import time
import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.safety.sandbox.scratch import hold_lock
from duckflow.safety.undo.fact import Fact

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
WRITE_AHEAD = 16 * 1024 * 1024
NOTHING = "[[], {}]"
"""The record of a turn that is too old."""


class Database:
    """SQLite. What a transaction wrote survives even a power cut, or is not there at all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for other in folder.glob("undo*.sqlite*"):
            if not other.name.startswith(FILE):
                other.unlink(missing_ok=True)
        path = folder / FILE
        is_new = not path.exists()
        # Used by one thread at a time; which one it is may differ.
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE, check_same_thread=False)
        try:
            if is_new:
                # It holds the contents of the user's files.
                path.chmod(0o600)
                self.execute("PRAGMA auto_vacuum=INCREMENTAL")
            self.execute("PRAGMA journal_mode=WAL")
            self.execute("PRAGMA synchronous=FULL")
            self.execute(f"PRAGMA journal_size_limit={WRITE_AHEAD}")
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

    def give_back(self) -> None:
        """What is free goes back to the disk."""
        self.execute("PRAGMA incremental_vacuum")

    def close(self) -> None:
        self._connection.close()


class Presence:
    """Shows that this process is alive, by a lock that the system takes away when it dies."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        for left in folder.iterdir():
            self.alive(left.name)
        self.token = os.urandom(8).hex()
        weakref.finalize(self, os.close, hold_lock(folder / self.token, os.O_CREAT))

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
    """A change, command or undo under way; one that is left over from a crash is closed later.

    `paths`: what is changed, or what a command is known to write. `marks`: where the repositories stood before."""

    session: str
    number: int
    token: str
    kind: Literal["change", "command", "restore"]
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
        self._database.execute(
            f"UPDATE turns SET record = '{NOTHING}' WHERE session = ? AND number = ?", (session, number)
        )

    def forgotten(self, session: str) -> int:
        """The last turn of which nothing is known any more; 0 for none."""
        rows = self._database.execute(
            f"SELECT max(number) FROM turns WHERE session = ? AND record = '{NOTHING}'", (session,)
        )
        return rows[0][0] or 0

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
    paths = {one[0]: Change(one[0], _fact(one[1]), _fact(one[2]), *one[3:]) for one in changes}
    session, number, at, undone, _ = row
    return UndoTurn(session, number, at, undone, paths, left_out)


def _fact(values: list[Any] | None) -> Fact | None:
    return None if values is None else Fact._make(values)

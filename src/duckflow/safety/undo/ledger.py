"""Undo's record on disk: the contents of files, and the changes of each turn and each step of a job."""

import contextlib
import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Container, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.safety.ignore_rules import HEAVY
from duckflow.safety.undo.facts import Change, ChangeKey, Fact, UndoWork, life_name
from duckflow.state.changes import WorkAuthor

FILE = "undo-3.sqlite"
"""The database's name. Versions of Duckflow that store another form of it use another number."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (blob TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS baseline (path BLOB PRIMARY KEY, seen TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS works (
    session TEXT, name TEXT, author TEXT NOT NULL, at REAL NOT NULL, latest INTEGER NOT NULL, undone INTEGER NOT NULL,
    record TEXT NOT NULL, PRIMARY KEY (session, name)
);
CREATE TABLE IF NOT EXISTS places (life BLOB PRIMARY KEY, path BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS arrivals (path BLOB PRIMARY KEY);
CREATE TABLE IF NOT EXISTS windows (id INTEGER PRIMARY KEY AUTOINCREMENT, window TEXT NOT NULL);
"""
PATIENCE = 30.0
FAST = 1
SETTINGS = ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=FULL", "journal_size_limit=16777216")
NOTHING = "[[], {}]"
"""The record of work that was forgotten because it is too old."""
WindowKind = Literal["change", "command", "restore", "watch"]


class Database:
    """An SQLite database. A transaction survives even a power cut, or it has no effect at all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for other_file in folder.glob("undo*.sqlite*"):
            if not other_file.name.startswith(FILE):
                other_file.unlink(missing_ok=True)
        path = folder / FILE
        # The file holds the contents of the user's files.
        path.touch(0o600)
        # One thread at a time uses the connection, but not always the same thread.
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
        """Runs a transaction, for which other processes wait."""
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
        """Returns a number that changes when another process has written something."""
        return self.execute("PRAGMA data_version")[0][0]

    @property
    def size(self) -> int:
        """Returns the size of the database in bytes, without freed pages."""
        ((pages,),), ((free_pages,),), ((size,),) = (
            self.execute(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free_pages) * size

    def close(self) -> None:
        self._connection.close()


def content_id(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


class Contents:
    """The contents of files, each kept once and known by its id. Nothing is taken from the user's repository, because
    undo must not rely on it."""

    def __init__(self, database: Database, budget: int) -> None:
        self._database = database
        self._budget = self._left = budget
        self._held: set[str] | None = None

    def begin(self) -> None:
        """Begins a survey of the work folder. Each survey may copy as much data as the settings allow."""
        self._left = self._budget

    def keep(self, blob: str, data: bytes) -> bool:
        """Keeps a content if it is not kept yet; returns False when the budget of copies is too small for it."""
        if blob in self._all():
            return True
        if self._left < len(data):
            return False
        self._left -= len(data)
        self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (blob, zlib.compress(data, FAST)))
        self._all().add(blob)
        return True

    def get(self, blob: str) -> bytes | None:
        for (packed_content,) in self._database.execute("SELECT data FROM contents WHERE blob = ?", (blob,)):
            return zlib.decompress(packed_content)
        return None

    def forget_all_but(self, needed: set[str]) -> None:
        self._database.each("DELETE FROM contents WHERE blob = ?", [(blob,) for blob in self._all() - needed])
        self.look_again()

    def look_again(self) -> None:
        """Empties the cache, because another process wrote, or a write of this process was rolled back."""
        self._held = None

    def _all(self) -> set[str]:
        if self._held is None:
            self._held = {row[0] for row in self._database.execute("SELECT blob FROM contents")}
        return self._held


class Window(NamedTuple):
    """A change, command or undo under way; a window left over from a crash is closed later. `paths` are the paths that
    it changes, or that a command is known to write. `marks` is the state of the repositories before it."""

    session: str
    author: WorkAuthor
    token: str
    kind: WindowKind
    paths: Sequence[str]
    marks: dict[str, list[str]]
    leaves: Sequence[str] | None = None
    """The files that a command leaves which changes nothing but `paths`; None if it may change anything."""


class UndoLedger:
    """The database tables of undo: what each turn or job changed, and the commands that are running."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: set[str] | None = None
        with database.transaction():
            _take_over_turns(database)

    def open(self, window: Window) -> int:
        window_json = json.dumps(window)
        self._database.execute("INSERT INTO windows (window) VALUES (?)", (window_json,))
        return self._database.execute("SELECT last_insert_rowid()")[0][0]

    def close(self, window_id: int) -> None:
        self._database.execute("DELETE FROM windows WHERE id = ?", (window_id,))

    def windows(self) -> dict[int, Window]:
        rows = self._database.execute("SELECT id, window FROM windows ORDER BY id")
        return {window_id: _load_window(window) for window_id, window in rows}

    def work(self, session: str, author: WorkAuthor) -> UndoWork:
        """Returns the recorded work of the author, or an empty work when none is recorded."""
        question = "SELECT * FROM works WHERE session = ? AND name = ?"
        rows = self._database.execute(question, (session, author.name))
        return _load(rows[0]) if rows else UndoWork(session, author, time.time())

    def save(self, work: UndoWork) -> None:
        """Saves the work, or removes its record if it changed nothing."""
        if not work.changes and not work.left_out:
            self._database.execute("DELETE FROM works WHERE session = ? AND name = ?", (work.session, work.author.name))
            return
        if self._held is not None:
            self._held |= _lasting(work.changes)
        work.latest = work.latest or self.next_order()
        record_json = json.dumps([work.changes, work.left_out])
        author = json.dumps(work.author)
        work_row = (work.session, work.author.name, author, work.at, work.latest, work.undone, record_json)
        self._database.execute("INSERT OR REPLACE INTO works VALUES (?, ?, ?, ?, ?, ?, ?)", work_row)

    def works(self, session: str) -> list[UndoWork]:
        """Returns every work that changed something, whether undo covers it or not, the latest last."""
        rows = self._database.execute("SELECT * FROM works WHERE session = ? ORDER BY latest, at", (session,))
        return [work for work in map(_load, rows) if work.changes or work.left_out]

    def all_changes(self) -> list[Change]:
        """Returns all changes of every session in their order. A change that several may have made stands there once;
        it counts as undone when all of them have taken it back."""
        works = map(_load, self._database.execute("SELECT * FROM works"))
        copies = dict[ChangeKey, list[Change]]()
        for change in (change for work in works for change in work.changes):
            copies.setdefault(change.key, []).append(change)
        merged_changes = [
            records[0]._replace(
                undone=max(record.undone for record in records) if not standing else 0, sharers=standing
            )
            for records in copies.values()
            for standing in [records[0].sharers - sum(record.undone > 0 for record in records)]
        ]
        return sorted(merged_changes, key=lambda change: change.order)

    def held(self) -> set[str]:
        """Returns the paths of which a kept turn holds a state. Heavy folders, which can be made again, are left
        out."""
        if self._held is None:
            self._held = _lasting(self.all_changes())
        return self._held

    def read_again(self) -> None:
        self._held = None

    def sharing(self, keys: Container[ChangeKey]) -> list[UndoWork]:
        """Returns the works, of every session, that share one of these changes with others."""
        works = map(_load, self._database.execute("SELECT * FROM works"))
        return [work for work in works if any(change.sharers > 1 and change.key in keys for change in work.changes)]

    def next_order(self) -> int:
        return self._database.execute("SELECT coalesce(max(latest), 0) + 1 FROM works")[0][0]

    def forget(self, session: str, name: str) -> None:
        """Forgets the changes of some work, but not that there was such work."""
        question = "UPDATE works SET record = ? WHERE session = ? AND name = ?"
        self._database.execute(question, (NOTHING, session, name))

    def forgotten(self, session: str) -> int:
        """Returns the number of the last turn with forgotten work; 0 for none."""
        question = "SELECT author FROM works WHERE session = ? AND record = ?"
        rows = self._database.execute(question, (session, NOTHING))
        return max((WorkAuthor(*json.loads(author)).turn for (author,) in rows), default=0)

    def oldest_first(self) -> list[tuple[str, str]]:
        question = "SELECT session, name FROM works WHERE record != ? ORDER BY at"
        return [(session, name) for session, name in self._database.execute(question, (NOTHING,))]

    def blobs(self) -> set[str]:
        """Returns the id of every content that an undo or redo may need."""
        return {fact.blob for change in self.all_changes() for fact in (change.before, change.after) if fact}


def _lasting(changes: Iterable[Change]) -> set[str]:
    return {change.path for change in changes if HEAVY.isdisjoint(change.path.split("/"))}


def _load(row: tuple[Any, ...]) -> UndoWork:
    session, _, author, timestamp, latest_order, undone, record_json = row
    rows, left_out = json.loads(record_json)
    changes = [
        Change(path, before_fact and Fact._make(before_fact), after_fact and Fact._make(after_fact), *other_fields)
        for path, before_fact, after_fact, *other_fields in rows
    ]
    changes = [change if change.life else change._replace(life=life_name(change)) for change in changes]
    return UndoWork(session, WorkAuthor(*json.loads(author)), timestamp, latest_order, bool(undone), changes, left_out)


def _take_over_turns(database: Database) -> None:
    """Converts records from before jobs had work of their own, when every change belonged to a turn."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'turns'"):
        return
    turns = database.execute("SELECT session, number, at, undone, record FROM turns ORDER BY at")
    for order, (session, number, timestamp, undone, record_json) in enumerate(turns, 1):
        rows, left_out = json.loads(record_json)
        changes = [[*change_row[:4], order, undone if change_row[4] else 0] for change_row in rows]
        new_record = NOTHING if record_json == NOTHING else json.dumps([changes, left_out])
        work_row = (session, str(number), json.dumps(WorkAuthor(number)), timestamp, order, bool(undone), new_record)
        database.execute("INSERT OR IGNORE INTO works VALUES (?, ?, ?, ?, ?, ?, ?)", work_row)
    for window_id, text in database.execute("SELECT id, window FROM windows"):
        session, number, *other_fields = json.loads(text)
        window_json = json.dumps([session, WorkAuthor(number), *other_fields])
        database.execute("UPDATE windows SET window = ? WHERE id = ?", (window_json, window_id))
    database.execute("DROP TABLE turns")


def _load_window(text: str) -> Window:
    session, author, *other_fields = json.loads(text)
    return Window(session, WorkAuthor(*author), *other_fields)

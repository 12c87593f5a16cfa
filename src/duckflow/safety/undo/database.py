"""The file in which undo keeps everything; several processes may share it."""

import contextlib
import sqlite3
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS contents (blob TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS baseline (path BLOB PRIMARY KEY, seen TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    session TEXT, turn INTEGER, at REAL NOT NULL, undone INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, turn)
);
CREATE TABLE IF NOT EXISTS changes (
    session TEXT, turn INTEGER, path BLOB, before TEXT NOT NULL, after TEXT NOT NULL, sure INTEGER NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, turn, path)
);
CREATE TABLE IF NOT EXISTS uncovered (
    session TEXT, turn INTEGER, kind TEXT, name BLOB, count INTEGER NOT NULL, PRIMARY KEY (session, turn, kind, name)
);
CREATE TABLE IF NOT EXISTS forgotten (session TEXT PRIMARY KEY, turn INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn INTEGER NOT NULL, token TEXT NOT NULL,
    kind TEXT NOT NULL, roots TEXT NOT NULL, before TEXT NOT NULL
);
"""
PATIENCE = 30.0
WRITE_AHEAD = 16 * 1024 * 1024


class Database:
    """SQLite. What a transaction wrote survives even a power cut, or is not there at all."""

    def __init__(self, path: Path) -> None:
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

    def fact(self, name: str, default: str) -> str:
        """A value that stays as it was first set."""
        self.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, default))
        return self.execute("SELECT value FROM facts WHERE name = ?", (name,))[0][0]

    def close(self) -> None:
        self._connection.close()

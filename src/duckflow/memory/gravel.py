"""Gravel: the archive of everything said in a project, and the search in it."""

import contextlib
import logging
import sqlite3
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from duckflow.memory.ranking import Posting, Word, rank
from duckflow.memory.terms import indexed, telling
from duckflow.state.fold import folded
from duckflow.state.message import Message

log = logging.getLogger(__name__)

TOKENIZER = "porter unicode61"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, length INTEGER NOT NULL, message_id TEXT NOT NULL, session TEXT NOT NULL,
    role TEXT NOT NULL, operation TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS one_message ON messages (message_id, at);
CREATE INDEX IF NOT EXISTS of_session ON messages (session);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='', tokenize='{TOKENIZER}');
CREATE TABLE IF NOT EXISTS progress (indexed INTEGER NOT NULL);
INSERT INTO progress SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM progress);
CREATE VIRTUAL TABLE temp.question USING fts5 (text, tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE temp.asked USING fts5vocab (temp, question, 'row');
"""
COLUMNS = "number, message_id, session, role, operation, at, text"
INDEX_EVERY = 32
"""Messages are on disk at once; they are indexed together, and at the latest before the next search."""
QUESTION_LENGTH = 3000
QUESTION_WORDS = 24
LOOKED_UP = 48
SPARE = 20
COMMON = 800
POSTINGS = 3000
"""A search looks at no more places than this, the rarest words first; of a common word at its latest ones."""


@dataclass(frozen=True, slots=True)
class Found:
    """A message from the archive."""

    number: int
    message_id: str
    session: str
    role: str
    operation: str
    at: float
    text: str
    share: float = 0.0
    """How much of what was asked for it holds, 0 to about 1."""


class Gravel:
    """One project's archive. It is an aid: when the file cannot be used, the conversation goes on without it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[tuple[object, ...]] = []
        self._unindexed = 0
        self._lengths = array("L")
        """By number; a number that was forgotten keeps its place."""

    def add(self, session: str, message: Message) -> None:
        text = _sound(message.text)
        about = (message.message_id, session, message.role, message.operation, message.at)
        self._waiting.append((len(text.encode()), *about, text))
        self._unindexed += 1
        with self._forgiving("add"):
            self._write()
            if self._unindexed >= INDEX_EVERY:
                self._index()

    def catch_up(self, session: str, messages: Collection[Message]) -> list[str]:
        """Take in what a session said before it had an archive, or while the archive could not be written.

        Gives the ids of those that were forgotten meanwhile."""
        with self._forgiving("catch_up"):
            rows = self._db.execute(
                "SELECT message_id, text = '' AND length > 0 FROM messages WHERE session = ?", (session,)
            )
            known: dict[str, int] = dict(rows.fetchall())
            for message in messages:
                if message.message_id not in known:
                    self.add(session, message)
            return [message_id for message_id, forgotten in known.items() if forgotten]
        return []

    def settle(self) -> None:
        """Index what is waiting, at a moment when nobody waits."""
        with self._forgiving("settle"):
            self._write()
            self._index()

    def search(self, question: str, limit: int, leave_out: Collection[str] = ()) -> list[Found]:
        """The messages that answer best, best first."""
        with self._forgiving("search"):
            self._write()
            self._index()
            total: int = self._db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
            ranked = rank(self._words(question), total)
            best = nlargest(limit + len(leave_out) + SPARE, ranked.items(), key=itemgetter(1))
            return list(self._take(best, limit, leave_out))
        return []

    def forget(self, numbers: Iterable[int]) -> None:
        """Take the text of messages out for good. Their places stay, so that no session brings them back."""
        with self._forgiving("forget"), self._transaction():
            for number in numbers:
                row = self._db.execute("SELECT text FROM messages WHERE number = ?", (number,)).fetchone()
                if row and row[0]:
                    self._db.execute(
                        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (number, indexed(row[0]))
                    )
                    self._db.execute("UPDATE messages SET text = '' WHERE number = ?", (number,))

    def holding(self, words: str) -> list[Found]:
        """Every message that says exactly this."""
        self.settle()
        with self._forgiving("holding"):
            wanted = folded(words)
            rows = self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE text != ''")
            return [Found(*row) for row in rows if wanted in folded(row[-1])]
        return []

    def count(self) -> int:
        with self._forgiving("count"):
            return self._db.execute("SELECT count(*) FROM messages WHERE text != ''").fetchone()[0]
        return 0

    def close(self) -> None:
        if "_db" in self.__dict__:
            self.settle()
            self._db.close()

    def _words(self, question: str) -> Iterator[Word]:
        """The rarest words of the question that occur at all, with where they do."""
        db, room = self._db, POSTINGS
        db.execute("DELETE FROM question")
        db.execute("INSERT INTO question VALUES (?)", (indexed(_sound(question[:QUESTION_LENGTH])),))
        terms = [row[0] for row in db.execute("SELECT term FROM asked")]
        terms.sort(key=lambda term: -telling(term))
        places = {term: self._places(term) for term in terms[:LOOKED_UP]}
        for term in sorted(places, key=lambda term: len(places[term]) / telling(term))[:QUESTION_WORDS]:
            room -= len(places[term])
            if room < 0:
                return
            yield Word(len(places[term]), telling(term), self._postings(places[term]))

    def _places(self, term: str) -> list[int]:
        """The latest messages with a term. More than the limit are not counted: the term is a common one."""
        # A single character of Japanese stands at the beginning of pairs.
        wanted = f'"{term}"*' if len(term) == 1 and not term.isascii() else f'"{term}"'
        rows = self._db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (wanted, COMMON)
        )
        return [row[0] for row in rows]

    def _postings(self, places: list[int]) -> list[Posting]:
        lengths = self._lengths
        for row in self._db.execute("SELECT number, length FROM messages WHERE number > ?", (len(lengths),)):
            lengths.extend([0] * (row[0] - len(lengths) - 1))
            lengths.append(row[1])
        return [Posting(place, lengths[place - 1]) for place in places]

    def _take(self, ranked: Iterable[tuple[int, float]], limit: int, leave_out: Collection[str]) -> Iterator[Found]:
        for number, share in ranked:
            if limit <= 0:
                return
            row = self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE number = ?", (number,)).fetchone()
            if row and row[-1] and row[1] not in leave_out:
                limit -= 1
                yield Found(*row, share=share)

    def _write(self) -> None:
        while self._waiting:
            self._db.execute(
                "INSERT OR IGNORE INTO messages (length, message_id, session, role, operation, at, text)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                self._waiting[0],
            )
            self._waiting.pop(0)

    def _index(self) -> None:
        if not self._unindexed:
            return
        with self._transaction():
            done = self._db.execute("SELECT indexed FROM progress").fetchone()[0]
            rows = self._db.execute("SELECT number, text FROM messages WHERE number > ?", (done,)).fetchall()
            self._db.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)", ((number, indexed(text)) for number, text in rows)
            )
            if rows:
                self._db.execute("UPDATE progress SET indexed = ?", (rows[-1][0],))
        self._unindexed = 0

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextlib.contextmanager
    def _forgiving(self, doing: str) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            log.warning("archive %s: %s failed: %s", self._path, doing, problem)

    @cached_property
    def _db(self) -> sqlite3.Connection:
        """The archive's file, opened when it is first needed: a conversation's start does not wait for it.

        A damaged one is put aside, and where none can be written it lives in memory."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return _connect(self._path)
        except sqlite3.OperationalError as problem:
            log.warning("archive %s cannot be used: %s", self._path, problem)
        except sqlite3.DatabaseError as problem:
            log.warning("archive %s is damaged and put aside: %s", self._path, problem)
            self._path.replace(self._path.with_suffix(".damaged"))
            return _connect(self._path)
        except OSError as problem:
            log.warning("archive %s cannot be used: %s", self._path, problem)
        return _connect(None)


def _sound(text: str) -> str:
    """Without halves of characters, which cannot be stored."""
    return text.encode("utf-8", "replace").decode()


def _connect(path: Path | None) -> sqlite3.Connection:
    is_new = path is not None and not path.exists()
    db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
    try:
        if path and is_new:
            path.chmod(0o600)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db

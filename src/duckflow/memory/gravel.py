"""Gravel: the archive of messages that left the context. It stores the messages and finds them again."""

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from duckflow.i18n.terms import indexed, shares, telling
from duckflow.memory.archive_hit import WIDE, ArchiveHit, Reach, Row
from duckflow.memory.ranking import Posting, QueryWord, rank
from duckflow.state.data import folded
from duckflow.state.message import Message
from duckflow.whole_file import make_private, private_folder
from duckflow.whole_text import without_keys

TOKENIZER = "porter unicode61"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, length INTEGER NOT NULL, message_id TEXT NOT NULL, session TEXT NOT NULL,
    role TEXT NOT NULL, operation TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS one_message ON messages (message_id, at);
CREATE INDEX IF NOT EXISTS of_session ON messages (session);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='', tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE temp.question USING fts5 (text, tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE temp.asked USING fts5vocab (temp, question, 'row');
"""
COLUMNS = "number, message_id, session, role, operation, at, text"
QUESTION_LENGTH = 3000
QUESTION_WORDS = 24
LOOKED_UP = 48
SPARE = 20


class Archive:
    """The database of the archive. A damaged file is put aside. If no file can be written, it is kept in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = _opened(path)
        self._lengths = array("L")
        """The lengths of the messages by number. A forgotten message still has its place in the list."""

    def take(self, rows: Iterable[Row]) -> None:
        """Adds messages with their words, all of them or none. Messages that are already there stay as they are."""
        with self._transaction():
            for row in rows:
                inserted_row = self._db.execute(
                    "INSERT OR IGNORE INTO messages (length, message_id, session, role, operation, at, text)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
                if inserted_row.rowcount > 0:
                    self._db.execute(
                        "INSERT INTO words (rowid, text) VALUES (?, ?)", (inserted_row.lastrowid, indexed(row[-1]))
                    )

    def known(self, session: str) -> dict[str, bool]:
        """Returns the ids of a session's messages, and whether each was forgotten."""
        query = "SELECT message_id, text = '' AND length > 0 FROM messages WHERE session = ?"
        with self._forgiving("known"):
            return {message_id: bool(is_forgotten) for message_id, is_forgotten in self._db.execute(query, (session,))}
        return {}

    def search(self, question: str, limit: int, leave_out: Collection[str], reach: Reach) -> list[ArchiveHit]:
        with self._forgiving("search"):
            highest_number: int = self._db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
            weights = rank(self._words(question, reach), highest_number, reach.neighbours)
            best_numbers = nlargest(limit + len(leave_out) + SPARE, weights.items(), key=itemgetter(1))
            return list(self._take(best_numbers, limit, leave_out))
        return []

    def forget(self, numbers: Iterable[int]) -> None:
        """Removes the text of messages for good. Their numbers stay taken, so that no session adds the messages
        again."""
        with self._forgiving("forget"), self._transaction():
            for number in numbers:
                row = self._db.execute("SELECT text FROM messages WHERE number = ?", (number,)).fetchone()
                if row and row[0]:
                    self._db.execute(
                        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (number, indexed(row[0]))
                    )
                    self._db.execute("UPDATE messages SET text = '' WHERE number = ?", (number,))

    def holding(self, words: str) -> list[ArchiveHit]:
        """Returns every message that contains exactly these words."""
        with self._forgiving("holding"):
            folded_words = folded(words)
            rows = self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE text != ''")
            return [ArchiveHit(*row) for row in rows if folded_words in folded(row[-1])]
        return []

    def count(self) -> int:
        with self._forgiving("count"):
            return self._db.execute("SELECT count(*) FROM messages WHERE text != ''").fetchone()[0]
        return 0

    def close(self) -> None:
        self._db.close()

    def _words(self, question: str, reach: Reach) -> Iterator[QueryWord]:
        """Returns the rarest words of the question that are in the archive, with the messages they occur in."""
        db, postings_left = self._db, reach.places
        db.execute("DELETE FROM question")
        db.execute("INSERT INTO question VALUES (?)", (indexed(question[:QUESTION_LENGTH]),))
        word_shares = shares(question[:QUESTION_LENGTH])
        weights = {
            row[0]: telling(row[0]) * word_shares.get(row[0], 1.0) for row in db.execute("SELECT term FROM asked")
        }
        heaviest_terms = sorted(weights, key=weights.__getitem__, reverse=True)[:LOOKED_UP]
        row_ids = {term: self._places(term, reach.of_a_word) for term in heaviest_terms}
        for term in sorted(row_ids, key=lambda term: len(row_ids[term]) / weights[term])[:QUESTION_WORDS]:
            postings_left -= len(row_ids[term])
            if postings_left < 0:
                return
            yield QueryWord(len(row_ids[term]), weights[term], self._postings(row_ids[term]))

    def _places(self, term: str, most: int) -> list[int]:
        """Returns the latest messages with a term, up to a limit, because a term in more messages is too common to
        help."""
        # The index holds pairs of Japanese characters, so a single one is searched as the beginning of a pair.
        match_query = f'"{term}"*' if len(term) == 1 and not term.isascii() else f'"{term}"'
        rows = self._db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (match_query, most)
        )
        return [row[0] for row in rows]

    def _postings(self, places: list[int]) -> list[Posting]:
        lengths = self._lengths
        for row in self._db.execute("SELECT number, length FROM messages WHERE number > ?", (len(lengths),)):
            lengths.extend([0] * (row[0] - len(lengths) - 1))
            lengths.append(row[1])
        return [Posting(row_id, lengths[row_id - 1]) for row_id in places]

    def _take(
        self, ranked: Iterable[tuple[int, float]], limit: int, leave_out: Collection[str]
    ) -> Iterator[ArchiveHit]:
        for number, share in ranked:
            if limit <= 0:
                return
            row = self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE number = ?", (number,)).fetchone()
            if row and row[-1] and row[1] not in leave_out:
                limit -= 1
                yield ArchiveHit(*row, share=share)

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


def _opened(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _connect(path)
    except sqlite3.OperationalError as problem:
        log.warning("archive %s cannot be used: %s", path, problem)
    except sqlite3.DatabaseError as problem:
        log.warning("archive %s is damaged and put aside: %s", path, problem)
        path.replace(path.with_suffix(".damaged"))
        return _connect(path)
    except OSError as problem:
        log.warning("archive %s cannot be used: %s", path, problem)
    return _connect(None)


def _connect(path: Path | None) -> sqlite3.Connection:
    if path:
        make_private(path)
    db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


log = logging.getLogger(__name__)


class Inbox:
    """A file where messages wait until the archive has taken them all. Raises OSError when the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def put(self, row: Row) -> None:
        with self._locked() as descriptor:
            os.write(descriptor, json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def waiting(self) -> bool:
        try:
            return (os.fstat(self._file) if self._file >= 0 else self._path.stat()).st_size > 0
        except FileNotFoundError:
            return False

    @contextmanager
    def emptied(self) -> Generator[list[Row]]:
        """Yields the waiting rows, and removes them when the block ends without an error. No process can add rows
        meanwhile."""
        with self._locked() as descriptor:
            file_bytes = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            yield list(_rows(file_bytes))
            os.ftruncate(descriptor, 0)

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
    """Reads the rows of waiting messages. An incomplete last line is left out."""
    for line in data.split(b"\n"):
        with suppress(ValueError):
            size, message_id, session, role, operation, timestamp, text = json.loads(line)
            yield size, message_id, session, role, operation, timestamp, text


INDEX_EVERY = 32
"""The number of messages that are indexed together. Each message is on disk at once, and indexed at the latest before a
search."""


class Gravel:
    """The archive. It is only an aid: when its files cannot be used, the conversation continues without it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inbox = Inbox(path.with_suffix(".inbox"))
        self._unwritten: list[Row] = []
        self._put = 0
        self._only_ours = True

    @property
    def is_new(self) -> bool:
        """Says whether the archive holds only messages that this process has added."""
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
        """Adds the messages of a session that are missing, because there was no archive yet or it could not be written.
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
        """Returns the messages that answer the question best, the best first."""
        self._settle()
        return self._archive.search(_sound(question), limit, leave_out, reach)

    def forget(self, numbers: Iterable[int]) -> None:
        """Removes the text of messages for good. Their numbers stay taken, so that no session adds the messages
        again."""
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
        from duckflow.memory.gravel import Archive

        return Archive(self._path)


def _sound(text: str) -> str:
    """Replaces halves of characters (lone surrogates), which cannot be stored."""
    return text.encode("utf-8", "replace").decode()

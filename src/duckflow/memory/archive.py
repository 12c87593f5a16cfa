"""The archive's database: every message, and the index for searching it."""

import contextlib
import logging
import sqlite3
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from duckflow.memory.archive_hit import ArchiveHit, Reach, Row
from duckflow.memory.terms import Posting, QueryWord, indexed, rank, shares, telling
from duckflow.state.data import folded
from duckflow.whole_file import make_private

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
CREATE VIRTUAL TABLE temp.question USING fts5 (text, tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE temp.asked USING fts5vocab (temp, question, 'row');
"""
COLUMNS = "number, message_id, session, role, operation, at, text"
QUESTION_LENGTH = 3000
QUESTION_WORDS = 24
LOOKED_UP = 48
SPARE = 20


class Archive:
    """The archive. A damaged file is put aside; where none can be written, the archive lives in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = _opened(path)
        self._lengths = array("L")
        """The lengths of the messages by number; a forgotten number keeps its place."""

    def take(self, rows: Iterable[Row]) -> None:
        """Adds messages with their words, all or none. Messages that are already there stay as they are."""
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
            total: int = self._db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
            weights = rank(self._words(question, reach), total, reach.neighbours)
            best = nlargest(limit + len(leave_out) + SPARE, weights.items(), key=itemgetter(1))
            return list(self._take(best, limit, leave_out))
        return []

    def forget(self, numbers: Iterable[int]) -> None:
        """Removes the text of messages for good. Their places stay, so that no session brings them back."""
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
        """Returns the rarest words of the question that occur at all, with the messages they occur in."""
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
        """Returns the latest messages with a term, up to a limit: a term in more messages is a common one anyway."""
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

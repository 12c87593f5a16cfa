"""What each turn changed, and what is being changed right now."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from duckflow.safety.shown import shown
from duckflow.safety.undo.database import Database
from duckflow.safety.undo.fact import Fact, dump_fact, load_fact, load_facts
from duckflow.safety.undo.turn import TurnState, UndoTurn
from duckflow.state.phrase import Phrase, say

NAMED = 5
CHANGE = "change"
COMMAND = "command"
RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Change:
    """What a turn made of a path. Not `sure`: Duckflow was interrupted, so someone else may have had a hand in it."""

    path: str
    before: Fact | None
    after: Fact | None
    sure: bool = True
    undone: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """A change, command or undo under way; one that is left over from a crash is closed later."""

    window_id: int
    turn: UndoTurn
    token: str
    kind: str
    roots: tuple[str, ...]
    before: str


class UndoLedger:
    """Tables of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, turn: UndoTurn, token: str, kind: str, roots: Iterable[str], before: str) -> int:
        self._database.execute(
            "INSERT INTO windows (session, turn, token, kind, roots, before) VALUES (?, ?, ?, ?, ?, ?)",
            (*turn, token, kind, json.dumps(list(roots)), before),
        )
        return self._database.execute("SELECT last_insert_rowid()")[0][0]

    def close(self, window_id: int) -> None:
        self._database.execute("DELETE FROM windows WHERE id = ?", (window_id,))

    def windows(self) -> list[Window]:
        rows = self._database.execute("SELECT id, session, turn, token, kind, roots, before FROM windows ORDER BY id")
        return [
            Window(row[0], UndoTurn(row[1], row[2]), row[3], row[4], tuple(json.loads(row[5])), row[6]) for row in rows
        ]

    def record(self, turn: UndoTurn, changes: Iterable[Change]) -> None:
        """A path changed twice in a turn keeps what it was first and what it is now."""
        found = list(changes)
        if found:
            self._touch(turn)
            self.mark_undone(turn, False)
        self._database.each(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET "
            "after = excluded.after, sure = min(sure, excluded.sure), undone = 0",
            [(*turn, os.fsencode(one.path), dump_fact(one.before), dump_fact(one.after), one.sure) for one in found],
        )

    def changes(self, turn: UndoTurn) -> list[Change]:
        """Without paths that ended as they began."""
        rows = self._database.execute(
            "SELECT path, before, after, sure, undone FROM changes WHERE session = ? AND turn = ? ORDER BY path", turn
        )
        return [
            Change(os.fsdecode(path), load_fact(before), load_fact(after), bool(sure), bool(undone))
            for path, before, after, sure, undone in rows
            if before != after
        ]

    def settle(self, turn: UndoTurn, changes: Iterable[Change]) -> None:
        """What was found when a turn was undone or redone."""
        self._database.each(
            "UPDATE changes SET before = ?, after = ?, sure = ?, undone = ? "
            "WHERE session = ? AND turn = ? AND path = ?",
            [
                (dump_fact(one.before), dump_fact(one.after), one.sure, one.undone, *turn, os.fsencode(one.path))
                for one in changes
            ],
        )

    def mark_undone(self, turn: UndoTurn, undone: bool) -> None:
        """Turns are redone in the opposite order of being undone."""
        order = self._database.execute("SELECT coalesce(max(undone), 0) + 1 FROM turns")[0][0] if undone else 0
        self._database.execute("UPDATE turns SET undone = ? WHERE session = ? AND turn = ?", (order, *turn))

    def turns(self, session: str) -> list[TurnState]:
        """Those that changed something, covered or not."""
        rows = self._database.execute(
            "SELECT turn, undone, "
            "(SELECT count(*) FROM changes WHERE session = t.session AND turn = t.turn AND before != after), "
            "(SELECT count(*) FROM uncovered WHERE session = t.session AND turn = t.turn) "
            "FROM turns AS t WHERE session = ? ORDER BY turn",
            (session,),
        )
        return [TurnState(turn, files, undone) for turn, undone, files, others in rows if files or others]

    def leave_out(self, turn: UndoTurn, kind: str, names: Mapping[str, int]) -> None:
        """Something the turn may have changed that undo does not cover, with how many files."""
        if names:
            self._touch(turn)
        self._database.each(
            "INSERT INTO uncovered VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = max(count, excluded.count)",
            [(*turn, kind, os.fsencode(name), count) for name, count in names.items()],
        )

    def left_out(self, turn: UndoTurn) -> list[Phrase]:
        """One phrase a kind."""
        rows = self._database.execute(
            "SELECT kind, name, count FROM uncovered WHERE session = ? AND turn = ? ORDER BY kind, count DESC, name",
            turn,
        )
        kinds: dict[str, list[tuple[str, int]]] = {}
        for kind, name, count in rows:
            kinds.setdefault(kind, []).append((os.fsdecode(name), count))
        return [uncovered(kind, dict(names)) for kind, names in kinds.items()]

    def left_out_names(self, turn: UndoTurn) -> set[str]:
        rows = self._database.execute("SELECT name FROM uncovered WHERE session = ? AND turn = ?", turn)
        return {os.fsdecode(name) for (name,) in rows}

    def forget(self, turn: UndoTurn) -> None:
        for table in ("turns", "changes", "uncovered"):
            self._database.execute(f"DELETE FROM {table} WHERE session = ? AND turn = ?", turn)
        self._database.execute(
            "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)", turn
        )

    def forgotten(self, session: str) -> int:
        """The last turn of which nothing is known any more; 0 for none."""
        rows = self._database.execute("SELECT turn FROM forgotten WHERE session = ?", (session,))
        return rows[0][0] if rows else 0

    def oldest_first(self) -> list[UndoTurn]:
        return [UndoTurn(*row) for row in self._database.execute("SELECT session, turn FROM turns ORDER BY at")]

    def blobs(self) -> set[str]:
        """Every content that a turn, or a change under way, may need."""
        rows = self._database.execute("SELECT before, after FROM changes")
        facts = [load_fact(text) for row in rows for text in row]
        for window in self.windows():
            if window.kind == CHANGE:
                facts += load_facts(window.before).values()
        return {fact.blob for fact in facts if fact}

    def _touch(self, turn: UndoTurn) -> None:
        self._database.execute("INSERT OR IGNORE INTO turns (session, turn, at) VALUES (?, ?, ?)", (*turn, time.time()))


def uncovered(kind: str, names: Mapping[str, int]) -> Phrase:
    """`count` files, of which the first few places are named."""
    listed = ", ".join(shown(name) for name in list(names)[:NAMED])
    return say(f"undo.{kind}", count=sum(names.values()), names=listed + (", …" if len(names) > NAMED else ""))

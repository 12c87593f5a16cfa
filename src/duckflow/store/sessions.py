"""The sessions of one work folder: which there are, and copying one for a fork."""

import contextlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from duckflow.errors import UsageError
from duckflow.events.types import MessageAdded, SessionOpened
from duckflow.store.journal import Journal


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One line of the list of sessions."""

    session_id: str
    path: Path
    title: str
    updated: float
    turns: int


def new_session_id() -> str:
    """Sorts by time, and two started in the same second differ."""
    return time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3)


class Sessions:
    """The journals in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.db"

    def list(self) -> list[SessionEntry]:
        """Newest first. Sessions in which nothing was said are left out."""
        return [entry for path in self._by_age() if (entry := _entry(path))]

    def latest(self) -> SessionEntry:
        for path in self._by_age():
            if entry := _entry(path):
                return entry
        raise UsageError("sessions.none")

    def find(self, wanted: str) -> SessionEntry:
        """By id, by the beginning of one, or by its number in the list."""
        entries = self.list()
        if wanted.isdigit() and 1 <= int(wanted) <= len(entries):
            return entries[int(wanted) - 1]
        hits = [entry for entry in entries if entry.session_id.startswith(wanted)]
        if len(hits) != 1:
            raise UsageError("sessions.unknown" if not hits else "sessions.ambiguous", wanted=wanted)
        return hits[0]

    def fork(self, source: Path) -> Path:
        """A new journal with all events of `source` under a new id."""
        session_id = new_session_id()
        target = Journal(self.path(session_id))
        origin = Journal(source)
        with closing(origin), closing(target):
            for _, event in origin.events():
                if isinstance(event, SessionOpened):
                    event = event.model_copy(update={"session_id": session_id, "forked_from": event.session_id})
                target.append(event)
        return target.path

    def _by_age(self) -> Iterator[Path]:
        journals = [path for path in self.folder.glob("*.db") if ".damaged-" not in path.name]
        yield from sorted(journals, key=_last_change, reverse=True)


def _last_change(path: Path) -> float:
    """Reading leaves an empty write-ahead file behind: only a filled one tells of a change."""
    changed = path.stat().st_mtime
    with contextlib.suppress(OSError):
        ahead = path.with_name(path.name + "-wal").stat()
        changed = max(changed, ahead.st_mtime) if ahead.st_size else changed
    return changed


def _entry(path: Path) -> SessionEntry | None:
    """Reads only what the line needs; a journal that cannot be read still shows, so that it can be salvaged."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as db:
            first = db.execute("SELECT body FROM events WHERE kind = 'message_added' ORDER BY seq LIMIT 1").fetchone()
            turns = db.execute("SELECT count(*) FROM events WHERE kind = 'turn_began'").fetchone()[0]
        if first is None:
            return None
        title = MessageAdded.model_validate_json(first[0]).message.text
    except (sqlite3.Error, ValueError):
        title, turns = "?", 0
    return SessionEntry(path.stem, path, title, _last_change(path), turns)

"""The sessions of one user: first the sessions of a work folder, then those of all other folders."""

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import UsageError
from duckflow.events.types import MessageAdded, SessionOpened, SessionTitled, UsageReported
from duckflow.events.views import SessionSummary
from duckflow.state.agent import Headline
from duckflow.store.journal import Journal, JournalReader, Lock, connect_read_only, read_event
from duckflow.store.pictures import copy_pictures, remove_pictures


def read_headline(path: Path) -> Headline | None:
    """Returns the headline of a session; None if nothing was said in it. An unreadable journal gets an untitled
    headline."""
    try:
        with closing(connect_read_only(path)) as db:
            return _kept_headline(db) or _gathered(db)
    except (OSError, sqlite3.Error, ValueError):
        return Headline(title="?")


def _kept_headline(db: sqlite3.Connection) -> Headline | None:
    with contextlib.suppress(sqlite3.Error, ValueError):
        if row := db.execute("SELECT body FROM headline").fetchone():
            return Headline.model_validate_json(row[0])
    return None


def _gathered(db: sqlite3.Connection) -> Headline | None:
    """Computes the headline from the events. That is needed if no turn has ended, because a headline is stored at the
    end of a turn."""
    first_row = db.execute("SELECT body FROM events WHERE kind = 'message_added' ORDER BY seq LIMIT 1").fetchone()
    if first_row is None:
        return None
    opened_row = db.execute("SELECT body FROM events WHERE kind = 'session_opened' ORDER BY seq LIMIT 1").fetchone()
    turns = db.execute("SELECT count(*) FROM events WHERE kind = 'turn_began'").fetchone()[0]
    reports = db.execute("SELECT body FROM events WHERE kind = 'usage_reported'").fetchall()
    usages = [UsageReported.model_validate_json(body).usage for (body,) in reports]
    request = MessageAdded.model_validate_json(first_row[0]).message.text
    return Headline(
        title=request,
        asked=request,
        folder=SessionOpened.model_validate_json(opened_row[0]).folder if opened_row else "",
        turns=turns,
        cost_usd=sum(usage.cost_usd for usage in usages),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
    )


PARTS = (".db", ".db-wal", ".db-shm", ".lock")


NUMBERED = re.compile(r" \(\d+\)$")


class SessionEntry(NamedTuple):
    """One line of the list of sessions. `here` means that the session belongs to the present folder."""

    session_id: str
    path: Path
    headline: Headline
    updated: float
    here: bool = True

    def summary(self) -> SessionSummary:
        headline = self.headline
        return SessionSummary(
            self.session_id,
            headline.title,
            headline.asked,
            headline.folder,
            headline.turns,
            headline.cost_usd,
            self.updated,
            self.here,
            headline.archived,
        )


def new_session_id() -> str:
    """Makes an id that sorts by time; two made in the same second differ."""
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


class Sessions:
    """The journals of one work folder, and those of the user's other folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.db"

    def here(self) -> list[SessionEntry]:
        """Returns the sessions of this folder, newest first. Sessions in which nothing was said are left out."""
        return list(_entries(self.folder.glob("*.db"), here=True))

    def elsewhere(self) -> list[SessionEntry]:
        """Returns the sessions of all other folders. The folder that was used last comes first; within a folder, the
        newest session."""
        folders = [folder for folder in self.folder.parent.glob("*/") if folder != self.folder]
        entry_groups = [list(_entries(folder.glob("*.db"), here=False)) for folder in folders]
        entry_groups.sort(key=lambda group: group[0].updated if group else 0, reverse=True)
        return [entry for group in entry_groups for entry in group]

    def all(self) -> list[SessionEntry]:
        """Returns all sessions, in the order of their numbers in the list."""
        return [*self.here(), *self.elsewhere()]

    def latest(self) -> SessionEntry:
        for entry in _entries(self.folder.glob("*.db"), here=True):
            return entry
        raise UsageError("sessions.none")

    def find(self, wanted: str) -> SessionEntry:
        """Finds a session by its number in the list, or by the beginning of its id, first in this folder, then in other
        folders."""
        if wanted.isdecimal() and len(wanted) <= 6:
            entries = self.all()
            if 1 <= int(wanted) <= len(entries):
                return entries[int(wanted) - 1]
        matching_entries = self._beginning(wanted)
        if len(matching_entries) != 1:
            raise UsageError("sessions.unknown" if not matching_entries else "sessions.ambiguous", wanted=wanted)
        return matching_entries[0]

    def fork(self, source: Path) -> Path:
        """Makes a new journal with all events of `source` under a new id and a title of its own. The source is only
        read, so it may be open elsewhere."""
        session_id = new_session_id()
        fork_path = source.with_name(f"{session_id}.db")
        headline = read_headline(source)
        with closing(JournalReader.open(source)) as source_journal:
            source_journal.check()
            with closing(Journal(fork_path)) as journal:
                copy_events(source_journal, journal, session_id)
                if headline:
                    title_event = SessionTitled(title=self._next_title(headline.title or headline.asked))
                    journal.append(title_event)
                    journal.save_headline(headline.model_copy(update={"title": title_event.title}).model_dump_json())
        return fork_path

    def _next_title(self, title: str) -> str:
        """Returns the title with the lowest number in brackets that no session has yet."""
        base_title = NUMBERED.sub("", title)
        titles_in_use = {entry.headline.title or entry.headline.asked for entry in self.all()}
        return next(name for number in count(2) if (name := f"{base_title} ({number})") not in titles_in_use)

    def rename(self, entry: SessionEntry, title: str) -> None:
        with closing(Journal(entry.path)) as journal:
            journal.check()
            title_event = SessionTitled(title=title)
            journal.append(title_event)
            journal.save_headline(entry.headline.model_copy(update={"title": title_event.title}).model_dump_json())

    def archive(self, entry: SessionEntry, away: bool) -> None:
        with closing(Journal(entry.path)) as journal:
            journal.check()
            journal.save_headline(entry.headline.model_copy(update={"archived": away}).model_dump_json())

    def remove(self, entry: SessionEntry) -> None:
        """Removes a session for good, unless it is open somewhere."""
        lock = Lock(entry.path.with_suffix(".lock"))
        try:
            for suffix in PARTS:
                entry.path.with_suffix(suffix).unlink(missing_ok=True)
            remove_pictures(entry.path)
        finally:
            lock.release()

    def _beginning(self, wanted: str) -> list[SessionEntry]:
        """Returns the sessions whose id begins with `wanted`. No other session is opened."""
        if not wanted or set(wanted) & set("/*?["):
            return []
        entries = list(_entries(self.folder.glob(f"{wanted}*.db"), here=True))
        return entries or list(_entries(self.folder.parent.glob(f"*/{wanted}*.db"), here=False))


def copy_events(
    origin: JournalReader, journal: Journal, session_id: str, until: int = -1, moved: tuple[Path, Path] | None = None
) -> None:
    """Copies the events of a session, or only the first `until`, into a new journal. `moved` holds the session's
    folder, and the folder that takes its place in the copied events."""
    origin.check()
    names = [json.dumps(str(folder), ensure_ascii=False)[1:-1] for folder in moved or ()]
    for row in origin.first(until, 0):
        body = re.sub(rf"{re.escape(names[0])}(?![\w.-])", lambda _: names[1], row.body) if names else row.body
        if row.kind == SessionOpened.kind and isinstance(event := read_event(row._replace(body=body)), SessionOpened):
            new_fields = {"session_id": session_id, "forked_from": event.session_id}
            journal.append(event.model_copy(update=new_fields))
        else:
            journal.append_row(row.kind, body)
    copy_pictures(origin.path, journal.path)


def _entries(journals: Iterable[Path], here: bool) -> Iterator[SessionEntry]:
    undamaged_paths = [path for path in journals if ".damaged-" not in path.name and path.is_file()]
    for changed_at, path in sorted(((_last_change(path), path) for path in undamaged_paths), reverse=True):
        if headline := read_headline(path):
            yield SessionEntry(path.stem, path, headline, changed_at, here)


def _last_change(path: Path) -> float:
    """Returns the time of the last change. Reading leaves an empty write-ahead file behind, so this file counts only if
    it has content."""
    changed_at = path.stat().st_mtime
    with contextlib.suppress(OSError):
        log_stat = path.with_name(path.name + "-wal").stat()
        changed_at = max(changed_at, log_stat.st_mtime) if log_stat.st_size else changed_at
    return changed_at

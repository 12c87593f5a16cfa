"""Opening a damaged journal: everything up to the damage is kept, the damaged file is put aside."""

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from duckflow.errors import JournalError
from duckflow.events.types import Event
from duckflow.store.journal import Journal


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came of it: how many events were saved, and where the damaged file now lies."""

    kept: int
    aside: Path


def salvage(path: Path) -> Salvaged:
    """Replace the journal at `path` by one with all events before the damage."""
    aside = path.with_name(f"{path.stem}.damaged-{int(time.time())}{path.suffix}")
    saved = _readable(path)
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    fresh = Journal(path)
    for event in saved:
        fresh.append(event)
    fresh.close()
    return Salvaged(len(saved), aside)


def _readable(path: Path) -> list[Event]:
    saved: list[Event] = []
    with contextlib.suppress(JournalError, sqlite3.Error):
        damaged = Journal(path)
        try:
            for _, event in damaged.events():
                saved.append(event)
        finally:
            damaged.close()
    return saved

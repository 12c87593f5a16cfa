"""What a list of sessions shows of each, kept beside the events so that the list need not read them."""

import contextlib
import sqlite3
from contextlib import closing
from pathlib import Path

from duckflow.events.types import MessageAdded, SessionOpened, UsageReported
from duckflow.state.agent import AgentState
from duckflow.state.noun import Line100, Value
from duckflow.store.journal import connect_read_only


class Headline(Value):
    """One session in a line. `asked` is how it began, `title` what it turned out to be about."""

    title: Line100 = ""
    asked: Line100 = ""
    folder: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    archived: bool = False
    """The user has put it away. Going on with the session brings it back."""

    @classmethod
    def of(cls, state: AgentState) -> "Headline":
        return cls(
            title=state.heading,
            asked=state.title,
            folder=state.folder,
            turns=state.turn,
            cost_usd=state.usage.cost_usd,
            tokens=state.usage.prompt_tokens + state.usage.completion_tokens,
        )


def read_headline(path: Path) -> Headline | None:
    """Nothing for a session in which nothing was said; a journal that cannot be read has one without a title."""
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
    """Read from the events themselves: a turn that never ended has left no headline."""
    first = db.execute("SELECT body FROM events WHERE kind = 'message_added' ORDER BY seq LIMIT 1").fetchone()
    if first is None:
        return None
    opened = db.execute("SELECT body FROM events WHERE kind = 'session_opened' ORDER BY seq LIMIT 1").fetchone()
    turns = db.execute("SELECT count(*) FROM events WHERE kind = 'turn_began'").fetchone()[0]
    told = db.execute("SELECT body FROM events WHERE kind = 'usage_reported'").fetchall()
    usages = [UsageReported.model_validate_json(body).usage for (body,) in told]
    asked = MessageAdded.model_validate_json(first[0]).message.text
    return Headline(
        title=asked,
        asked=asked,
        folder=SessionOpened.model_validate_json(opened[0]).folder if opened else "",
        turns=turns,
        cost_usd=sum(usage.cost_usd for usage in usages),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
    )

"""`/resume` and `/fork`: from one session to another."""

import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence

from duckflow.errors import UsageError
from duckflow.store.sessions import SessionEntry, Sessions
from duckflow.ui.commands.command import Command, Group
from duckflow.ui.counter import Counter, Switch
from duckflow.ui.i18n.words import Words
from duckflow.ui.session_rows import SessionRow, session_lines, session_rows

Pick = Callable[[Sequence[SessionRow], Words], Awaitable[SessionRow | None]]
LISTED = 20
LINE_WIDTH = 78


class SessionCommands:
    """Needs to know where the sessions are, and how one is picked; without a `pick` they are listed by number."""

    def __init__(self, sessions: Sessions, pick: Pick | None) -> None:
        self._sessions = sessions
        self._pick = pick

    def group(self) -> Group:
        return (Command("resume", self._resume), Command("fork", self._fork))

    async def _resume(self, counter: Counter, wanted: str) -> str:
        words, state = counter.words, counter.desk.state
        if state.turn_open:
            return words("resume.busy")
        try:
            entry = self._named(wanted) if wanted else await self._chosen(counter)
        except UsageError as problem:
            return words.error(problem)
        if isinstance(entry, str):
            return entry
        if entry.session_id == state.session_id:
            return words("resume.same")
        raise Switch(entry.path)

    async def _chosen(self, counter: Counter) -> SessionEntry | str:
        words, entries = counter.words, self._sessions.all()
        if not entries:
            return words("sessions.none")
        rows = session_rows(entries, words, time.time())
        if self._pick is None:
            listed = session_lines(rows[:LISTED], LINE_WIDTH, with_id=False)
            return "\n".join([*listed, words("resume.usage")])
        row = await self._pick(rows, words)
        return entries[row.number - 1] if row else words("resume.stays")

    def _named(self, wanted: str) -> SessionEntry:
        return self._sessions.find(unicodedata.normalize("NFKC", wanted).strip())

    def _fork(self, counter: Counter, _: str) -> str:
        state = counter.desk.state
        if state.turn_open:
            return counter.words("resume.busy")
        if state.turn == 0:
            return counter.words("fork.nothing")
        raise Switch(self._sessions.path(state.session_id), fork=True)

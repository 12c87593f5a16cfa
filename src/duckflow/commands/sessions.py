"""`/resume`, `/fork` and `/export`: other sessions, and this one as a document."""

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence

from duckflow.commands.command import Command, CommandContext, Group, Switch
from duckflow.commands.export.document import Format, chosen_format, rendered, save, target
from duckflow.commands.export.transcript import Transcript
from duckflow.commands.session_rows import SessionRow, session_lines, session_rows
from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words
from duckflow.store.sessions import SessionEntry, Sessions

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

    async def _resume(self, counter: CommandContext, wanted: str) -> str:
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

    async def _chosen(self, counter: CommandContext) -> SessionEntry | str:
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

    def _fork(self, counter: CommandContext, _: str) -> str:
        state = counter.desk.state
        if state.turn_open:
            return counter.words("resume.busy")
        if state.turn == 0:
            return counter.words("fork.nothing")
        raise Switch(self._sessions.path(state.session_id), fork=True)


AT_ONCE = 200


async def export(counter: CommandContext, line: str) -> str:
    """`/export [md|html] [FILE]`"""
    first, _, rest = line.partition(" ")
    wanted, file = (first, rest.strip()) if first in tuple(Format) else ("", line)
    words, state = counter.words, counter.desk.state
    form = chosen_format(wanted, file)
    try:
        path = target(file, state.session_id, form)
        transcript = Transcript()
        for number, event in enumerate(counter.desk.events()):
            transcript.hear(event)
            if number % AT_ONCE == 0:
                # A long session takes a while to read; the chat stays live meanwhile.
                await asyncio.sleep(0)
        save(path, await asyncio.to_thread(rendered, transcript, words, form))
    except DuckflowError as problem:
        return words.error(problem)
    return words("export.written", path=str(path.resolve()))


EXPORT = (Command("export", export, tuple(Format)),)

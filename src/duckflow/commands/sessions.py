"""`/resume`, `/fork` and `/export`: other sessions, and this one as a document."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.export.document import Format, chosen_format, rendered, save, target
from duckflow.commands.export.transcript import Transcript
from duckflow.commands.session_rows import SessionRow, session_lines, session_rows
from duckflow.i18n.words import Words

Pick = Callable[[Sequence[SessionRow], Words], Awaitable[SessionRow | None]]
LISTED = 20
LINE_WIDTH = 78


class SessionCommands:
    """Needs to know how a session is picked; without a `pick` they are listed by number."""

    def __init__(self, pick: Pick | None) -> None:
        self._pick = pick

    def group(self) -> Group:
        return (Command("resume", self._resume), Command("fork", self._fork))

    async def _resume(self, context: CommandContext, wanted: str) -> str:
        if context.conversation.state.turn_open:
            return context.words("resume.busy")
        if wanted:
            context.conversation.sessions.switch(wanted)
            return ""
        return await self._choose(context)

    async def _choose(self, context: CommandContext) -> str:
        words, sessions = context.words, context.conversation.sessions
        rows = session_rows(sessions.all(), words, time.time())
        if not rows:
            return words("sessions.none")
        if self._pick is None:
            listed = session_lines(rows[:LISTED], LINE_WIDTH, with_id=False)
            return "\n".join([*listed, words("resume.usage")])
        row = await self._pick(rows, words)
        if row is None:
            return words("resume.stays")
        sessions.switch(row.session_id)
        return ""

    def _fork(self, context: CommandContext, _: str) -> str:
        context.conversation.sessions.fork()
        return ""


AT_ONCE = 200


async def export(context: CommandContext, line: str) -> str:
    """`/export [md|html] [FILE]`"""
    first, _, rest = line.partition(" ")
    wanted, file = (first, rest.strip()) if first in tuple(Format) else ("", line)
    words, state = context.words, context.conversation.state
    form = chosen_format(wanted, file)
    path = target(file, state.session_id, form, Path(state.folder))
    transcript = Transcript()
    for number, event in context.conversation.record():
        transcript.hear(number, event)
        if number % AT_ONCE == 0:
            # A long session takes a while to read; the chat stays live meanwhile.
            await asyncio.sleep(0)
    save(path, await asyncio.to_thread(rendered, transcript, words, form))
    return words("export.written", path=str(path.resolve()))


EXPORT = (Command("export", export, tuple(Format)),)

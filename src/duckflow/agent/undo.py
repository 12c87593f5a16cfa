"""Keeps what is about to be changed, so that a turn can be taken back."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.agent.gatekeeper import Ready
from duckflow.agent.session import Session
from duckflow.events.types import MessageAdded, Noticed, TurnUndone
from duckflow.i18n.template import note
from duckflow.safety.path_names import shown
from duckflow.safety.risk import runs_later
from duckflow.state.message import Message
from duckflow.state.phrase import say

if TYPE_CHECKING:
    from duckflow.safety.undo.ledger import Change
    from duckflow.safety.undo.preview import Outcome, UndoPreview
    from duckflow.safety.undo.undo import Undo


class UndoKeeper:
    """Wraps every change. What does the keeping is made with the first change, or the first wish to undo."""

    def __init__(self, session: Session, make: "Callable[[], Undo]") -> None:
        self._session = session
        self._make = make
        self._made: Undo | None = None

    def around(self, one: Ready) -> AbstractAsyncContextManager[Any]:
        """Enter before the deed, leave after it. What only reads needs no keeping."""
        if one.tool.reads_only(one.args):
            return nullcontext()
        turn = self._session.state.turn
        tool, paths = one.tool, one.tool.touches(one.args)
        if tool.effect == "run" or not paths:
            command = tool.command(one.args)
            return self._around_command(turn, command, goes_on=tool.goes_on(one.args))
        return self._undo().change(turn, paths)

    @asynccontextmanager
    async def _around_command(self, turn: int, command: str, goes_on: bool) -> AsyncGenerator[None]:
        """A name that makes programs run later is told when a command has written it: nobody could ask before."""
        changed: list[Change] = []
        try:
            async with self._undo().command(turn, command if goes_on else "", command) as changed:
                yield
        finally:
            folder = Path(self._session.state.folder)
            for one in changed:
                if one.after and one.after.kind != "folder" and runs_later(one.path, one.before is None, folder):
                    self._session.emit(Noticed(what=say("risk.runs_later", path=shown(one.path))))

    async def diff(self, turn: int | None = None) -> "UndoPreview":
        return await self._undo().diff(turn)

    async def preview(self, back: bool) -> "UndoPreview":
        return await self._undo().preview(back)

    async def restore(self, back: bool, only_own: bool = False) -> "Outcome":
        """Take the latest turn back, or the latest undo; files that someone else changed since stay as they are.

        `only_own`: and also those that someone else may have changed while a command ran."""
        outcome = await self._undo().restore(back, only_own)
        files = ", ".join(outcome.changed) or "-"
        key = "turn_undone" if back else "turn_redone"
        told = note(self._session.state.language, key, turn=str(outcome.turn), files=files)
        self._session.emit(TurnUndone(turn=outcome.turn, back=back, changed=outcome.changed))
        self._session.emit(MessageAdded(message=Message(role="system", text=told, turn=self._session.state.turn)))
        return outcome

    async def close(self) -> None:
        if self._made:
            await self._made.close()

    def _undo(self) -> "Undo":
        if self._made is None:
            self._made = self._make()
        return self._made

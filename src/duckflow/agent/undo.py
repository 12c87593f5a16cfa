"""Keeps what is about to be changed, so that a turn can be taken back."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.gatekeeper import Ready
from duckflow.agent.session import Session
from duckflow.errors import ToolError
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


MOST_NAMED = 1000
"""A record names so many of the files that a command changed."""


class UndoKeeper:
    """Wraps every change. What does the keeping is made with the first change, or the first wish to undo."""

    def __init__(self, session: Session, make: "Callable[[], Undo]") -> None:
        self._session = session
        self._make = make
        self._made: Undo | None = None

    def around(self, ready: Ready, hooked: bool = False) -> AbstractAsyncContextManager[list[str]]:
        """Surrounds a deed. The list holds the files that a command changed, once it has ended; a tool that changes
        files tells them itself. `hooked`: programs of a hook run after the tool, so they count as a command."""
        tool, args = ready.tool, ready.args
        if tool.reads_only(args):
            return nullcontext([])
        paths = tool.touches(args)
        if tool.effect == "run" or not paths:
            return self.around_command(tool.command(args), tool.goes_on(args))
        return self._around_change(paths, hooked)

    @asynccontextmanager
    async def around_command(self, command: str, goes_on: bool = False) -> AsyncGenerator[list[str]]:
        """A name that makes programs run later is told when a command has written it: nobody could ask before."""
        changes: list[Change] = []
        paths: list[str] = []
        try:
            async with self._undo().command(self._session.state.turn, command if goes_on else "", command) as changes:
                yield paths
        finally:
            paths += changed_files(changes)
            folder = Path(self._session.state.folder)
            written = [change for change in changes if change.after and change.after.kind != "folder"]
            for change in written:
                if runs_later(change.path, change.before is None, folder):
                    self._session.emit(Noticed(what=say("risk.runs_later", path=shown(change.path))))

    @asynccontextmanager
    async def _around_change(self, paths: tuple[str, ...], hooked: bool) -> AsyncGenerator[list[str]]:
        around = self.around_command("") if hooked else nullcontext(list[str]())
        async with around as changed, self._undo().change(self._session.state.turn, paths):
            yield changed

    @asynccontextmanager
    async def watch(self, command: str) -> AsyncGenerator[list[str]]:
        """Surrounds a command of the user's own: what it changed is told, and belongs to no turn. It runs even where
        nothing can be noted."""
        from duckflow.safety.commands.judge import judge_command
        from duckflow.safety.commands.paths import CommandFacts

        changes: list[Change] = []
        paths: list[str] = []
        facts = CommandFacts(self._session.state.folder, str(Path.home()), git_runs_programs=False)
        async with AsyncExitStack() as stack:
            if judge_command(command, facts).verdict != "safe":
                with contextlib.suppress(ToolError):
                    changes = await stack.enter_async_context(self._undo().watch())
            yield paths
        paths += changed_files(changes)

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


def changed_files(changes: "Iterable[Change]") -> list[str]:
    """The files and links among the changes, in order; folders, and what belongs to git itself, are left out."""
    facts = {change.path: change.after or change.before for change in changes}
    files = (path for path, fact in facts.items() if fact and fact.kind != "folder" and ".git" not in path.split("/"))
    return sorted(files)[:MOST_NAMED]

"""Has the project's own checkers look at a turn's changes before it ends. Errors that it has brought go to the
model."""

import asyncio
from typing import TYPE_CHECKING

from duckflow.agent.diagnosis import Diagnosis
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.result_filter import ResultFilter
from duckflow.agent.session import StateOwner
from duckflow.events.types import MessageAdded, Noticed, Waiting
from duckflow.outcome import ended_well
from duckflow.safety.secrets import KnownSecrets, mask
from duckflow.state.message import Message
from duckflow.state.phrase import say

if TYPE_CHECKING:
    from duckflow.code.lsp import Diagnostic
    from duckflow.safety.undo.undo import FileVersions

TOLD = 10
MOST_RETURNS = 2


class DiagnoseChanges(Policy):
    """Checks once at the end of the edits; again only when the model has changed something since."""

    def __init__(self, owner: StateOwner, diagnosis: Diagnosis) -> None:
        self._owner = owner
        self._diagnosis = diagnosis
        self._filter = ResultFilter(owner.state)
        self._seen: list[FileVersions] = []
        self._left: dict[str, list[Diagnostic]] = {}
        self._returns = 0

    async def opening(self, turn: TurnSoFar) -> None:
        self._seen, self._left, self._returns = [], {}, 0

    async def after(self, turn: TurnSoFar) -> str | None:
        if not turn.ending or turn.ending.outcome != "done" or not turn.state.changed_in_turn:
            return None
        changes = await self._diagnosis.changes(turn.state.turn)
        names = await self._diagnosis.asked(changes)
        if not names or changes == self._seen:
            return None
        self._seen = changes
        seconds = round(self._diagnosis.settings.diagnostics_seconds)
        self._owner.emit(Waiting(why=say("wait.diagnostics", names=", ".join(names), seconds=seconds)))
        try:
            self._left = await self._diagnosis.new_errors(changes)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None:
                raise
            # The user does not want to wait for the checkers: the work itself is over.
            task.uncancel()
            self._left = {}
        if not self._left or self._returns >= MOST_RETURNS:
            return None
        self._returns += 1
        # A checker quotes the code, so its output is quoted like the code itself.
        text = "\n".join(self._lines(await self._filter.look()))
        message = Message(role="tool", operation="diagnostics", text=text, turn=turn.state.turn)
        self._owner.emit(MessageAdded(message=message))
        return turn.note("new_errors")

    async def ending(self, turn: TurnSoFar, ending: Ending) -> None:
        """Reports the errors that are left, beside the line that says done."""
        if not self._left or not ended_well(ending.outcome):
            return
        count = sum(map(len, self._left.values()))
        first = next(error for errors in self._left.values() for error in errors)
        known, names = await self._filter.look(), ", ".join(self._left)
        place = f"{mask(first.path, known.lines, known.values).text}:{first.line}"
        self._owner.emit(Noticed(what=say("diagnostics.left", names=names, count=count, place=place)))

    def _lines(self, known: KnownSecrets) -> list[str]:
        all_errors = [(name, error) for name, errors in self._left.items() for error in errors]
        entries = [(name, f"{error.path}:{error.line}: {error.message}") for name, error in all_errors[:TOLD]]
        lines = [f"{mask(text, known.lines, known.values).text} ({name})" for name, text in entries]
        return [*lines, f"[{len(all_errors) - TOLD} more]"] if len(all_errors) > TOLD else lines

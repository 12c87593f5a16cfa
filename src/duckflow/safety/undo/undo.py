"""Undo, redo and diff, per turn."""

import asyncio
import contextlib
import logging
import re
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from duckflow.errors import DuckflowError, PathRefused, ToolError
from duckflow.safety.commands.parse import named_targets
from duckflow.safety.path_names import shown
from duckflow.safety.undo.git_files import GIT, adds_only, git_folder
from duckflow.safety.undo.ledger import Change, Fact, UndoTurn
from duckflow.safety.undo.plan import UndoPlan, UndoStep, carry_out, make_plan
from duckflow.safety.undo.preview import Outcome, UndoPreview, describe, name_some
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.workspace import Workspace
from duckflow.state.phrase import Phrase, say

if TYPE_CHECKING:
    from duckflow.safety.undo.ledger import Change
    from duckflow.safety.undo.recorder import Recorder


class UndoDesk:
    """Each method is one transaction, or two where something must be on disk before files are touched."""

    def __init__(self, workspace: Workspace, data: Path, settings: UndoSettings) -> None:
        self._settings = settings
        self.recorder = Recorder(workspace, data, settings)
        self._ledger = self.recorder.ledger

    def diff(self, session: str, number: int | None) -> UndoPreview:
        with self.recorder.transaction():
            known = {turn.number: turn for turn in self._ledger.turns(session)}
            if not known:
                raise DuckflowError("undo.nothing")
            standing = [one for one, turn in known.items() if not turn.undone] or known
            turn = known.get(max(standing) if number is None else number)
            if turn is None:
                too_old = (number or 0) <= self._ledger.forgotten(session)
                raise DuckflowError("undo.forgotten_turn" if too_old else "undo.unknown_turn", turn=number or 0)
            return self._preview(turn, turn.changes, UndoPlan())

    def preview(self, session: str, back: bool) -> UndoPreview:
        with self.recorder.transaction():
            self.recorder.note_damage(session)
            turn = self._latest(session, back)
            planned = self._plan(turn, back)
            moves = [Change(step.path, step.fact, step.target) for step in (*planned.steps, *planned.conflicts)]
            return self._preview(turn, sorted(moves), planned)

    def restore(self, session: str, back: bool, only_own: bool) -> Outcome:
        with self.recorder.transaction():
            self.recorder.note_damage(session)
            turn = self._latest(session, back)
            planned = self._plan(turn, back)
            spared = planned.maybe_others if only_own and back else []
            left = planned.take_out([*planned.conflicts, *spared])
            window = self.recorder.open_restore(turn)
        try:
            stayed = carry_out(planned, self.recorder.tree)
        finally:
            self.recorder.close(window)
        with self.recorder.transaction():
            # What was not brought back (someone else's, or not possible) stays as the turn left it.
            untouched = {step.path for step in (*left, *planned.impossible)}
            turn.paths |= {one.path: one._replace(undone=back) for one in turn.changes if one.path not in untouched}
            turn.undone = self._ledger.last_undone() + 1 if back else 0
            self._ledger.save(turn)
            self.recorder.restored(step.path for step in planned.steps)
            left_out = self._left_out(turn, planned)
        if stayed:
            left_out.append(name_some("folder_kept", dict.fromkeys(stayed, 1)))
        if spared:
            left_out.append(name_some("spared", _names(spared)))
        return Outcome(turn.number, tuple(_names(planned.steps)), _conflicts(planned), tuple(left_out))

    def close(self) -> None:
        for one in (self.recorder.database, self.recorder.tree, self.recorder.presence):
            one.close()

    def _latest(self, session: str, back: bool) -> UndoTurn:
        """The last one that can be undone; redone they are in the opposite order of being undone."""
        fitting = [turn for turn in self._ledger.turns(session) if back != bool(turn.undone)]
        if not fitting:
            raise DuckflowError("undo.nothing" if back else "undo.nothing_to_redo")
        return max(fitting, key=lambda turn: turn.number if back else turn.undone)

    def _plan(self, turn: UndoTurn, back: bool) -> UndoPlan:
        """Back: as it was before the turn. Else: as the turn had made it."""
        # An object that is there again takes nothing away.
        changes = [one for one in turn.changes if one.undone != back and (back or not adds_only(one.path))]
        ways = ((one, *((one.after, one.before) if back else (one.before, one.after))) for one in changes)
        return make_plan(self._step(*way) for way in ways)

    def _step(self, change: Change, expected: Fact | None, want: Fact | None) -> UndoStep:
        now = self.recorder.tree.look(change.path)
        if now and expected and self.recorder.same_staged(change.path, expected, now.fact):
            expected = now.fact
        return UndoStep(change, expected, want, now)

    def _preview(self, turn: UndoTurn, moves: Sequence[Change], planned: UndoPlan) -> UndoPreview:
        impacts, diff = describe(moves, self.recorder.contents.get, self._settings)
        maybe = [step for step in planned.maybe_others if not step.change.undone]
        told = (name_some("maybe_yours", _names(maybe)),) if maybe else ()
        uncovered, nothing_else = tuple(self._left_out(turn, planned)), len(maybe) == len(planned.steps)
        return UndoPreview(turn.number, impacts, diff, uncovered, _conflicts(planned), told, nothing_else)

    def _left_out(self, turn: UndoTurn, planned: UndoPlan) -> list[Phrase]:
        found = [name_some(kind, names) for kind, names in sorted(turn.left_out.items())]
        named = {name for names in turn.left_out.values() for name in names}
        if impossible := [step for step in planned.impossible if step.path not in named]:
            found.append(name_some("impossible", _names(impossible)))
        if forgotten := self._ledger.forgotten(turn.session):
            found.append(say("undo.forgotten", turn=forgotten))
        return found


def _conflicts(planned: UndoPlan) -> tuple[Phrase, ...]:
    return tuple(say("undo.conflict", path=shown(path)) for path in _names(planned.conflicts))


def _names(steps: Iterable[UndoStep]) -> dict[str, int]:
    """The paths; git's own files are named by their `.git` alone."""
    return {git_folder(step.path) or step.path: 1 for step in steps}


log = logging.getLogger(__name__)
T = TypeVar("T")


class Undo:
    """Wraps every change and command of a session, and takes turns back. `data` lies outside the work folder and
    belongs to it alone; sessions in the same folder share it. All of it is on disk before a change happens, so it
    survives a crash at any moment."""

    def __init__(self, workspace: Workspace, data: Path, settings: UndoSettings, session: str = "") -> None:
        self._workspace = workspace
        self._data = data
        self._settings = settings
        self._session = session
        self._desk: UndoDesk | None = None
        self._lock = threading.Lock()

    def change(self, turn: int, paths: Sequence[str]) -> AbstractAsyncContextManager[list["Change"]]:
        """Around one change of Duckflow's own, with every path it may touch. Raises ToolError, before anything is
        changed, when what is there cannot be kept."""
        return self._window(lambda recorder: recorder.open_change(self._session, turn, self._roots(paths)))

    def command(self, turn: int, left_running: str = "", text: str = "") -> AbstractAsyncContextManager[list["Change"]]:
        """Around a command; what is given holds at the end what changed meanwhile. `left_running`: its name, when it
        goes on in the background after this ends. `text`: by it files are known that it writes. What else changes
        meanwhile may be somebody else's doing."""
        known = self._roots(named_targets(text, self._workspace.root))
        # Whoever names git means its files.
        known += [GIT] if re.search(r"\bgit\b", text) else []
        return self._window(lambda recorder: recorder.open_command(self._session, turn, left_running, known))

    def watch(self) -> AbstractAsyncContextManager[list["Change"]]:
        """Around a command of the user's own; what is given holds at the end what changed meanwhile. It belongs to no
        turn, so no undo takes it back."""
        return self._window(lambda recorder: recorder.open_watch(self._session))

    async def diff(self, turn: int | None = None) -> UndoPreview:
        """What a turn did; when none is named the latest one that is not undone."""
        return await self._do(lambda desk: desk.diff(self._session, turn))

    async def preview(self, back: bool = True) -> UndoPreview:
        """What `restore` would do."""
        return await self._do(lambda desk: desk.preview(self._session, back))

    async def restore(self, back: bool = True, only_own: bool = False) -> Outcome:
        """Bring back the files as they were before the latest turn; or undo the latest undo. Files that someone else
        changed since are conflicts, and stay as they are. `only_own`: so does what the preview calls `maybe_yours`."""
        return await self._do(lambda desk: desk.restore(self._session, back, only_own))

    async def close(self) -> None:
        if self._desk:
            await asyncio.to_thread(self._at_desk, lambda desk: desk.close())
            self._desk = None

    @asynccontextmanager
    async def _window(self, begin: Callable[["Recorder"], int | None]) -> AsyncGenerator[list["Change"]]:
        changed: list[Change] = []
        if not self._settings.enabled:
            yield changed
            return
        try:
            window = await asyncio.to_thread(self._at_desk, lambda desk: begin(desk.recorder))
        except (sqlite3.Error, OSError) as problem:
            message = f"Not done, because it could not be made undoable: {problem}. Tell the user."
            raise ToolError(message, "undo.unavailable", reason=str(problem)) from problem
        try:
            yield changed
        finally:
            if window is not None:
                # Also when the turn is being cancelled: what was done was done.
                await asyncio.shield(asyncio.to_thread(self._note, window, changed))

    def _note(self, window: int, changed: "list[Change]") -> None:
        try:
            changed += self._at_desk(lambda desk: desk.recorder.close(window))
        except (sqlite3.Error, OSError) as problem:
            # What was noted before is safe; what came of it is found out the next time.
            log.warning("undo: could not note what changed: %s", problem)

    def _roots(self, paths: Sequence[str]) -> list[str]:
        """With and without following a link in last place: a tool may write through it, or replace it."""
        found: dict[str, None] = {}
        for path, follow in product(paths, (False, True)):
            # A path that is refused here is refused to the tool as well.
            with contextlib.suppress(OSError, PathRefused):
                found[self._workspace.relative(path, follow).removeprefix("./")] = None
        found.pop(".", None)
        return list(found)

    async def _do(self, work: Callable[["UndoDesk"], T]) -> T:
        if not self._settings.enabled:
            raise DuckflowError("undo.off")
        try:
            return await asyncio.to_thread(self._at_desk, work)
        except (sqlite3.Error, OSError) as problem:
            raise DuckflowError("undo.unusable", reason=str(problem)) from problem

    def _at_desk(self, work: Callable[["UndoDesk"], T]) -> T:
        with self._lock:
            self._desk = self._desk or UndoDesk(self._workspace, self._data, self._settings)
            return work(self._desk)

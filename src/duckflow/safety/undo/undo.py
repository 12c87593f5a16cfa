"""Undo, redo and diff, per turn."""

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from duckflow.errors import DuckflowError, PathRefused, ToolError
from duckflow.safety.commands.parse import named_targets
from duckflow.safety.undo.preview import Outcome, UndoPreview
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.workspace import Workspace

if TYPE_CHECKING:
    from duckflow.safety.undo.desk import UndoDesk
    from duckflow.safety.undo.ledger import Change
    from duckflow.safety.undo.recorder import Recorder

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
        return self._window(lambda recorder: recorder.open_command(self._session, turn, left_running, known))

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
        from duckflow.safety.undo.desk import UndoDesk

        with self._lock:
            self._desk = self._desk or UndoDesk(self._workspace, self._data, self._settings)
            return work(self._desk)

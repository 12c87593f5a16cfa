"""Undo, redo and diff, for a turn, a job, a step of it, or single files."""

import asyncio
import contextlib
import logging
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import chain, product
from pathlib import Path
from typing import TypeVar

from duckflow.errors import DuckflowError, PathRefused, ToolError
from duckflow.events.views import PlannedUndo, UndoResult
from duckflow.safety.commands.parse import named_targets
from duckflow.safety.files import digest
from duckflow.safety.path_names import shown
from duckflow.safety.repository import tracked_files
from duckflow.safety.undo.facts import Change, ChangeKey, Fact, FileVersions, UndoWork
from duckflow.safety.undo.file_history import FileHistory, FileState, Overlap
from duckflow.safety.undo.make_way import Occupants
from duckflow.safety.undo.plan import (
    FileMove,
    UndoPlan,
    carry_out,
    changes_in,
    in_all,
    lives_of,
    newest_of,
    plan_with_folders,
    steps_of,
    to_move,
    waiting_for,
)
from duckflow.safety.undo.preview import (
    all_left_out,
    describe,
    name_conflicts,
    name_held,
    name_some,
    names_of,
    undone_authors,
)
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.settings import MB, UndoSettings
from duckflow.safety.undo.tree import GIT, Cleared, adds_only
from duckflow.safety.undo.writers import files_left_by
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import LATEST, UndoScope, WorkAuthor


class UndoOperations:
    """Does the work of `Undo`. Each method is one transaction, or two where something must be on disk first."""

    def __init__(self, workspace: Workspace, data: Path, settings: UndoSettings) -> None:
        self._settings = settings
        self._folder = workspace.root
        self.recorder = Recorder(workspace, data, settings)
        self._ledger = self.recorder.ledger
        self._occupants = Occupants(self.recorder)

    def authors(self, session: str) -> list[WorkAuthor]:
        """Returns the turns, jobs and steps whose work could be taken back, the latest first."""
        with self.recorder.transaction():
            works = reversed(self._ledger.works(session))
            return [work.author for work in works if any(not change.undone for change in work.changes)]

    def diff(self, session: str, scope: UndoScope) -> PlannedUndo:
        """Returns what the work named by the scope did, or else what the latest work did that was not undone."""
        with self.recorder.transaction():
            all_works = self._ledger.works(session)
            if not all_works:
                raise DuckflowError("undo.nothing")
            standing_works = [work for work in all_works if not work.undone] or all_works
            works = [work for work in all_works if scope.holds(work.author)] if scope.named else standing_works[-1:]
            if not works:
                is_forgotten = scope.turn <= self._ledger.forgotten(session)
                raise DuckflowError("undo.forgotten_turn" if is_forgotten else "undo.unknown_turn", turn=scope.turn)
            return self._preview(works, in_all(changes_in(works, scope)), UndoPlan())

    def versions(self, session: str, scope: UndoScope) -> list[FileVersions]:
        """Returns the files that some work has changed, where the change was not undone and the contents are kept."""
        with self.recorder.transaction():
            works = [work for work in self._ledger.works(session) if scope.holds(work.author)]
            changes = in_all([change for change in changes_in(works, scope) if not change.undone])
            edits = [edit for edit in changes if all(not fact or fact.blob for fact in (edit.before, edit.after))]
            return [FileVersions(edit.path, self._content(edit.before), self._content(edit.after)) for edit in edits]

    def _content(self, fact: Fact | None) -> bytes | None:
        return self.recorder.contents.get(fact.blob) if fact else None

    def preview(self, session: str, back: bool, scope: UndoScope) -> PlannedUndo:
        with self.recorder.transaction():
            self.recorder.catch_up(session)
            works, plan = self._planned(session, back, scope)
            moves = [Change(step.path, step.fact, step.target) for step in plan.steps]
            return self._preview(works, sorted(moves), plan)

    def restore(self, session: str, back: bool, only_own: bool, scope: UndoScope) -> UndoResult:
        with self.recorder.transaction():
            self.recorder.catch_up(session)
            works, plan = self._planned(session, back, scope)
            spared_steps = plan.maybe_others if only_own and back else []
            plan.left = plan.take_out([*plan.conflicts, *spared_steps])
            window = self.recorder.open_restore(session, [step.path for step in plan.steps])
        new_names = self._occupants.new_names(plan.set_aside)
        try:
            with self._occupants.set_aside(new_names):
                kept_folders = carry_out(plan, self.recorder.tree)
        finally:
            self.recorder.close(window)
        with self.recorder.transaction():
            self._occupants.note(new_names)
            self._mark(works, back, scope, plan)
            live_paths = {edit.path for work in self._ledger.works(session) for edit in work.changes if not edit.undone}
            self.recorder.restored(step.path for step in plan.steps)
            phrases = all_left_out(works, plan, new_names, self._ledger.forgotten(session))
        if kept_folders:
            phrases.append(name_some("folder_kept", dict.fromkeys(kept_folders, 1)))
        if spared_steps:
            phrases.append(name_some("spared", names_of(spared_steps)))
        changed_paths = tuple(names_of(plan.steps))
        cleared_paths = tuple(path for path in changed_paths if path not in live_paths)
        moved, gone = undone_authors(works, changed_paths) if back else ((), ())
        authors, told = tuple(work.author for work in works), tuple(phrases)
        return UndoResult(authors, "", changed_paths, cleared_paths, name_conflicts(plan), told, moved, gone)

    def close(self) -> None:
        for resource in (self.recorder.database, self.recorder.tree, self.recorder.presence):
            resource.close()

    def _planned(self, session: str, back: bool, scope: UndoScope) -> tuple[list[UndoWork], UndoPlan]:
        """Chooses the work and plans its steps. The latest work is passed over if nothing of it can be taken back."""
        works = [work for work in self._ledger.works(session) if scope.holds(work.author)]
        first_choice: tuple[list[UndoWork], UndoPlan] | None = None
        held_by = self._occupants.held_by
        while works or first_choice is None:
            chosen_works = self._chosen(works, back, scope)
            plan = self._plan(chosen_works, back, scope)
            first_choice = first_choice or (chosen_works, plan)
            if not plan.hopeless or not back or scope.named or scope.paths:
                return chosen_works, plan
            works = [work for work in works if work not in chosen_works and (not work.undone or held_by(work))]
        return first_choice

    def _chosen(self, works: Sequence[UndoWork], back: bool, scope: UndoScope) -> list[UndoWork]:
        """Returns the work that the scope names, or the latest. Undone work is done again in the opposite order."""
        if back and scope.paths and not scope.named:
            newest_authors = newest_of(works, scope).values()
            selection = [work for work in works if any(work.author.whole in whole for whole in newest_authors)]
        elif back:
            candidates = [work for work in works if not work.undone or scope.named]
            candidates = candidates or [*filter(self._occupants.held_by, works)]
            author = candidates[-1].author if candidates else None
            selection = [work for work in candidates if scope.named or (author and work.author.whole == author.whole)]
        else:
            number = max((change.undone for work in works for change in work.changes), default=0)
            selection = [work for work in works if number and any(change.undone == number for change in work.changes)]
        if not selection and scope.paths:
            raise DuckflowError("undo.nothing_of", names=", ".join(map(shown, scope.paths)))
        if not selection:
            raise DuckflowError("undo.nothing" if back else "undo.nothing_to_redo")
        return selection

    def _plan(self, works: Sequence[UndoWork], back: bool, scope: UndoScope) -> UndoPlan:
        """Plans the steps to the state without the work (with `back`), or to the state that the work had made."""
        tree, places, contents = self.recorder.tree, self.recorder.places, self.recorder.contents
        histories, by_path, by_life = dict[str, list[Change]](), dict[str, list[Change]](), dict[str, list[Change]]()
        edits = to_move(works, back, scope)
        waiting_edits = waiting_for(edits, works, self._ledger.works(works[0].session)) if back else []
        edits += [edit for _, edit in waiting_edits]
        counts, released = Counter(change.key for change in edits), set[ChangeKey]()
        for change in self._ledger.all_changes():
            histories.setdefault(change.life, []).append(change)
            by_path.setdefault(change.path, []).append(change)
            if not counts[change.key]:
                continue
            if counts[change.key] < change.sharers if back else not change.undone:
                released.add(change.key)
            # Redo does not remove a git object again that undo has brought back: the object does no harm.
            if back or (change.undone and not adds_only(change.path)):
                by_life.setdefault(change.life, []).append(change)
        moves, redone = list[FileMove](), dict[ChangeKey, Change]()
        for life, changes in by_life.items():
            seen_file = tree.look(path) if (path := places.path_of(life)) else None
            history = FileHistory(histories[life], FileState(path, seen_file and seen_file.fact), contents)
            now, then, is_shared = history.state, None, any(change.key in released for change in changes)
            if not is_shared:
                with contextlib.suppress(Overlap):
                    then = history.take_back(changes) if back else history.do_again(changes)
            is_own = not back or all(change.own for change in changes)
            moves.append(FileMove(life, changes, now, then, is_own, is_shared, history.changed))
            redone |= history.redone

        def planned(cleared: Collection[str] = ()) -> UndoPlan:
            view = Cleared(tree, cleared)
            plan = plan_with_folders(steps_of(moves, view, places.life_at), view, by_path)
            plan.waiting, plan.cleared = {author for author, _ in waiting_edits}, cleared
            plan.edits, plan.moves, plan.redone, plan.released = edits, moves, redone, released
            return plan

        plan = planned()
        in_the_way = back and self._occupants.in_the_way(plan, works[0].session, by_path)
        return planned(in_the_way) if in_the_way else plan

    def _mark(self, works: Sequence[UndoWork], back: bool, scope: UndoScope, planned: UndoPlan) -> None:
        """Notes the changes that are taken back. A change that is done again is noted as if it were done now."""
        number, edits = self._ledger.next_order(), planned.edits
        moving = {(change.key, change.undone) for change in edits}
        ranks = {order: rank for rank, order in enumerate(sorted({change.order for change in edits}))}
        left_lives = lives_of((*planned.left, *planned.impossible))
        settled_moves = [move for move in planned.moves if move.life not in left_lives and move.then]
        self.recorder.places.put({move.life: move.then.path for move in settled_moves if move.then})
        missing_paths = {move.now.path for move in settled_moves if move.now.fact is None}
        changed_lives = {move.life for move in settled_moves if move.changed}
        crashed_paths = self.recorder.paths_of_crashed_undo

        def marked(change: Change) -> Change | None:
            """Returns the change with its mark. Changes that were not brought back (someone else's, or not possible)
            stay as the work left them. Those without effect, because the user has taken them back already, are
            forgotten: no redo may make them again."""
            again = None if back or change.life in left_lives else planned.redone.get(change.key)
            if again:
                undone = 0 if (change.key, change.undone) in moving else change.undone
                order = number + ranks[change.order]
                return change._replace(
                    path=again.path, before=again.before, after=again.after, order=order, undone=undone
                )
            if (change.key, change.undone) not in moving or (
                change.key not in planned.released and change.life in left_lives
            ):
                return change
            is_known = change.life in changed_lives and not (change.path in missing_paths and change.before is None)
            if back and not (is_known or change.sharers > 1 or change.path in crashed_paths):
                return None
            return change._replace(undone=number if back else 0)

        chosen = {(work.session, work.author) for work in works}
        others = [work for work in self._ledger.sharing(planned.redone) if (work.session, work.author) not in chosen]
        others += [work for work in self._ledger.works(works[0].session) if work.author in planned.waiting]
        for work in (*works, *others):
            work.changes = [change for change in map(marked, work.changes) if change]
            if work not in others:
                work.latest = number if back else number + len(ranks)
                work.undone = back and (not scope.paths or all(change.undone for change in work.changes))
            self._ledger.save(work)

    def _preview(self, works: Sequence[UndoWork], moves: Sequence[Change], planned: UndoPlan) -> PlannedUndo:
        impacts, diff = describe(moves, self.recorder.contents.get, self._settings)
        tracked_paths = tracked_files(self._folder, [impact.path for impact in impacts])
        impacts = tuple(impact.model_copy(update={"tracked": impact.path in tracked_paths}) for impact in impacts)
        maybe_yours = (name_some("maybe_yours", names_of(planned.maybe_others)),) if planned.maybe_others else ()
        authors = tuple(work.author for work in works)
        new_names, session = self._occupants.new_names(planned.set_aside), works[0].session
        held = [(work, self._occupants.held_by(work)) for work in self._ledger.works(session) if planned.hopeless]
        uncovered = (
            *(name_held(work.author.turn, paths) for work, paths in held if paths and work not in works),
            *all_left_out(works, planned, new_names, self._ledger.forgotten(session)),
        )
        nothing_else = len(planned.maybe_others) == len(planned.steps)
        return PlannedUndo(authors, "", impacts, diff, uncovered, name_conflicts(planned), maybe_yours, nothing_else)


log = logging.getLogger(__name__)
T = TypeVar("T")


class Undo:
    """Wraps every change and command of a session, and takes work back. `data` is a folder outside the work folder,
    which all sessions in the same work folder share. Everything is on disk there before a change happens, so undo
    survives a crash at any moment."""

    def __init__(self, workspace: Workspace, data: Path, settings: UndoSettings, session: str = "") -> None:
        self._workspace = workspace
        self._data = data
        self._settings = settings
        self._session = session
        self._operations: UndoOperations | None = None
        self._lock = threading.Lock()

    def change(self, author: WorkAuthor, paths: Sequence[str]) -> AbstractAsyncContextManager[list[Change]]:
        """Wraps one change of Duckflow's own, with every path it may touch. Raises ToolError, before anything is
        changed, when the present files cannot be kept."""
        return self._window(lambda recorder: recorder.open_change(self._session, author, self._roots(paths)))

    def command(
        self, author: WorkAuthor, left_running: str = "", text: str = ""
    ) -> AbstractAsyncContextManager[list[Change]]:
        """Wraps a command; at the end the list that this yields holds the changes, found by comparing the folder before
        and after. `left_running` names a command that goes on in the background after this ends. Changes of files that
        `text` shows to be written (`> out.txt`) are certainly the command's; others may be somebody else's."""
        targets = [self._roots([path]) for path in named_targets(text, self._workspace.root) if path != os.devnull]
        left_files = files_left_by(text) if all(targets) else None
        leaves = None if left_files is None else self._roots(left_files)
        # A command that names git may change its files.
        writes = [*chain(*targets), *[GIT] * bool(re.search(r"\bgit\b", text))]
        return self._window(lambda undo: undo.open_command(self._session, author, left_running, writes, leaves))

    def watch(self) -> AbstractAsyncContextManager[list[Change]]:
        """Wraps a command of the user's own; at the end the list that this yields holds the changes. They belong to no
        turn or job, so no undo takes them back."""
        return self._window(lambda recorder: recorder.open_watch(self._session))

    async def unkept(self, paths: Sequence[str]) -> frozenset[str] | None:
        """Returns the files at these paths, or in the whole folder, that could not be brought back; None where there
        are too many files."""
        return await self._do(lambda undo: undo.recorder.unkept(self._roots(paths)))

    async def authors(self) -> list[WorkAuthor]:
        """Returns the turns, jobs and steps whose work could be taken back, the latest first."""
        return await self._do(lambda undo: undo.authors(self._session))

    async def diff(self, scope: UndoScope = LATEST) -> PlannedUndo:
        """Returns what the work named by the scope did, or else what the latest work did that was not undone."""
        return await self._do(lambda undo: undo.diff(self._session, scope))

    async def versions(self, scope: UndoScope) -> list[FileVersions]:
        """Returns the contents of the files that some work has changed, before this work and after it."""
        return await self._do(lambda undo: undo.versions(self._session, scope))

    async def rewrite(self, author: WorkAuthor, path: str, change: Callable[[bytes], bytes]) -> None:
        """Changes a file as the user wishes, as a part of the author's work. Undoing this work undoes the change
        too."""
        async with self.change(author, (path,)):
            content = self._workspace.read_bytes(path, self._settings.largest_file_mb * MB)
            self._workspace.write_atomic(path, change(content), digest(content))

    async def preview(self, back: bool = True, scope: UndoScope = LATEST) -> PlannedUndo:
        """Returns what `restore` would do with the same arguments."""
        return await self._do(lambda undo: undo.preview(self._session, back, self._beneath(scope)))

    async def restore(self, back: bool = True, only_own: bool = False, scope: UndoScope = LATEST) -> UndoResult:
        """Brings the files to the state that they would have without some work; without `back`, undoes the latest undo.
        Where someone else changed the same lines since, a file stays as it is and is named. With `only_own`, files in
        the preview's `maybe_yours` stay, too."""
        return await self._do(lambda undo: undo.restore(self._session, back, only_own, self._beneath(scope)))

    async def close(self) -> None:
        if self._operations:
            await asyncio.to_thread(self._with_operations, lambda undo: undo.close())
            self._operations = None

    @asynccontextmanager
    async def _window(self, begin: Callable[[Recorder], int]) -> AsyncGenerator[list[Change]]:
        changes: list[Change] = []
        if not self._settings.enabled:
            yield changes
            return
        try:
            window_id = await asyncio.to_thread(self._with_operations, lambda operations: begin(operations.recorder))
        except (sqlite3.Error, OSError) as problem:
            message = f"Not done, because it could not be made undoable: {problem}. Tell the user."
            raise ToolError(message, "undo.unavailable", reason=str(problem)) from problem
        try:
            yield changes
        finally:
            # The changes are noted even when the turn is being cancelled, because they have already happened.
            await asyncio.shield(asyncio.to_thread(self._note, window_id, changes))

    def _note(self, window: int, changed: list[Change]) -> None:
        try:
            changed += self._with_operations(lambda undo: undo.recorder.close(window))
        except (sqlite3.Error, OSError) as problem:
            # The state before the change is safe on disk; the changes are found the next time.
            log.warning("undo: could not note what changed: %s", problem)

    def _beneath(self, scope: UndoScope) -> UndoScope:
        """Returns the scope with its paths as undo knows them, however the user has written them."""
        return scope._replace(paths=tuple(self._roots(scope.paths)) or scope.paths)

    def _roots(self, paths: Sequence[str]) -> list[str]:
        """Returns the paths. A path that ends with a link is returned twice: as the link, which a tool may replace, and
        as the file behind it, which a tool may write to."""
        root_paths: dict[str, None] = {}
        for path, follows_link in product(paths, (False, True)):
            # A path that is refused here is refused to the tool as well.
            with contextlib.suppress(OSError, PathRefused):
                root_paths[self._workspace.relative(path, follows_link).removeprefix("./")] = None
        root_paths.pop(".", None)
        return list(root_paths)

    async def _do(self, work: Callable[[UndoOperations], T]) -> T:
        if not self._settings.enabled:
            raise DuckflowError("undo.off")
        try:
            return await asyncio.to_thread(self._with_operations, work)
        except (sqlite3.Error, OSError) as problem:
            raise DuckflowError("undo.unusable", reason=str(problem)) from problem

    def _with_operations(self, work: Callable[[UndoOperations], T]) -> T:
        with self._lock:
            self._operations = self._operations or UndoOperations(self._workspace, self._data, self._settings)
            return work(self._operations)

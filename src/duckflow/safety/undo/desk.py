"""Where undo's work is done, one piece after the other."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from duckflow.errors import DuckflowError
from duckflow.safety.shown import shown
from duckflow.safety.undo.describer import Describer, MoveFact
from duckflow.safety.undo.ledger import Change, uncovered
from duckflow.safety.undo.left_out import left_out_of
from duckflow.safety.undo.outcome import Outcome
from duckflow.safety.undo.plan import UndoPlan, UndoStep, plan, wishes
from duckflow.safety.undo.preview import UndoPreview
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.restorer import Restorer
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.site import open_site
from duckflow.safety.undo.turn import TurnState, UndoTurn
from duckflow.state.phrase import Phrase, say


class UndoDesk:
    """Each method is one transaction, or two where something must be on disk before files are touched."""

    def __init__(self, work: Path, data: Path, settings: UndoSettings) -> None:
        self._site = open_site(work, data, settings)
        self._recorder = Recorder(self._site)
        self._version = self._site.database.version

    def open_change(self, session: str, number: int, roots: Sequence[str]) -> tuple[int, tuple[Phrase, ...]]:
        turn = UndoTurn(session, number)
        with self._transaction():
            window, before = self._recorder.open_change(turn, roots)
        gone = [Change(path, fact, None) for path, fact in before.items()]
        return window, _phrases(left_out_of(gone, self._site.settings.largest_file_mb))

    def open_command(self, session: str, number: int, left_running: str) -> int | None:
        turn = UndoTurn(session, number)
        with self._transaction():
            if left_running:
                self._site.ledger.leave_out(turn, "background", {left_running: 1})
            return self._recorder.open_command(turn)

    def close_window(self, window: int) -> None:
        with self._transaction():
            self._recorder.close(window)
        self._site.database.give_back()

    def give_up(self, window: int) -> None:
        self._recorder.give_up(window)

    def turns(self, session: str) -> tuple[TurnState, ...]:
        with self._transaction():
            return tuple(self._site.ledger.turns(session))

    def diff(self, session: str, number: int | None) -> UndoPreview:
        with self._transaction():
            turn = self._choose(session, number, None)
            moves = [MoveFact(one.path, one.before, one.after) for one in self._site.ledger.changes(turn)]
            return self._preview(turn, moves, UndoPlan())

    def preview(self, session: str, number: int | None, back: bool) -> UndoPreview:
        with self._transaction():
            turn = self._choose(session, number, back)
            planned = plan(self._site.tree, wishes(self._site.ledger.changes(turn), back))
            moves = [MoveFact(step.path, step.fact, step.target) for step in (*planned.steps, *planned.conflicts)]
            return self._preview(turn, sorted(moves, key=lambda move: move.path), planned)

    def restore(self, session: str, number: int | None, on_conflict: str, back: bool) -> Outcome:
        with self._transaction():
            turn = self._choose(session, number, back)
            changes = self._site.ledger.changes(turn)
            planned = plan(self._site.tree, wishes(changes, back))
            conflicts = _conflicts(planned)
            if conflicts and on_conflict == "refuse":
                return Outcome(turn.number, done=False, conflicts=conflicts)
            if on_conflict == "overwrite":
                planned.steps += planned.conflicts
                planned.conflicts = []
            planned.conflicts += planned.drop(planned.conflicts)
            self._secure(turn, planned, back)
            window = self._recorder.open_restore(turn)
        stayed = self._carry_out(turn, changes, planned, window)
        with self._transaction():
            self._recorder.close(window)
            self._settle(turn, changes, planned, back)
            left_out = [*self._left_out(turn, planned)]
        if stayed:
            left_out.append(uncovered("folder_kept", dict.fromkeys(stayed, 1)))
        paths = tuple(step.path for step in planned.steps)
        return Outcome(turn.number, True, paths, conflicts if on_conflict == "skip" else (), tuple(left_out))

    def close(self) -> None:
        self._site.database.close()

    def _carry_out(self, turn: UndoTurn, changes: list[Change], planned: UndoPlan, window: int) -> list[str]:
        try:
            return Restorer(self._site.tree, self._site.vault).carry_out(planned)
        except DuckflowError:
            with self._transaction():
                self._recorder.close(window)
                self._site.ledger.settle(turn, changes)
            raise

    @contextmanager
    def _transaction(self) -> Generator[None]:
        database = self._site.database
        with self._or_forget(), database.transaction():
            if database.version != self._version:
                self._version = database.version
                self._site.baseline.forget()
            self._recorder.recover()
            yield

    @contextmanager
    def _or_forget(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            # What is in memory may say what the database was not allowed to keep.
            self._site.baseline.forget()
            raise

    def _choose(self, session: str, number: int | None, back: bool | None) -> UndoTurn:
        """`back`: one that can be undone, or redone; nothing: any."""
        known = {state.turn: state for state in self._site.ledger.turns(session)}
        fitting = [state for state in known.values() if back is None or back != bool(state.undone)]
        if number is not None:
            if number in {state.turn for state in fitting}:
                return UndoTurn(session, number)
            raise self._no_such(session, number, back, number in known)
        if not fitting:
            raise DuckflowError("undo.nothing_to_redo" if back is False else "undo.nothing")
        # Redone in the opposite order of being undone.
        latest = max(fitting, key=lambda state: state.undone if back is False else state.turn)
        return UndoTurn(session, latest.turn)

    def _no_such(self, session: str, number: int, back: bool | None, known: bool) -> DuckflowError:
        if known:
            return DuckflowError("undo.already_undone" if back else "undo.not_undone", turn=number)
        if number <= self._site.ledger.forgotten(session):
            return DuckflowError("undo.forgotten_turn", turn=number)
        return DuckflowError("undo.unknown_turn", turn=number)

    def _preview(self, turn: UndoTurn, moves: Sequence[MoveFact], planned: UndoPlan) -> UndoPreview:
        impacts, diff = Describer(self._site).describe(moves)
        return UndoPreview(turn.number, impacts, diff, tuple(self._left_out(turn, planned)), _conflicts(planned))

    def _left_out(self, turn: UndoTurn, planned: UndoPlan) -> Iterable[Phrase]:
        yield from self._site.ledger.left_out(turn)
        named = self._site.ledger.left_out_names(turn)
        if impossible := {step.path: 1 for step in planned.impossible if step.path not in named}:
            yield uncovered("impossible", impossible)
        if forgotten := self._site.ledger.forgotten(turn.session):
            yield say("undo.forgotten", turn=forgotten)

    def _secure(self, turn: UndoTurn, planned: UndoPlan, back: bool) -> None:
        """Before anything is touched: keep what is there now, and have at hand what will be put back."""
        there = {step.path: step.now for step in planned.steps if step.now}
        kept = self._site.vault.keep(there, with_git=False)
        lost = self._site.vault.adopt(planned.blobs())
        unsafe = {path for path, seen in kept.items() if seen.fact != there[path].fact}
        moves = planned.moves()
        moved = {*moves, *moves.values()}

        def possible(step: UndoStep) -> bool:
            gone = step.target is not None and step.target.blob in lost
            return step.same_content or step.path in moved or (step.safe and not gone and step.path not in unsafe)

        stuck = [step for step in planned.steps if not possible(step)]
        planned.steps = list(filter(possible, planned.steps))
        planned.impossible += [*stuck, *planned.drop(stuck)]
        self._site.ledger.settle(turn, [_found(step, back) for step in planned.steps])

    def _settle(self, turn: UndoTurn, changes: list[Change], planned: UndoPlan, back: bool) -> None:
        """What was not brought back (someone else's, or not possible) stays as the turn left it."""
        left = {step.path for step in (*planned.conflicts, *planned.impossible)}
        taken = {step.path: _found(step, back) for step in planned.steps}
        settled = [replace(taken.get(one.path, one), undone=back) for one in changes if one.path not in left]
        self._site.ledger.settle(turn, settled)
        self._site.ledger.mark_undone(turn, back)
        self._recorder.restored({step.path: self._site.tree.look(step.path) for step in planned.steps})


def _found(step: UndoStep, back: bool) -> Change:
    """What is overwritten is what the way back leads to, whoever made it."""
    if not step.conflicts:
        return step.wish.change
    if back:
        return replace(step.wish.change, after=step.fact, sure=True)
    return replace(step.wish.change, before=step.fact, sure=True)


def _conflicts(planned: UndoPlan) -> tuple[Phrase, ...]:
    return tuple(
        say("undo.conflict" if step.wish.change.sure else "undo.conflict_unsure", path=shown(step.path))
        for step in planned.conflicts
    )


def _phrases(kinds: dict[str, dict[str, int]]) -> tuple[Phrase, ...]:
    return tuple(uncovered(kind, names) for kind, names in kinds.items())

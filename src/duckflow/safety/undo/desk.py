"""Where undo's work is done, one piece after the other."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.errors import DuckflowError
from duckflow.safety.shown import shown
from duckflow.safety.undo.fact import Fact
from duckflow.safety.undo.ledger import OWN, UNSURE, Change, UndoTurn
from duckflow.safety.undo.plan import Restorer, UndoPlan, UndoStep, make_plan, steps_for
from duckflow.safety.undo.preview import MoveFact, Outcome, TurnState, UndoPreview, describe, left_out_of, name_some
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.settings import UndoSettings
from duckflow.state.phrase import Phrase, say


class UndoDesk:
    """Each method is one transaction, or two where something must be on disk before files are touched."""

    def __init__(self, work: Path, data: Path, settings: UndoSettings) -> None:
        self._settings = settings
        self._recorder = Recorder(work, data, settings)
        self._ledger = self._recorder.ledger

    def open_change(self, session: str, number: int, paths: Sequence[str]) -> tuple[int, tuple[Phrase, ...]]:
        with self._recorder.transaction():
            window, before = self._recorder.open_change(self._ledger.turn(session, number), paths)
        gone = (MoveFact(path, fact, None) for path, fact in before.items())
        kinds = left_out_of(gone, self._settings.largest_file_mb)
        return window, tuple(name_some(kind, names) for kind, names in kinds.items())

    def open_command(
        self, session: str, number: int, left_running: str, writes: Sequence[str]
    ) -> tuple[int | None, tuple[Phrase, ...]]:
        with self._recorder.transaction():
            turn = self._ledger.turn(session, number)
            if left_running:
                turn.leave_out("background", {left_running: 1})
                self._ledger.save(turn)
            return self._recorder.open_command(turn, writes), ()

    def close_window(self, window: int) -> None:
        with self._recorder.transaction():
            self._recorder.close(window)
        self._recorder.database.give_back()

    def give_up(self, window: int) -> None:
        self._recorder.give_up(window)

    def turns(self, session: str) -> tuple[TurnState, ...]:
        with self._recorder.transaction():
            found = self._ledger.turns(session)
        return tuple(TurnState(turn.number, len(turn.changes), turn.undone) for turn in found)

    def diff(self, session: str, number: int | None) -> UndoPreview:
        with self._recorder.transaction():
            turn = self._choose(session, number, None)
            moves = [MoveFact(one.path, one.before, one.after) for one in turn.changes]
            return self._preview(turn, moves, UndoPlan())

    def preview(self, session: str, number: int | None, back: bool) -> UndoPreview:
        with self._recorder.transaction():
            turn = self._choose(session, number, back)
            planned = make_plan(steps_for(self._recorder.tree, turn.changes, back, keep=False))
            moves = [MoveFact(step.path, step.fact, step.target) for step in (*planned.steps, *planned.conflicts)]
            return self._preview(turn, sorted(moves), planned)

    def restore(self, session: str, number: int | None, on_conflict: str, only_own: bool, back: bool) -> Outcome:
        with self._recorder.transaction():
            turn = self._choose(session, number, back)
            self._recorder.contents.begin(needed=None)
            planned = make_plan(steps_for(self._recorder.tree, turn.changes, back, keep=True))
            conflicts = _conflicts(planned)
            if conflicts and on_conflict == "refuse":
                return Outcome(turn.number, done=False, conflicts=conflicts)
            if on_conflict == "overwrite":
                conflicts = ()
                planned.steps += planned.conflicts
                planned.conflicts = []
            spared = planned.maybe_others if only_own and back else []
            left = planned.take_out([*planned.conflicts, *spared])
            self._secure(planned)
            was = dict(turn.paths)
            turn.paths |= {step.path: _found(step, back) for step in planned.steps}
            self._ledger.save(turn)
            window = self._recorder.open_restore(turn)
        try:
            stayed = Restorer(self._recorder.tree, self._recorder.contents).carry_out(planned)
        except DuckflowError:
            turn.paths = was
            with self._recorder.transaction():
                self._recorder.close(window)
                self._ledger.save(turn)
            raise
        with self._recorder.transaction():
            self._recorder.close(window)
            # What was not brought back (someone else's, or not possible) stays as the turn left it.
            untouched = {step.path for step in (*left, *planned.impossible)}
            turn.paths |= {one.path: one._replace(undone=back) for one in turn.changes if one.path not in untouched}
            turn.undone = self._ledger.last_undone() + 1 if back else 0
            self._ledger.save(turn)
            self._recorder.restored(step.path for step in planned.steps)
            left_out = self._left_out(turn, planned)
        if stayed:
            left_out.append(name_some("folder_kept", dict.fromkeys(stayed, 1)))
        if spared:
            left_out.append(name_some("spared", {step.path: 1 for step in spared}))
        paths = tuple(step.path for step in planned.steps)
        return Outcome(turn.number, True, paths, conflicts, tuple(left_out))

    def close(self) -> None:
        self._recorder.database.close()

    def _secure(self, planned: UndoPlan) -> None:
        """Before anything is touched: what will be put back is at hand, and what is there now is kept."""
        wanted = {step.target.blob for step in planned.steps if step.target and not step.same_content}
        lost = self._recorder.contents.secure(wanted | {step.fact.blob for step in planned.steps if step.fact})
        gone = [s for s in planned.steps if not s.same_content and {f.blob for f in (s.target, s.fact) if f} & lost]
        planned.impossible += planned.take_out(gone)

    def _choose(self, session: str, number: int | None, back: bool | None) -> UndoTurn:
        """`back`: one that can be undone, or redone; nothing: any."""
        known = {turn.number: turn for turn in self._ledger.turns(session)}
        fitting = {turn.number: turn for turn in known.values() if back is None or back != bool(turn.undone)}
        if number in fitting:
            return fitting[number]
        if number is not None:
            if number in known:
                raise DuckflowError("undo.already_undone" if back else "undo.not_undone", turn=number)
            too_old = number <= self._ledger.forgotten(session)
            raise DuckflowError("undo.forgotten_turn" if too_old else "undo.unknown_turn", turn=number)
        if not fitting:
            raise DuckflowError("undo.nothing_to_redo" if back is False else "undo.nothing")
        # Redone in the opposite order of being undone.
        return max(fitting.values(), key=lambda turn: turn.undone if back is False else turn.number)

    def _preview(self, turn: UndoTurn, moves: Sequence[MoveFact], planned: UndoPlan) -> UndoPreview:
        impacts, diff = describe(moves, self._content, self._settings.compared_files, self._settings.diff_lines)
        maybe = {step.path: 1 for step in planned.maybe_others if not step.change.undone}
        told = (name_some("maybe_yours", maybe),) if maybe else ()
        uncovered, nothing_else = tuple(self._left_out(turn, planned)), len(maybe) == len(planned.steps)
        return UndoPreview(turn.number, impacts, diff, uncovered, _conflicts(planned), told, nothing_else)

    def _content(self, path: str, fact: Fact) -> bytes | None:
        found = self._recorder.contents.get(fact.blob)
        return self._recorder.tree.content(path, fact.blob) if found is None else found

    def _left_out(self, turn: UndoTurn, planned: UndoPlan) -> list[Phrase]:
        found = [name_some(kind, names) for kind, names in sorted(turn.left_out.items())]
        named = {name for names in turn.left_out.values() for name in names}
        if impossible := {step.path: 1 for step in planned.impossible if step.path not in named}:
            found.append(name_some("impossible", impossible))
        if forgotten := self._ledger.forgotten(turn.session):
            found.append(say("undo.forgotten", turn=forgotten))
        return found


def _found(step: UndoStep, back: bool) -> Change:
    """What is overwritten is what the way back leads to, whoever made it."""
    if not step.conflicts:
        return step.change
    if back:
        return step.change._replace(after=step.fact, whose=OWN)
    return step.change._replace(before=step.fact, whose=OWN)


def _conflicts(planned: UndoPlan) -> tuple[Phrase, ...]:
    return tuple(
        say("undo.conflict_unsure" if step.change.whose == UNSURE else "undo.conflict", path=shown(step.path))
        for step in planned.conflicts
    )

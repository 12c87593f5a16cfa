"""Where undo's work is done, one piece after the other."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.errors import DuckflowError
from duckflow.safety.shown import shown
from duckflow.safety.undo.ledger import Change, UndoTurn
from duckflow.safety.undo.plan import UndoPlan, UndoStep, carry_out, make_plan
from duckflow.safety.undo.preview import Outcome, UndoPreview, describe, name_some
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.workspace import Workspace
from duckflow.state.phrase import Phrase, say


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
            turn = self._latest(session, back)
            planned = self._plan(turn, back)
            moves = [Change(step.path, step.fact, step.target) for step in (*planned.steps, *planned.conflicts)]
            return self._preview(turn, sorted(moves), planned)

    def restore(self, session: str, back: bool, only_own: bool) -> Outcome:
        with self.recorder.transaction():
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
            left_out.append(name_some("spared", {step.path: 1 for step in spared}))
        return Outcome(turn.number, tuple(step.path for step in planned.steps), _conflicts(planned), tuple(left_out))

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
        look = self.recorder.tree.look
        changes = [one for one in turn.changes if one.undone != back]
        ways = ((one, *((one.after, one.before) if back else (one.before, one.after))) for one in changes)
        return make_plan(UndoStep(one, expected, want, look(one.path)) for one, expected, want in ways)

    def _preview(self, turn: UndoTurn, moves: Sequence[Change], planned: UndoPlan) -> UndoPreview:
        impacts, diff = describe(moves, self.recorder.contents.get, self._settings)
        maybe = {step.path: 1 for step in planned.maybe_others if not step.change.undone}
        told = (name_some("maybe_yours", maybe),) if maybe else ()
        uncovered, nothing_else = tuple(self._left_out(turn, planned)), len(maybe) == len(planned.steps)
        return UndoPreview(turn.number, impacts, diff, uncovered, _conflicts(planned), told, nothing_else)

    def _left_out(self, turn: UndoTurn, planned: UndoPlan) -> list[Phrase]:
        found = [name_some(kind, names) for kind, names in sorted(turn.left_out.items())]
        named = {name for names in turn.left_out.values() for name in names}
        if impossible := {step.path: 1 for step in planned.impossible if step.path not in named}:
            found.append(name_some("impossible", impossible))
        if forgotten := self._ledger.forgotten(turn.session):
            found.append(say("undo.forgotten", turn=forgotten))
        return found


def _conflicts(planned: UndoPlan) -> tuple[Phrase, ...]:
    return tuple(say("undo.conflict", path=shown(step.path)) for step in planned.conflicts)

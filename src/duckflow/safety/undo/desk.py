"""Where undo's work is done, one piece after the other."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from duckflow.errors import DuckflowError
from duckflow.safety.shown import shown
from duckflow.safety.undo.ledger import Change, Turn, uncovered
from duckflow.safety.undo.left_out import left_out_of
from duckflow.safety.undo.plan import Plan, Step, plan, wishes
from duckflow.safety.undo.preview import Describer, Move, UndoPreview
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.restorer import Restorer
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.site import open_site
from duckflow.state.phrase import Phrase, say


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an undo or redo did. Not `done`: only conflicts were found, and nothing was touched."""

    turn: int
    done: bool
    changed: tuple[str, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    not_covered: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn that changed something."""

    turn: int
    files: int
    undone: bool


class Desk:
    """Each method is one transaction, or two where something must be on disk before files are touched."""

    def __init__(self, work: Path, data: Path, settings: UndoSettings) -> None:
        self._site = open_site(work, data, settings)
        self._recorder = Recorder(self._site)
        self._version = self._site.database.version

    def open_change(self, turn: Turn, roots: Sequence[str]) -> tuple[int, tuple[Phrase, ...]]:
        with self._transaction():
            window, before = self._recorder.open_change(turn, roots)
        gone = [Change(path, fact, None) for path, fact in before.items()]
        return window, _phrases(left_out_of(gone, self._site.settings.largest_file_mb))

    def open_command(self, turn: Turn, left_running: str) -> int | None:
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
            ledger = self._site.ledger
            found = [(turn.number, len(ledger.changes(turn)), bool(undone)) for turn, undone in ledger.turns(session)]
        return tuple(TurnState(number, files, undone) for number, files, undone in found if files)

    def diff(self, session: str, number: int | None) -> UndoPreview:
        with self._transaction():
            turn = self._choose(session, number, None)
            moves = [Move(one.path, one.before, one.after) for one in self._site.ledger.changes(turn)]
            return self._preview(turn, moves, Plan())

    def preview(self, session: str, number: int | None, back: bool) -> UndoPreview:
        with self._transaction():
            turn = self._choose(session, number, back)
            planned = plan(self._site.tree, wishes(self._site.ledger.changes(turn), back))
            moves = [Move(step.path, step.fact, step.target) for step in (*planned.steps, *planned.conflicts)]
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
        stayed = self._carry_out(turn, changes, planned)
        with self._transaction():
            self._settle(turn, changes, planned, back)
            left_out = [*self._left_out(turn, planned)]
        if stayed:
            left_out.append(uncovered("folder_kept", dict.fromkeys(stayed, 1)))
        paths = tuple(step.path for step in planned.steps)
        return Outcome(turn.number, True, paths, conflicts if on_conflict == "skip" else (), tuple(left_out))

    def close(self) -> None:
        self._site.database.close()

    def _carry_out(self, turn: Turn, changes: list[Change], planned: Plan) -> list[str]:
        try:
            return Restorer(self._site.tree, self._site.vault).carry_out(planned)
        except DuckflowError:
            with self._transaction():
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

    def _choose(self, session: str, number: int | None, back: bool | None) -> Turn:
        """`back`: one that can be undone, or redone; nothing: any."""
        ledger = self._site.ledger
        states = {turn: undone for turn, undone in ledger.turns(session) if ledger.changes(turn) or number is not None}
        if number is not None:
            turn = Turn(session, number)
            if turn in states and (back is None or back == (not states[turn])):
                return turn
            raise self._no_such(session, number, back, turn in states)
        fitting = [turn for turn, undone in states.items() if back is None or back == (not undone)]
        if not fitting:
            raise DuckflowError("undo.nothing_to_redo" if back is False else "undo.nothing")
        return max(fitting, key=lambda turn: states[turn] if back is False else turn.number)

    def _no_such(self, session: str, number: int, back: bool | None, known: bool) -> DuckflowError:
        if known:
            return DuckflowError("undo.already_undone" if back else "undo.not_undone", turn=number)
        if number <= self._site.ledger.forgotten(session):
            return DuckflowError("undo.forgotten_turn", turn=number)
        return DuckflowError("undo.unknown_turn", turn=number)

    def _preview(self, turn: Turn, moves: Sequence[Move], planned: Plan) -> UndoPreview:
        impacts, diff = Describer(self._site).describe(moves)
        return UndoPreview(turn.number, impacts, diff, tuple(self._left_out(turn, planned)), _conflicts(planned))

    def _left_out(self, turn: Turn, planned: Plan) -> Iterable[Phrase]:
        yield from self._site.ledger.left_out(turn)
        if planned.impossible:
            yield uncovered("impossible", {step.path: 1 for step in planned.impossible})
        if forgotten := self._site.ledger.forgotten(turn.session):
            yield say("undo.forgotten", turn=forgotten)

    def _secure(self, turn: Turn, planned: Plan, back: bool) -> None:
        """Before anything is touched: keep what is there now, and have at hand what will be put back."""
        there = {step.path: step.now for step in planned.steps if step.now}
        kept = self._site.vault.keep(there, with_git=False)
        lost = self._site.vault.adopt(planned.blobs())
        unsafe = {path for path, seen in kept.items() if seen.fact != there[path].fact}
        moved = planned.moves()

        def possible(step: Step) -> bool:
            gone = step.target is not None and step.target.blob in lost
            return step.same_content or step.path in moved or not (gone or step.path in unsafe)

        stuck = [step for step in planned.steps if not possible(step)]
        planned.steps = list(filter(possible, planned.steps))
        planned.impossible += [*stuck, *planned.drop(stuck)]
        self._site.ledger.settle(turn, [_found(step, back) for step in planned.steps])

    def _settle(self, turn: Turn, changes: list[Change], planned: Plan, back: bool) -> None:
        """What was not brought back (someone else's, or not possible) stays as the turn left it."""
        left = {step.path for step in (*planned.conflicts, *planned.impossible)}
        taken = {step.path: _found(step, back) for step in planned.steps}
        settled = [replace(taken.get(one.path, one), undone=back) for one in changes if one.path not in left]
        self._site.ledger.settle(turn, settled)
        self._site.ledger.mark_undone(turn, back)
        self._recorder.restored({step.path: self._site.tree.look(step.path) for step in planned.steps})


def _found(step: Step, back: bool) -> Change:
    """What is there now is what the way back leads to, whoever made it."""
    if back:
        return replace(step.wish.change, after=step.fact, sure=True)
    return replace(step.wish.change, before=step.fact, sure=True)


def _conflicts(planned: Plan) -> tuple[Phrase, ...]:
    return tuple(
        say("undo.conflict" if step.wish.change.sure else "undo.conflict_unsure", path=shown(step.path))
        for step in planned.conflicts
    )


def _phrases(kinds: dict[str, dict[str, int]]) -> tuple[Phrase, ...]:
    return tuple(uncovered(kind, names) for kind, names in kinds.items())

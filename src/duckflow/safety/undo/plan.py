"""What must be done to bring files to an earlier or later state, and what stands in the way."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from duckflow.safety.undo.fact import Fact, Seen
from duckflow.safety.undo.ignored import upwards
from duckflow.safety.undo.ledger import Change
from duckflow.safety.undo.tree import Tree


@dataclass(frozen=True, slots=True)
class Wish:
    """A path is to become `want`; it should now be `expected`."""

    change: Change
    expected: Fact | None
    want: Fact | None


@dataclass(frozen=True, slots=True)
class UndoStep:
    """A wish, and what the path is now."""

    wish: Wish
    now: Seen | None

    @property
    def path(self) -> str:
        return self.wish.change.path

    @property
    def fact(self) -> Fact | None:
        return self.now.fact if self.now else None

    @property
    def target(self) -> Fact | None:
        """What is wanted; mode and owner stay as they are where the change did not touch them."""
        want, expected, now = self.wish.want, self.wish.expected, self.fact
        if not (want and expected and now) or not want.kind == expected.kind == now.kind:
            return want
        mode = now.mode if want.mode == expected.mode else want.mode
        same_owner = (want.owner, want.group) == (expected.owner, expected.group)
        owner, group = (now.owner, now.group) if same_owner else (want.owner, want.group)
        return want._replace(mode=mode, owner=owner, group=group)

    @property
    def reached(self) -> bool:
        return self.fact == self.target

    @property
    def conflicts(self) -> bool:
        """Whether someone else had a hand in it."""
        expected, now = self.wish.expected, self.fact
        if not self.wish.change.sure:
            return True
        if expected is None and is_folder(now) and is_folder(self.wish.want):
            # Made again by someone, or by an undo that was interrupted: a folder holds nothing that could be lost.
            return False
        if expected is None or now is None:
            return expected is not now
        target = self.target
        if _bare(now) != _bare(expected):
            return True
        return target is not None and target.kind == now.kind and now.mode not in (expected.mode, target.mode)

    @property
    def same_content(self) -> bool:
        """Only mode and owner differ."""
        now, target = self.fact, self.target
        return now is not None and target is not None and _bare(now) == _bare(target)

    @property
    def safe(self) -> bool:
        """Nothing is destroyed that could not be brought back, and nothing is promised that is not there."""
        return self.same_content or all(fact is None or fact.kept for fact in (self.fact, self.target))


@dataclass(slots=True)
class UndoPlan:
    """Steps to take, steps that would destroy someone else's work, and steps that cannot be taken at all."""

    steps: list[UndoStep] = field(default_factory=list[UndoStep])
    conflicts: list[UndoStep] = field(default_factory=list[UndoStep])
    impossible: list[UndoStep] = field(default_factory=list[UndoStep])

    def moves(self) -> dict[str, str]:
        """From where to where: files whose content is not kept can only be moved back."""
        return _moves(self.steps)

    def drop(self, stuck: list[UndoStep]) -> list[UndoStep]:
        """Take out, and give, the steps that cannot be taken because others are not."""
        dropped: list[UndoStep] = []
        while blocked := self._blocked([*stuck, *dropped]):
            dropped += blocked
            gone = {step.path for step in blocked}
            self.steps = [step for step in self.steps if step.path not in gone]
        return dropped

    def _blocked(self, stuck: list[UndoStep]) -> list[UndoStep]:
        by_path = {step.path: step for step in stuck}
        holding = {above for path in by_path for above in upwards(path)[1:]}
        moves = self.moves()
        moved = {*moves, *moves.values()}

        def blocked(step: UndoStep) -> bool:
            above = (by_path[path] for path in upwards(step.path)[1:] if path in by_path)
            if any(not is_folder(one.fact) for one in above):
                return True
            if step.path in holding and is_folder(step.fact) and step.target is not None:
                return True
            return step.path not in moved and not step.safe

        return [step for step in self.steps if not step.same_content and blocked(step)] if stuck else []

    def blobs(self) -> set[str]:
        """Contents to put back."""
        return {step.target.blob for step in self.steps if step.target and not step.same_content} - {""}


def wishes(changes: Iterable[Change], back: bool) -> list[Wish]:
    """Back: as it was before the turn. Else: as the turn had made it."""
    if back:
        return [Wish(one, one.after, one.before) for one in changes if not one.undone]
    return [Wish(one, one.before, one.after) for one in changes if one.undone]


def plan(tree: Tree, wanted: Iterable[Wish]) -> UndoPlan:
    """Look at every path, and sort the wishes that are not yet true."""
    found = UndoPlan()
    for wish in wanted:
        step = UndoStep(wish, tree.look(wish.change.path))
        if not step.reached:
            (found.conflicts if step.conflicts else found.steps).append(step)
    moves = _moves([*found.steps, *found.conflicts])
    moved = {*moves, *moves.values()}

    def possible(step: UndoStep) -> bool:
        return step.path in moved or step.safe

    found.impossible = [step for step in (*found.steps, *found.conflicts) if not possible(step)]
    found.steps = list(filter(possible, found.steps))
    found.conflicts = list(filter(possible, found.conflicts))
    found.impossible += found.drop(found.impossible)
    return found


def _moves(steps: list[UndoStep]) -> dict[str, str]:
    wanted = {step.target.content: step.path for step in steps if step.target and step.target.elusive}
    return {
        step.path: wanted[step.fact.content]
        for step in steps
        if step.fact and step.fact.elusive and not step.same_content and step.fact.content in wanted
    }


def is_folder(fact: Fact | None) -> bool:
    return fact is not None and fact.kind == "folder"


def _bare(fact: Fact) -> Fact:
    """Without mode and owner."""
    return fact._replace(mode=0, owner=0, group=0)

"""What must be done to bring files to an earlier or later state, what stands in the way, and doing it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from duckflow.errors import DuckflowError, ToolError
from duckflow.safety.shown import shown
from duckflow.safety.undo.contents import Contents
from duckflow.safety.undo.fact import Fact, Seen
from duckflow.safety.undo.ledger import Change
from duckflow.safety.undo.survey import upwards
from duckflow.safety.undo.tree import Tree

OPEN = 0o700


@dataclass(frozen=True, slots=True)
class UndoStep:
    """A path that should be as `expected`, is as it is `now`, and is to become `want`."""

    change: Change
    expected: Fact | None
    want: Fact | None
    now: Seen | None

    @property
    def path(self) -> str:
        return self.change.path

    @property
    def fact(self) -> Fact | None:
        return self.now.fact if self.now else None

    @property
    def target(self) -> Fact | None:
        """What is wanted; mode and owner stay as they are where the change did not touch them."""
        want, expected, now = self.want, self.expected, self.fact
        if not (want and expected and now) or not want.kind == expected.kind == now.kind:
            return want
        mode = now.mode if want.mode == expected.mode else want.mode
        same_owner = (want.owner, want.group) == (expected.owner, expected.group)
        owner, group = (now.owner, now.group) if same_owner else (want.owner, want.group)
        return want._replace(mode=mode, owner=owner, group=group)

    @property
    def conflicts(self) -> bool:
        """Whether someone else had a hand in it since."""
        expected, now, target = self.expected, self.fact, self.target
        if expected is None and is_folder(now) and is_folder(self.want):
            # Made again by someone, or by an undo that was interrupted: a folder holds nothing that could be lost.
            return False
        if expected is None or now is None:
            return expected is not now
        if now.bare != expected.bare:
            return True
        return target is not None and target.kind == now.kind and now.mode not in (expected.mode, target.mode)

    @property
    def same_content(self) -> bool:
        """Only mode and owner differ."""
        now, target = self.fact, self.target
        return now is not None and target is not None and now.bare == target.bare

    @property
    def safe(self) -> bool:
        """Nothing is destroyed that could not be brought back, and nothing is promised that is not there."""
        return self.same_content or all(fact is None or fact.kept for fact in (self.fact, self.target))

    @property
    def replaces(self) -> bool:
        """Whether something new takes the place of what is there by a mere renaming."""
        return self.target is not None and not is_folder(self.target) and not is_folder(self.fact)


@dataclass(slots=True)
class UndoPlan:
    """Steps to take, steps that would destroy someone else's work, and steps that cannot be taken at all."""

    steps: list[UndoStep] = field(default_factory=list[UndoStep])
    conflicts: list[UndoStep] = field(default_factory=list[UndoStep])
    impossible: list[UndoStep] = field(default_factory=list[UndoStep])

    @property
    def maybe_others(self) -> list[UndoStep]:
        """Those that take back what changed while a command ran, and is not known to be the command's."""
        return [step for step in self.steps if not step.change.own]

    def moves(self) -> dict[str, str]:
        """From where to where: files whose content is not kept can only be moved back."""
        return _moves(self.steps)

    def take_out(self, stuck: Iterable[UndoStep]) -> list[UndoStep]:
        """These, and the steps that cannot be taken because of them; gives all of them."""
        out = list(stuck)
        self.steps = _without(self.steps, out)
        while out and (blocked := self._blocked(out)):
            out += blocked
            self.steps = _without(self.steps, blocked)
        return out

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

        return [step for step in self.steps if not step.same_content and blocked(step)]


def make_plan(steps: Iterable[UndoStep]) -> UndoPlan:
    """Sort the steps that lead anywhere."""
    wanted = [step for step in steps if step.fact != step.target]
    moves = _moves(wanted)
    moved = {*moves, *moves.values()}
    possible = [step for step in wanted if step.path in moved or step.safe]
    found = UndoPlan([step for step in possible if not step.conflicts], [step for step in possible if step.conflicts])
    found.impossible = found.take_out(_without(wanted, possible))
    return found


class Restorer:
    """Takes the steps of a plan in an order in which each is possible: all of them or none."""

    def __init__(self, tree: Tree, contents: Contents) -> None:
        self._tree = tree
        self._contents = contents

    def carry_out(self, planned: UndoPlan) -> list[str]:
        """Gives the folders that had to stay because other things are in them. On failure all is put back."""
        try:
            return self._take(planned.steps)
        except (OSError, ToolError) as problem:
            key = "undo.failed" if self._put_back(planned.steps) else "undo.failed_halfway"
            path = problem.filename if isinstance(problem, OSError) else problem.values.get("path", "")
            reason = problem.strerror or str(problem) if isinstance(problem, OSError) else problem.for_model
            raise DuckflowError(key, path=shown(str(path or "")), reason=reason) from problem

    def _put_back(self, steps: list[UndoStep]) -> bool:
        try:
            back = make_plan(UndoStep(step.change, None, step.fact, self._tree.look(step.path)) for step in steps)
            self._take([*back.steps, *back.conflicts])
        except (OSError, ToolError):
            return False
        return not back.impossible

    def _take(self, steps: list[UndoStep]) -> list[str]:
        steps = sorted(steps, key=lambda step: step.path)
        moves = _moves(steps)
        self._open_folders(steps)
        for step in steps:
            if step.now and not is_folder(step.fact) and step.path not in moves and not step.replaces:
                self._tree.remove(step.path, step.now)
        made = self._make_folders(steps, set(), strict=False)
        for source, target in moves.items():
            self._tree.move(source, target)
        unwanted = [step.path for step in steps if is_folder(step.fact) and not is_folder(step.target)]
        stayed = [path for path in reversed(unwanted) if not self._tree.remove_folder(path)]
        self._make_folders(steps, made, strict=True)
        arrived = set(moves.values())
        for step in steps:
            if step.path not in arrived:
                self._put(step)
        # Modes last, and from below: a folder may be one that nobody can enter.
        for step in reversed(steps):
            if step.target and (is_folder(step.target) or step.same_content or step.path in arrived):
                self._tree.dress(step.path, step.target)
        return stayed

    def _open_folders(self, steps: list[UndoStep]) -> None:
        """A folder that is closed even to its owner cannot be emptied or filled."""
        for step in steps:
            if step.fact and is_folder(step.fact) and step.fact.mode & OPEN != OPEN:
                self._tree.dress(step.path, step.fact._replace(mode=step.fact.mode | OPEN))

    def _make_folders(self, steps: list[UndoStep], made: set[str], strict: bool) -> set[str]:
        """Not strict: something may still be in the way."""
        for step in steps:
            if is_folder(step.target) and not is_folder(step.fact) and step.path not in made:
                try:
                    self._tree.make_folder(step.path)
                    made.add(step.path)
                except OSError:
                    if strict:
                        raise
        return made

    def _put(self, step: UndoStep) -> None:
        target = step.target
        if target is None or is_folder(target) or step.same_content:
            return
        data = self._contents.get(target.blob) if target.blob else b""
        if data is None:
            raise OSError(0, "the content is gone", step.path)
        # What was in the way has been removed, unless it is replaced in one go.
        self._tree.put(step.path, target, data, step.now if step.replaces else None)


def is_folder(fact: Fact | None) -> bool:
    return fact is not None and fact.kind == "folder"


def _moves(steps: list[UndoStep]) -> dict[str, str]:
    wanted = {step.target.content: step.path for step in steps if step.target and step.target.elusive}
    return {
        step.path: wanted[step.fact.content]
        for step in steps
        if step.fact and step.fact.elusive and not step.same_content and step.fact.content in wanted
    }


def _without(steps: list[UndoStep], out: list[UndoStep]) -> list[UndoStep]:
    gone = {step.path for step in out}
    return [step for step in steps if step.path not in gone]

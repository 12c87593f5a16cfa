"""Plans the steps that bring files to an earlier or later state, finds what makes steps impossible, and carries them
out."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import NamedTuple

from duckflow.errors import DuckflowError, ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.undo.ledger import Change, Fact, Seen, UndoWork
from duckflow.safety.undo.tree import Tree, upwards
from duckflow.state.changes import UndoScope

MOST_LINES = 20_000
"""The largest number of lines that are compared; more would take too long."""
NOBODY = 0


class Version(NamedTuple):
    """A change of the text, with its number and the number of the undo that took it back (0 for none)."""

    before: bytes
    after: bytes
    number: int
    undone: int


@dataclass(slots=True)
class HistoryLine:
    """A line of a text. It keeps its place in the history after it was removed. `made` and `removed` are numbers of
    changes."""

    text: bytes
    made: int = NOBODY
    removed: set[int] = field(default_factory=set[int])

    def stands(self, gone: Collection[int]) -> bool:
        return self.made not in gone and all(number in gone for number in self.removed)

    def belongs_to(self, number: int) -> bool:
        return number == self.made or number in self.removed

    def taken_over(self, number: int, gone: Collection[int]) -> bool:
        """Says whether a line of this change (made or removed by it) was also removed by another change that was not
        taken back."""
        return self.belongs_to(number) and any(other != number and other not in gone for other in self.removed)


class LineHistory:
    """The history of each line of a text, through all changes in their order up to the text as it is now."""

    def __init__(self, versions: Sequence[Version], now: bytes, gone: Collection[int]) -> None:
        """`gone` lists the changes (by number) that the present text does not contain."""
        self._lines = [HistoryLine(text) for text in _split(versions[0].before)]
        self._gone = gone
        for version in versions:
            undone_numbers = {
                earlier_version.number
                for earlier_version in versions
                if earlier_version.undone and earlier_version.undone < version.number
            }
            self._go_on(version.before, NOBODY, undone_numbers)
            self._go_on(version.after, version.number, undone_numbers)
        self._go_on(now, NOBODY, gone)

    def without(self, number: int) -> bytes | None:
        """Returns the text without a change, or None where another change has removed lines of that change."""
        return self._text(number, {*self._gone, number})

    def with_again(self, number: int) -> bytes | None:
        return self._text(number, {other_number for other_number in self._gone if other_number != number})

    def _text(self, number: int, gone: Collection[int]) -> bytes | None:
        if any(line.taken_over(number, gone) for line in self._lines):
            return None
        return b"".join(line.text for line in self._lines if line.stands(gone))

    def _go_on(self, text: bytes, number: int, gone: Collection[int]) -> None:
        standing_lines = [line for line in self._lines if line.stands(gone)]
        new_lines = _split(text)
        line_edits = SequenceMatcher(None, [line.text for line in standing_lines], new_lines).get_opcodes()
        line_indexes = {id(line): index for index, line in enumerate(self._lines)}
        # The loop goes from the end, so that the indexes of earlier lines stay valid.
        for edit_kind, old_start, old_end, new_start, new_end in reversed(line_edits):
            if edit_kind == "equal":
                continue
            for line in standing_lines[old_start:old_end]:
                line.removed.add(number)
            index = line_indexes[id(standing_lines[old_end - 1])] + 1 if old_end else 0
            self._lines[index:index] = [HistoryLine(text_line, number) for text_line in new_lines[new_start:new_end]]


def history_of(versions: Sequence[Version], now: bytes, gone: Collection[int]) -> LineHistory | None:
    """Returns the history of a text, or None for a file that is no text, or too long."""
    texts = [now, *(text for version in versions for text in (version.before, version.after))]
    if any(b"\0" in text or text.count(b"\n") > MOST_LINES // 2 for text in texts):
        return None
    return LineHistory(versions, now, gone)


def _split(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)


OPEN = 0o700
PLAIN_FOLDER = Fact("folder", 0o755, os.getuid(), os.getgid(), 0, "")
Rewrite = Callable[[Fact, Fact], Fact | None]
"""A function that returns the present text with a change taken back or done again; None if another change has removed
lines of that change."""


class Overlap(Exception):
    """Raised when somebody else has changed the same lines after the change that is to be taken back."""


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One path to change: from its state `now` to the state `target`. With `overlaps` the path stays as it is, because
    others changed the same lines since."""

    path: str
    now: Seen | None
    target: Fact | None
    own: bool = True
    overlaps: bool = False
    facts: tuple[Fact | None, ...] = ()
    """The states of the path after each of its changes; the last one is the target."""

    @property
    def fact(self) -> Fact | None:
        return self.now.fact if self.now else None

    @property
    def same_content(self) -> bool:
        """Says whether the two states differ only in mode and owner."""
        fact, target = self.fact, self.target
        return fact is not None and target is not None and fact.bare == target.bare

    @property
    def safe(self) -> bool:
        """Says whether the step can be taken: undo has kept the content of the target. A step that only removes a file
        can be taken if undo could bring the file back."""
        if self.same_content:
            return True
        return self.target.kept if self.target else self.fact is None or self.fact.kept

    @property
    def replaces(self) -> bool:
        """Says whether the new file is simply put over the old one, so that the old one need not be removed first."""
        return self.target is not None and not is_folder(self.target) and not is_folder(self.fact)


@dataclass(slots=True)
class UndoPlan:
    """Steps to take, steps that would destroy someone else's work, and steps that cannot be taken at all."""

    steps: list[UndoStep] = field(default_factory=list[UndoStep])
    conflicts: list[UndoStep] = field(default_factory=list[UndoStep])
    impossible: list[UndoStep] = field(default_factory=list[UndoStep])
    left: list[UndoStep] = field(default_factory=list[UndoStep])
    """Steps that are not taken: steps that would destroy the work of others, and steps that depend on those."""

    @property
    def maybe_others(self) -> list[UndoStep]:
        """Returns the steps that take back changes which happened while a command ran, but may be somebody else's."""
        return [step for step in self.steps if not step.own]

    @property
    def hopeless(self) -> bool:
        """Says whether nothing can be taken back, because there are no changes or because none of them can be
        undone."""
        return not self.steps and not self.conflicts

    def take_out(self, stuck: Iterable[UndoStep]) -> list[UndoStep]:
        """Removes these steps from the plan, with all steps that depend on them, and returns the removed steps."""
        removed_steps = new_steps = list(stuck)
        while new_steps:
            removed_paths = {step.path for step in new_steps}
            self.steps = [step for step in self.steps if step.path not in removed_paths]
            new_steps = self._blocked(removed_steps)
            removed_steps = removed_steps + new_steps
        return removed_steps

    def _blocked(self, stuck: list[UndoStep]) -> list[UndoStep]:
        by_path = {step.path: step for step in stuck}
        parent_paths = {parent for path in by_path for parent in upwards(path)[1:]}

        def blocked(step: UndoStep) -> bool:
            parent_steps = (by_path[path] for path in upwards(step.path)[1:] if path in by_path)
            stays_filled = step.path in parent_paths and is_folder(step.fact) and step.target is not None
            return stays_filled or any(not is_folder(parent_step.fact) for parent_step in parent_steps)

        return [step for step in self.steps if not step.same_content and blocked(step)]


def moved(
    now: Fact | None, expected: Fact | None, want: Fact | None, rewrite: Rewrite, went_on: bool = False
) -> Fact | None:
    """Returns the new state of a path, now in state `now`, when a change from `want` to `expected` is taken back. Mode
    and owner stay as they are if the change did not touch them. With `went_on` later changes stay, so even a path that
    looks as wanted is checked. Raises Overlap if others have changed the same lines."""
    target_fact = _dressed(now, expected, want)
    if (now == target_fact and not went_on) or (expected is None and is_folder(now) and is_folder(want)):
        # A folder that was made again, by someone or by an undo that was interrupted, holds nothing that could be lost.
        return target_fact
    if expected is None or now is None:
        if expected is not now:
            raise Overlap
        return target_fact
    if target_fact and target_fact.kind == now.kind and now.mode not in (expected.mode, target_fact.mode):
        raise Overlap
    if now.bare == expected.bare:
        return target_fact
    if target_fact and target_fact.kind == now.kind and target_fact.bare == expected.bare:
        # The change touched only mode and owner: the content that others have written since stays.
        return now._replace(mode=target_fact.mode, owner=target_fact.owner, group=target_fact.group)
    rewritten_fact = rewrite(now, target_fact) if target_fact else None
    if rewritten_fact is None:
        raise Overlap
    return rewritten_fact


def _dressed(now: Fact | None, expected: Fact | None, want: Fact | None) -> Fact | None:
    if not (want and expected and now) or not want.kind == expected.kind == now.kind:
        return want
    mode = now.mode if want.mode == expected.mode else want.mode
    same_owner = (want.owner, want.group) == (expected.owner, expected.group)
    owner, group = (now.owner, now.group) if same_owner else (want.owner, want.group)
    return want._replace(mode=mode, owner=owner, group=group)


def make_plan(steps: Iterable[UndoStep], moves: Iterable[Collection[str]] = ()) -> UndoPlan:
    """Sorts the steps that change anything into a plan. A moved file goes back, or stays where it is, so that it never
    exists twice."""
    wanted_steps = [step for step in steps if step.overlaps or step.fact != step.target]
    path_pairs = list(moves)
    for _ in path_pairs:
        stuck_paths = {step.path for step in wanted_steps if step.overlaps}
        tied_paths = {path for paths in path_pairs if not stuck_paths.isdisjoint(paths) for path in paths}
        wanted_steps = [replace(step, overlaps=step.overlaps or step.path in tied_paths) for step in wanted_steps]
    possible_steps = [step for step in wanted_steps if step.safe]
    plan = UndoPlan(
        [step for step in possible_steps if not step.overlaps], [step for step in possible_steps if step.overlaps]
    )
    plan.impossible = plan.take_out(step for step in wanted_steps if not step.safe)
    return plan


def without_room(steps: Sequence[UndoStep], tree: Tree) -> Iterator[UndoStep]:
    """Yields the steps. A step overlaps where others have put a file in the place of a folder above it, or have filled
    a folder that must go for a file."""
    by_path = {step.path: step for step in steps if not step.overlaps}
    parents = _above(by_path.values(), tree)
    barred_paths = {path for path, seen in parents.items() if seen and not is_folder(seen.fact)} - by_path.keys()

    def stays(path: str) -> bool:
        step = by_path.get(path)
        return step is None or step.target is not None or (is_folder(step.fact) and any(map(stays, tree.stamps(path))))

    for step in steps:
        is_barred = step.target is not None and not barred_paths.isdisjoint(upwards(step.path)[1:])
        makes_way = is_folder(step.fact) and step.target is not None and not is_folder(step.target)
        is_filled = makes_way and any(map(stays, tree.stamps(step.path)))
        yield replace(step, overlaps=step.overlaps or is_barred or is_filled)


def plan_with_folders(
    steps: Sequence[UndoStep],
    moves: Iterable[Collection[str]],
    tree: Tree,
    histories: Mapping[str, Sequence[Change]],
) -> UndoPlan:
    """Makes a plan. Folders above the files that come back come back too, where others have removed them or the plan
    would. `histories` are all changes of each path."""
    plan = make_plan(without_room(steps, tree), moves)
    by_path = {step.path: step for step in plan.steps}
    returning_steps = [step for step in plan.steps if step.target]
    doubtful_paths = {path for step in returning_steps if not step.own for path in upwards(step.path)}
    for path, seen in _above(returning_steps, tree).items():
        step = by_path.get(path) or UndoStep(path, seen, seen and seen.fact)
        if not is_folder(step.target):
            edits = reversed(histories.get(path, ()))
            known_states = (step.fact, *(state for edit in edits for state in (edit.after, edit.before)), PLAIN_FOLDER)
            folder = next(state for state in known_states if is_folder(state))
            by_path[path] = replace(step, target=folder, own=path not in doubtful_paths)
    plan.steps = [step for step in by_path.values() if step.fact != step.target]
    return plan


def _above(steps: Iterable[UndoStep], tree: Tree) -> dict[str, Seen | None]:
    """Returns the state of every folder above the paths of these steps."""
    paths = {path for step in steps for path in upwards(step.path)[1:]}
    return {path: tree.look(path) for path in sorted(paths)}


def carry_out(planned: UndoPlan, tree: Tree) -> list[str]:
    """Takes all of the steps or none. It returns the folders that had to stay because other files are in them."""
    try:
        return _take(planned.steps, tree)
    except (OSError, ToolError) as problem:
        key = "undo.failed" if _put_back(planned.steps, tree) else "undo.failed_halfway"
        path = problem.filename if isinstance(problem, OSError) else problem.values.get("path", "")
        reason = problem.strerror or str(problem) if isinstance(problem, OSError) else problem.for_model
        raise DuckflowError(key, path=shown(str(path or "")), reason=reason) from problem


def _put_back(steps: list[UndoStep], tree: Tree) -> bool:
    try:
        reverse_plan = make_plan(UndoStep(step.path, tree.look(step.path), step.fact) for step in steps)
        _take(reverse_plan.steps, tree)
    except (OSError, ToolError):
        return False
    return not reverse_plan.impossible


def _take(steps: list[UndoStep], tree: Tree) -> list[str]:
    """Takes the steps of an undo in an order in which each step is possible."""
    steps = sorted(steps, key=lambda step: step.path)
    for step in steps:
        # A folder that is closed even to its owner cannot be emptied or filled.
        if step.fact and is_folder(step.fact) and step.fact.mode & OPEN != OPEN:
            tree.dress(step.path, step.fact._replace(mode=step.fact.mode | OPEN))
    for step in steps:
        if step.now and not is_folder(step.fact) and not step.replaces:
            tree.remove(step.path, step.now)
    unwanted_folders = [step.path for step in steps if is_folder(step.fact) and not is_folder(step.target)]
    remaining_folders = [path for path in reversed(unwanted_folders) if not tree.remove_folder(path)]
    for step in steps:
        if step.target is None or step.same_content:
            continue
        if not is_folder(step.target):
            # Anything in the way has been removed, unless it is replaced in one go.
            tree.put(step.path, step.target, step.now if step.replaces else None)
        elif not is_folder(step.fact):
            tree.make_folder(step.path)
    # Modes come last, and from below: a folder may be one that nobody can enter.
    for step in reversed(steps):
        if step.target and (is_folder(step.target) or step.same_content):
            tree.dress(step.path, step.target)
    return remaining_folders


def is_folder(fact: Fact | None) -> bool:
    return fact is not None and fact.kind == "folder"


def replaced_since(change: Change, later_changes: Iterable[Change]) -> bool:
    """Says whether another file bears the name of the changed one by now, or none does."""
    is_file = not is_folder(change.before or change.after)
    return is_file and any(None in (other.before, other.after) for other in later_changes)


def last_kept(fact: Fact | None, changes: Sequence[Change], every: Sequence[Change]) -> Fact | None:
    """Returns this state if its content was kept, else the latest kept one before it. A command may have made a file
    too large to keep, or put a pipe in its place, before another command removed it. `every` are all changes of the
    path, `changes` those that are taken back."""
    first_order, last_state = min(change.order for change in changes), fact
    for earlier_change in sorted(every, key=lambda change: change.order, reverse=True):
        if (
            earlier_change.order < first_order
            and not earlier_change.undone
            and last_state
            and not last_state.kept
            and earlier_change.after == last_state
        ):
            last_state = earlier_change.before
    return last_state if last_state and last_state.kept else fact


def changes_in(works: Iterable[UndoWork], scope: UndoScope) -> list[Change]:
    return [change for work in works for change in work.changes if scope.touches(change.path)]


def to_move(works: Sequence[UndoWork], back: bool, scope: UndoScope) -> list[Change]:
    """Returns the changes that an undo takes back, or (without `back`) those that a redo makes again."""
    if back and scope.paths and not scope.named:
        newest_authors = newest_of(works, scope)
        standing_pairs = [(work, change) for work in works for change in work.changes if not change.undone]
        return [change for work, change in standing_pairs if newest_authors.get(change.path) == work.author.whole]
    changes = changes_in(works, scope)
    number = 0 if back else max((change.undone for change in changes), default=0)
    return [change for change in changes if change.undone == number]


def newest_of(works: Sequence[UndoWork], scope: UndoScope) -> dict[str, UndoScope]:
    """Returns for each path the turn or job that changed it last, leaving out changes that were taken back."""
    rows = [(edit.order, edit.path, work.author.whole) for work in works for edit in work.changes if not edit.undone]
    return {path: author for _, path, author in sorted(rows) if scope.touches(path)}


def in_all(changes: Sequence[Change]) -> list[Change]:
    """Returns all changes of each path as one change, from the first state to the last."""
    changes_by_path = dict[str, Change]()
    for change in sorted(changes, key=lambda change: change.order):
        first_change = changes_by_path.get(change.path)
        changes_by_path[change.path] = first_change._replace(after=change.after) if first_change else change
    return sorted(changes_by_path.values())

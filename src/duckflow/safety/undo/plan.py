"""Plans the steps that bring files to an earlier or later state, finds what makes steps impossible, and carries them
out."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duckflow.errors import DuckflowError, ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.undo.facts import Change, ChangeKey, Fact, Seen, UndoWork
from duckflow.safety.undo.file_history import FileState, is_folder
from duckflow.safety.undo.tree import Cleared, Tree, upwards
from duckflow.state.changes import UndoScope, WorkAuthor

OPEN = 0o700
PLAIN_FOLDER = Fact("folder", 0o755, os.getuid(), os.getgid(), 0, "")


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One path to change: from its state `now` to the state `target`. With `overlaps` the path stays as it is, because
    others changed the same lines since."""

    path: str
    now: Seen | None
    target: Fact | None
    own: bool = True
    overlaps: bool = False
    lives: frozenset[str] = frozenset()
    """The files that come to the path, leave it, or change there, by their names in the record."""
    shared: bool = False
    """True if the path stays only because others may have made the change, too."""

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
    edits: Sequence[Change] = ()
    """The changes that are taken back or done again."""
    waiting: Collection[WorkAuthor] = ()
    """The work of which more is taken back: it had stayed because of what is taken back now."""
    moves: Sequence["FileMove"] = ()
    redone: Mapping[ChangeKey, Change] = field(default_factory=dict[ChangeKey, Change])
    """The changes that are done again, as they will be, by their keys."""
    released: Collection[ChangeKey] = ()
    """The changes that stay because others may have made them, too (or, in a redo, that stand because of the others).
    Only the mark changes that says whose they are."""

    cleared: Collection[str] = ()
    """Paths at which stands what commands have put there and undo cannot remove: it makes way, if that is needed."""

    @property
    def set_aside(self) -> list[str]:
        """Returns the paths at which something makes way for what comes back."""
        places = {parent for step in self.steps if step.target for parent in upwards(step.path)}
        return sorted(places.intersection(self.cleared))

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
            # Another file may come to or leave one of these paths.
            beside = [step for step in self.steps if step.path in removed_paths and step not in removed_steps]
            removed_steps = removed_steps + beside
            self.steps = [step for step in self.steps if step.path not in removed_paths]
            removed_lives = lives_of(removed_steps)
            tied_steps = [step for step in self.steps if step.lives & removed_lives]
            new_steps = tied_steps or self._blocked(removed_steps)
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


@dataclass(frozen=True, slots=True)
class FileMove:
    """What becomes of a file: its state `now`, and its state afterwards; None where it stays as it is, since others
    have continued from its changes. `changes` are those that are taken back or done again."""

    life: str
    changes: Sequence[Change]
    now: FileState
    then: FileState | None
    own: bool = True
    shared: bool = False
    changed: bool = False
    """True if a change had an effect that could be taken back, although the file may look the same afterwards."""


def steps_of(moves: Sequence[FileMove], tree: Cleared, life_at: Callable[[str], str | None]) -> list[UndoStep]:
    """Returns the steps that bring the files to their states. A file overlaps whose path is not free."""
    moving = {move.life: (move, move.then) for move in moves if move.then}
    while True:
        left_paths = {move.now.path for move, then in moving.values() if move.now.path != then.path}
        counts = Counter(then.path for _, then in moving.values())
        barred_lives = [
            move.life
            for move, then in moving.values()
            if then.path and then.path != move.now.path
            if counts[then.path] > 1 or (then.path not in left_paths and not _is_free(then, move.life, tree, life_at))
        ]
        if not barred_lives:
            break
        for life in barred_lives:
            del moving[life]
    targets, lives, doubtful_paths = dict[str, Fact | None](), dict[str, set[str]](), set[str]()
    for move, then in moving.values():
        for path in {move.now.path, then.path} - {""}:
            targets.setdefault(path, None)
            lives.setdefault(path, set()).add(move.life)
            doubtful_paths |= set() if move.own else {path}
        targets |= {then.path: then.fact} if then.path else {}
    steps = [
        UndoStep(path, tree.look(path), target, path not in doubtful_paths, lives=frozenset(lives[path]))
        for path, target in targets.items()
    ]
    for move in moves:
        if move.life not in moving:
            paths = {move.now.path} if move.now.path else {change.path for change in move.changes}
            for path in paths - targets.keys() or paths:
                seen = tree.look(path)
                fact, life = seen and seen.fact, frozenset((move.life,))
                steps.append(UndoStep(path, seen, fact, move.own, overlaps=True, lives=life, shared=move.shared))
    return sorted(steps, key=lambda step: step.path)


def _is_free(then: FileState, life: str, tree: Cleared, life_at: Callable[[str], str | None]) -> bool:
    """Says whether a file can come to its path: nothing is there, or the same already that should come there."""
    seen = tree.look(then.path)
    if seen is None or (is_folder(seen.fact) and is_folder(then.fact)):
        return True
    return seen.fact == then.fact and life_at(then.path) in (None, life)


def lives_of(steps: Iterable[UndoStep]) -> set[str]:
    return {life for step in steps for life in step.lives}


def make_plan(steps: Iterable[UndoStep]) -> UndoPlan:
    """Sorts the steps that change anything into a plan. All steps of a file are taken, or none of them, so that a moved
    file never exists twice."""
    wanted_steps = [step for step in steps if step.overlaps or step.fact != step.target]
    conflicts = [step for step in wanted_steps if step.overlaps]
    while True:
        stuck_lives = lives_of(conflicts)
        tied_steps = [step for step in wanted_steps if step.overlaps or step.lives & stuck_lives]
        if len(tied_steps) == len(conflicts):
            break
        conflicts = tied_steps
    possible_steps = [step for step in wanted_steps if step.safe]
    plan = UndoPlan(
        [step for step in possible_steps if step not in conflicts],
        [step for step in possible_steps if step in conflicts],
    )
    plan.impossible = plan.take_out(step for step in wanted_steps if not step.safe)
    return plan


def without_room(steps: Sequence[UndoStep], tree: Cleared) -> Iterator[UndoStep]:
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
    tree: Cleared,
    histories: Mapping[str, Sequence[Change]],
) -> UndoPlan:
    """Makes a plan. Folders above the files that come back come back too, where others have removed them or the plan
    would. `histories` are all changes of each path."""
    plan = make_plan(without_room(steps, tree))
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


def _above(steps: Iterable[UndoStep], tree: Cleared) -> dict[str, Seen | None]:
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


def changes_in(works: Iterable[UndoWork], scope: UndoScope) -> list[Change]:
    return [change for work in works for change in work.changes if scope.touches(change.path)]


def to_move(works: Sequence[UndoWork], back: bool, scope: UndoScope) -> list[Change]:
    """Returns the changes that an undo takes back, or (without `back`) those that a redo makes again. Of a move these
    are both changes, also where the scope names only one of the paths."""
    if back and scope.paths and not scope.named:
        newest_authors = newest_of(works, scope)
        standing_pairs = [(work, change) for work in works for change in work.changes if not change.undone]
        changes = [
            change for work, change in standing_pairs if work.author.whole in newest_authors.get(change.path, ())
        ]
    else:
        changes = changes_in(works, scope)
        number = 0 if back else max((change.undone for change in changes), default=0)
        changes = [change for change in changes if change.undone == number]
    deeds = {(change.life, change.order) for change in changes}
    undone_numbers = {change.undone for change in changes}
    return [
        change
        for work in works
        for change in work.changes
        if (change.life, change.order) in deeds and change.undone in undone_numbers
    ]


def waiting_for(
    edits: Iterable[Change], chosen_works: Iterable[UndoWork], works: Iterable[UndoWork]
) -> list[tuple[WorkAuthor, Change]]:
    """Returns what other works did by themselves to files that they may have changed together with the chosen ones: it
    stayed when they were taken back, and goes with what is shared. `edits` are those of the chosen ones that go."""
    shared_edits = {edit.key: edit for edit in edits if edit.sharers > 1}
    chosen_authors = [work.author for work in chosen_works]
    waiting_edits = list[tuple[WorkAuthor, Change]]()
    for work in works:
        given_up = [shared_edits[edit.key] for edit in work.changes if edit.undone and edit.key in shared_edits]
        if work.undone and given_up and work.author not in chosen_authors:
            lives, paths = {edit.life for edit in given_up}, {edit.path for edit in given_up}
            standing = [edit for edit in work.changes if not edit.undone]
            lives |= {edit.life for edit in standing if not paths.isdisjoint(upwards(edit.path))}
            waiting_edits += [(work.author, edit) for edit in standing if edit.life in lives]
    return waiting_edits


def newest_of(works: Sequence[UndoWork], scope: UndoScope) -> dict[str, set[UndoScope]]:
    """Returns for each path the turn or job that changed it last, leaving out changes that were taken back. There are
    several where their commands ran at the same time."""
    rows = [(edit.order, edit.path, work.author.whole) for work in works for edit in work.changes if not edit.undone]
    last_orders = {path: order for order, path, _ in sorted(rows)}
    authors = dict[str, set[UndoScope]]()
    for order, path, author in rows:
        if order == last_orders[path] and scope.touches(path):
            authors.setdefault(path, set()).add(author)
    return authors


def in_all(changes: Sequence[Change]) -> list[Change]:
    """Returns all changes of each path as one change, from the first state to the last."""
    changes_by_path = dict[str, Change]()
    for change in sorted(changes, key=lambda change: change.order):
        first_change = changes_by_path.get(change.path)
        changes_by_path[change.path] = first_change._replace(after=change.after) if first_change else change
    return sorted(change for change in changes_by_path.values() if change.before != change.after)

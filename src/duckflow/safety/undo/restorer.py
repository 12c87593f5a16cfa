"""Brings files back, all of them or none."""

from duckflow.errors import DuckflowError, ToolError
from duckflow.safety.shown import shown
from duckflow.safety.undo.ledger import Change
from duckflow.safety.undo.plan import UndoPlan, UndoStep, Wish, is_folder, plan
from duckflow.safety.undo.tree import Tree
from duckflow.safety.undo.vault import Vault

OPEN = 0o700


class Restorer:
    """Takes the steps of a plan in an order in which each is possible."""

    def __init__(self, tree: Tree, vault: Vault) -> None:
        self._tree = tree
        self._vault = vault

    def carry_out(self, planned: UndoPlan) -> list[str]:
        """Gives the folders that had to stay because other things are in them. On failure all is put back."""
        try:
            return self._take(planned.steps, planned.moves())
        except (OSError, ToolError) as problem:
            key = "undo.failed" if self._put_back(planned) else "undo.failed_halfway"
            path = problem.filename if isinstance(problem, OSError) else problem.values.get("path", "")
            reason = problem.strerror or str(problem) if isinstance(problem, OSError) else problem.for_model
            raise DuckflowError(key, path=shown(str(path or "")), reason=reason) from problem

    def _put_back(self, planned: UndoPlan) -> bool:
        try:
            changes = (Change(step.path, None, None) for step in planned.steps)
            wanted = [Wish(change, None, step.fact) for change, step in zip(changes, planned.steps, strict=True)]
            back = plan(self._tree, wanted)
            back.steps += back.conflicts
            self._take(back.steps, back.moves())
        except (OSError, ToolError):
            return False
        return not back.impossible

    def _take(self, steps: list[UndoStep], moves: dict[str, str]) -> list[str]:
        steps = sorted(steps, key=lambda step: step.path)
        self._open_folders(steps)
        for step in steps:
            if step.now and step.now.fact.kind != "folder" and step.path not in moves and not _replaced(step):
                self._tree.remove(step.path, step.now)
        made = self._make_folders(steps, set(), strict=False)
        for source, target in moves.items():
            self._tree.move(source, target)
        stayed = self._remove_folders(steps)
        self._make_folders(steps, made, strict=True)
        for step in steps:
            if step.path not in moves.values():
                self._put(step)
        self._dress(steps, moves)
        return stayed

    def _open_folders(self, steps: list[UndoStep]) -> None:
        """A folder that is closed even to its owner cannot be emptied or filled."""
        for step in steps:
            if step.fact and step.fact.kind == "folder" and step.fact.mode & OPEN != OPEN:
                self._tree.dress(step.path, step.fact._replace(mode=step.fact.mode | OPEN))

    def _make_folders(self, steps: list[UndoStep], made: set[str], strict: bool) -> set[str]:
        """Not strict: something may still be in the way."""
        for step in steps:
            target = step.target
            if target and target.kind == "folder" and step.path not in made and not is_folder(step.fact):
                try:
                    self._tree.make_folder(step.path)
                    made.add(step.path)
                except OSError:
                    if strict:
                        raise
        return made

    def _remove_folders(self, steps: list[UndoStep]) -> list[str]:
        unwanted = [step.path for step in steps if is_folder(step.fact) and not is_folder(step.target)]
        return [path for path in reversed(unwanted) if not self._tree.remove_folder(path)]

    def _put(self, step: UndoStep) -> None:
        target = step.target
        if target is None or target.kind == "folder" or step.same_content:
            return
        # What was in the way has been removed, unless it is replaced in one go.
        now = step.now if _replaced(step) else None
        if target.kind == "link":
            self._tree.put_link(step.path, target, now)
            return
        data = self._vault.content(target.blob)
        if data is None:
            raise OSError(0, "the content is gone", step.path)
        self._tree.put_file(step.path, data, target, now)

    def _dress(self, steps: list[UndoStep], moves: dict[str, str]) -> None:
        """Modes last, and from below: a folder may be one that nobody can enter."""
        for step in reversed(steps):
            target = step.target
            if target is None or target.kind == "link":
                continue
            if target.kind == "folder" or step.same_content or step.path in moves.values():
                self._tree.dress(step.path, target)


def _replaced(step: UndoStep) -> bool:
    """Whether something new takes the place of what is there by a mere renaming."""
    target = step.target
    return target is not None and target.kind in ("file", "link") and not is_folder(step.fact)

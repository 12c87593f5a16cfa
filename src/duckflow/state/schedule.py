"""Which steps may start now, and which files they touch."""

from collections.abc import Collection

from duckflow.state.plan import Plan, Step, Task

ANYTHING = "*"
"""Stands for files that cannot be told beforehand: a command may touch any."""


def startable(plan: Plan, wanted: Collection[str], busy: Collection[str] = ()) -> list[Step]:
    """The wanted steps that are not over, not busy, and whose dependencies are completed and shown."""
    settled = {step.step_id for step in plan.steps if step.settled}
    return [
        step
        for step in plan.steps
        if step.step_id in wanted
        and step.step_id not in busy
        and step.status in ("pending", "in_progress")
        and settled.issuperset(step.depends_on)
    ]


def touched(step: Step, named: bool = False) -> frozenset[str]:
    """The files that a step's open tasks may change; with `named` only those that can be told."""
    names: set[str] = set()
    for task in step.tasks:
        if task.status not in ("completed", "cancelled", "failed") and task.effect != "read":
            names.update(task.touches or ([] if named else [ANYTHING]))
    return frozenset(names)


def has_none_left(step: Step) -> bool:
    """Whether it needs (other) tasks: it has none, or it was opened again with all of them done."""
    return not step.tasks or (step.status == "pending" and all(task.status == "completed" for task in step.tasks))


def held(step: Step) -> frozenset[str]:
    """The files that a step has changed so far."""
    return frozenset(path for task in step.tasks if task.status == "completed" for path in task.touches)


def next_task(step: Step) -> Task | None:
    """The next open task; nothing when all are done, or when one has failed."""
    for task in step.tasks:
        if task.status in ("pending", "interrupted", "in_progress"):
            return task
        if task.status == "failed":
            return None
    return None


def clash(one: frozenset[str], other: frozenset[str]) -> bool:
    """Says whether both may change the same file. A folder stands for all that lies in it."""
    if ANYTHING in one or ANYTHING in other:
        return bool(one and other)
    return any(lies_in(path, place) or lies_in(place, path) for path in one for place in other)


def lies_in(path: str, folder: str) -> bool:
    """Says whether a path is this one or lies below it. Both are plain and relative to the work folder, which is `.`"""
    inside = not f"{path}/".startswith("../")
    return (folder == "." and inside) or f"{path}/".startswith(f"{folder}/")

"""Which steps may start now, and which of them side by side."""

from collections.abc import Collection

from duckflow.state.plan import Plan, Step, Task

ANYTHING = "*"
"""Stands for files that cannot be told beforehand: a command may touch any."""


def startable(plan: Plan, wanted: Collection[str], busy: Collection[str] = ()) -> list[Step]:
    """The wanted steps that are not over, not busy, and whose dependencies are completed."""
    completed = {step.step_id for step in plan.steps if step.status == "completed"}
    return [
        step
        for step in plan.steps
        if step.step_id in wanted
        and step.step_id not in busy
        and step.status in ("pending", "in_progress")
        and completed.issuperset(step.depends_on)
    ]


def side_by_side(steps: Collection[Step], busy: Collection[Step], limit: int) -> list[Step]:
    """As many of `steps` as may join the busy ones: at most `limit` in all, and none that touches their files."""
    chosen: list[Step] = []
    taken = [touched(step) for step in busy]
    for step in steps:
        if len(taken) >= limit:
            break
        files = touched(step)
        if not any(_clash(files, others) for others in taken):
            chosen.append(step)
            taken.append(files)
    return chosen


def touched(step: Step) -> frozenset[str]:
    """The files that a step's open tasks may change."""
    names: set[str] = set()
    for task in step.tasks:
        if task.status not in ("completed", "cancelled") and task.effect != "read":
            names.update(task.touches or [ANYTHING])
    return frozenset(names)


def has_none_left(step: Step) -> bool:
    """Whether it needs (other) tasks: it has none, or it was opened again with all of them done."""
    return not step.tasks or (step.status == "pending" and all(task.status == "completed" for task in step.tasks))


def next_task(step: Step) -> Task | None:
    """The next open task; nothing when all are done, or when one has failed."""
    for task in step.tasks:
        if task.status in ("pending", "interrupted", "in_progress"):
            return task
        if task.status == "failed":
            return None
    return None


def _clash(one: frozenset[str], other: frozenset[str]) -> bool:
    if not one or not other:
        return False
    return bool(one & other) or ANYTHING in one or ANYTHING in other

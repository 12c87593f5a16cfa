"""What is wrong with a plan's dependencies, in words a model can act on."""

from collections.abc import Sequence

from duckflow.state.plan import Step


def dependency_problems(steps: Sequence[Step]) -> list[str]:
    """Unknown steps, steps that depend on themselves, and circles; nothing when all is well."""
    known = {step.step_id: step for step in steps}
    problems = [
        f"step {step.name!r} depends on {wanted!r}, which is no step of this plan"
        for step in steps
        for wanted in step.depends_on
        if wanted not in known
    ]
    if circle := circular(steps):
        problems.append("these steps depend on each other in a circle: " + " -> ".join(circle))
    return problems


def circular(steps: Sequence[Step]) -> list[str]:
    """The names of the steps that form or wait for a circle, in order; nothing when every step can start some day."""
    known = {step.step_id for step in steps}
    waiting = {step.step_id: {one for one in step.depends_on if one in known} for step in steps}
    while free := [step_id for step_id, needs in waiting.items() if not needs]:
        for step_id in free:
            del waiting[step_id]
        for needs in waiting.values():
            needs.difference_update(free)
    return [step.name for step in steps if step.step_id in waiting]

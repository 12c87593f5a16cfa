"""Changes a person makes to a plan by hand: each gives a new plan."""

from duckflow.errors import UsageError
from duckflow.state.plan import Plan, Step
from duckflow.state.plan_check import circular


def renamed(plan: Plan, wanted: str, name: str) -> Plan:
    """Another name for a step, or for the plan when the step is `0`."""
    if not name.strip():
        raise UsageError("plan.edit_usage")
    new = plan.copied()
    if wanted == "0":
        new.name = name.strip()
    else:
        _step(new, wanted).name = name.strip()
    return new


def moved(plan: Plan, wanted: str, place: str) -> Plan:
    """A step at another place; a step never stands before one it depends on."""
    new = plan.copied()
    step = _step(new, wanted)
    if not place.isdecimal() or not 1 <= int(place) <= len(new.steps):
        raise UsageError("plan.no_place", place=place, steps=len(new.steps))
    new.steps.remove(step)
    new.steps.insert(int(place) - 1, step)
    at = {one.step_id: number for number, one in enumerate(new.steps)}
    for one in new.steps:
        for need in one.depends_on:
            if at[need] > at[one.step_id]:
                raise UsageError("plan.needs_before", step=one.name, need=new.steps[at[need]].name)
    return new


def without(plan: Plan, wanted: str) -> Plan:
    """The plan without a step; what depended on it depends on what it depended on."""
    new = plan.copied()
    step = _step(new, wanted)
    if step.status != "pending":
        raise UsageError("plan.step_begun", step=step.name)
    new.steps.remove(step)
    for one in new.steps:
        if step.step_id in one.depends_on:
            one.depends_on = list(dict.fromkeys([n for n in one.depends_on if n != step.step_id] + step.depends_on))
    assert not circular(new.steps)
    return new


def _step(plan: Plan, wanted: str) -> Step:
    step = plan.step(wanted)
    if step is None:
        raise UsageError("plan.no_step", step=wanted)
    return step

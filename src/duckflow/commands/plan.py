"""`/plan` and `/tasks`: the plan and its jobs."""

from duckflow.commands.command import Command, CommandContext, Say
from duckflow.commands.plan_tree import SHOWN_WHEN_CHANGED, job_lines, plan_tree
from duckflow.errors import UsageError
from duckflow.state.plan import Plan, moved, renamed, without

CONTROLS = ("pause", "resume", "cancel")


def plan(counter: CommandContext, line: str) -> str:
    """Show it, approve it, rename or move a step, drop a step or the whole plan."""
    now = counter.desk.state.plan
    if now is None:
        return counter.words("plan.none")
    what, *rest = line.split(maxsplit=2) or ["show"]
    try:
        return _plan(counter, now, what, rest)
    except UsageError as problem:
        return counter.words.error(problem)


def _plan(counter: CommandContext, now: Plan, what: str, rest: list[str]) -> str:
    match what, rest:
        case "show", _:
            return plan_tree(now, counter.words)
        case "approve", _ if now.status == "draft":
            raise Say(counter.words("gate.yes"))
        case "approve", _:
            return counter.words("plan.approved", name=now.name)
        case "edit", [number, name]:
            return _change(counter, renamed(now, number, name))
        case "edit", _:
            return counter.words("plan.edit_usage")
        case "reorder", [number, place]:
            return _change(counter, moved(now, number, place))
        case "drop", [number]:
            return _change(counter, without(now, number))
        case "drop", []:
            if counter.desk.state.live_jobs():
                raise UsageError("plan.cancel_first")
            counter.desk.drop_plan(now)
            return counter.words("plan.dropped", name=now.name)
        case _:
            return counter.words("plan.usage")


def _change(counter: CommandContext, new: Plan) -> str:
    """A paused job looks at the plan again before its next task, so it may be changed under it; a running one not."""
    if any(job.status == "running" for job in counter.desk.state.live_jobs()):
        raise UsageError("plan.running")
    counter.desk.change_plan(new)
    return "" if new.status in SHOWN_WHEN_CHANGED else plan_tree(new, counter.words)


def tasks(counter: CommandContext, line: str) -> str:
    """Show the jobs, or pause, resume, cancel one."""
    what, _, job = line.partition(" ")
    if not what:
        return job_lines(counter.desk.state, counter.words)
    if what not in CONTROLS:
        return counter.words("job.usage")
    counter.desk.control(what, job.strip())
    return ""


GROUP = (
    Command("plan", plan, ("show", "approve", "edit", "reorder", "drop")),
    Command("tasks", tasks, CONTROLS),
)

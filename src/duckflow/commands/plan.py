"""`/plan` and `/tasks`: the plan and its jobs."""

from duckflow.commands.command import Command, CommandContext
from duckflow.commands.plan_tree import SHOWN_WHEN_CHANGED, job_lines, plan_tree
from duckflow.errors import UsageError
from duckflow.state.phrase import say
from duckflow.state.plan import Plan, moved, renamed, reopened, without
from duckflow.state.question import Choice, Question

CONTROLS = ("pause", "resume", "cancel")
WRONG = "# ⚠"


async def plan(context: CommandContext, line: str) -> str:
    """Show it, approve it, edit it as a text, rename or move a step, drop a step or the whole plan."""
    now = context.conversation.state.plan
    if now is None:
        return context.words("plan.none")
    what, *rest = line.split(maxsplit=2) or ["show"]
    if what == "edit" and not rest:
        return await _edit(context, now)
    return _plan(context, now, what, rest)


def _plan(context: CommandContext, now: Plan, what: str, rest: list[str]) -> str:
    match what, rest:
        case "show", _:
            return plan_tree(now, context.words)
        case "approve", _ if now.status == "draft":
            context.conversation.work.approve_plan()
            return ""
        case "approve", _:
            return context.words("plan.approved", name=now.name)
        case "edit", [number, name]:
            return _change(context, renamed(now, number, name))
        case "edit", _:
            return context.words("plan.edit_usage")
        case "reorder", [number, place]:
            return _change(context, moved(now, number, place))
        case "reopen", [number]:
            return _change(context, reopened(now, number))
        case "drop", [number]:
            return _change(context, without(now, number))
        case "drop", []:
            if context.conversation.state.live_jobs():
                raise UsageError("plan.cancel_first")
            context.conversation.work.drop_plan(now)
            return context.words("plan.dropped", name=now.name)
        case _:
            return context.words("plan.usage")


async def _edit(context: CommandContext, now: Plan) -> str:
    from duckflow.commands.plan_text import plan_from_text, plan_text

    text = plan_text(now, context.words)
    choices = tuple(Choice(key=key, label=say(f"gate.{key}")) for key in ("edit", "no"))
    while True:
        question = Question(kind="edit", title=say("plan.edit", name=now.name), text=text, choices=choices)
        answer = await context.ask(question)
        if answer.choice != "edit" or answer.text.strip() == text.strip():
            return context.words("plan.unchanged")
        try:
            new = plan_from_text(answer.text, context.conversation.state.plan or now)
        except UsageError as problem:
            # What was written is not lost: it is opened again, with what is wrong above it.
            lines = (line for line in answer.text.split("\n") if not line.startswith(WRONG))
            text = "\n".join([f"{WRONG} {' '.join(context.words.error(problem).split())}", *lines])
        else:
            return _change(context, new)


def _change(context: CommandContext, new: Plan) -> str:
    """A job looks at the plan again before its next task, so the plan may be changed under it."""
    context.conversation.work.change_plan(new)
    return "" if new.status in SHOWN_WHEN_CHANGED else plan_tree(new, context.words)


async def tasks(context: CommandContext, line: str) -> str:
    """Show the jobs, or pause, resume, cancel one; `ask` asks whether to."""
    what, _, job = line.partition(" ")
    if not what:
        return job_lines(context.conversation.state, context.words)
    if what == "ask":
        names = ", ".join(one.name for one in context.conversation.state.live_jobs())
        choices = tuple(Choice(key=key, label=say(f"job.ask.{key}")) for key in ("pause", "cancel", "leave"))
        what = (await context.ask(Question(kind="choice", title=say("job.ask", job=names), choices=choices))).choice
        if what == "leave":
            return ""
    if what not in CONTROLS:
        return context.words("job.usage")
    context.conversation.work.control(what, job.strip())
    return ""


GROUP = (
    Command("plan", plan, ("show", "approve", "edit", "reorder", "reopen", "drop")),
    Command("tasks", tasks, CONTROLS),
)

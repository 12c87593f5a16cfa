"""`/plan` and `/tasks`: the plan and its jobs."""

import re
from collections.abc import Iterator

from duckflow.commands.command import Command, CommandContext
from duckflow.commands.plan_tree import MARKS, SHOWN_WHEN_CHANGED, job_lines, plan_tree, risk_line
from duckflow.errors import UsageError
from duckflow.i18n.words import Words, languages
from duckflow.state.data import say
from duckflow.state.plan import Plan, Step, dependency_problems, moved, renamed, reopened, without
from duckflow.state.question import Choice, Question

FIELDS = ("name", "goal", "risk", "what", "success", "after")
STEP = re.compile(r"(?:(?P<number>\d+)\.|[+＋])\s*(?P<mark>[○▶✓✗?])?\s*(?P<name>.+)")
FIELD = re.compile(r"\s*(?P<label>[^:：]{1,20})[:：]\s*(?P<text>.*)")
NUMBER = re.compile(r"\d+")


def plan_text(plan: Plan, words: Words) -> str:
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    return "\n".join(_lines(plan, numbers, words)) + "\n"


def _lines(plan: Plan, numbers: dict[str, int], words: Words) -> Iterator[str]:
    def field(name: str, text: str) -> str:
        return f"{words(f'plan.text.{name}')}: {' '.join(text.split())}".rstrip()

    yield from (f"# {line}" for line in words("plan.text").split("\n"))
    yield from (
        field("name", plan.name),
        field("goal", plan.goal),
        *(field("risk", risk_line(risk, words)) for risk in plan.risks),
        "",
    )
    for number, step in enumerate(plan.steps, 1):
        yield f"{number}. {MARKS[step.status]} {step.name}"
        yield f"    {field('what', step.description)}"
        yield f"    {field('success', step.success)}"
        needed_numbers = ", ".join(str(numbers[need]) for need in step.depends_on if need in numbers)
        yield f"    {field('after', needed_numbers)}"


def plan_from_text(text: str, plan: Plan) -> Plan:
    """Returns the plan as the user has edited it. Raises an error that names the line which cannot be understood. Steps
    keep their old numbers in the text, so a step is recognized wherever it stands."""
    new_plan = plan.copied()
    old_steps = dict(enumerate(new_plan.steps, 1))
    new_plan.steps, new_plan.risks, needs_by_step = [], [], dict[str, list[int]]()
    for line in text.split("\n"):
        step = new_plan.steps[-1] if new_plan.steps else None
        if not line.strip() or line.startswith("#"):
            continue
        if match := STEP.match(line):
            new_plan.steps.append(_step(match, old_steps, line))
        elif (match := FIELD.fullmatch(line)) and (name := _field(match["label"])):
            if name == "after" and step:
                needs_by_step[step.step_id] = [int(number) for number in NUMBER.findall(match["text"])]
            else:
                _set(new_plan, step, name, match["text"].strip())
        else:
            raise UsageError("plan.text_unclear", line=line.strip())
    return _checked(new_plan, plan, needs_by_step)


def _step(match: re.Match[str], old: dict[int, Step], line: str) -> Step:
    if not match["number"]:
        return Step(name=match["name"].strip())
    step = old.pop(int(match["number"]), None)
    if step is None:
        raise UsageError("plan.text_unclear", line=line.strip())
    step.name = match["name"].strip()
    if match["mark"] == MARKS["pending"] and step.status != "pending":
        step.reopen()
    return step


def _field(label: str) -> str:
    field_by_label = {
        Words(language)(f"plan.text.{name}").casefold(): name for language in languages() for name in FIELDS
    }
    return field_by_label.get(label.strip().casefold(), "")


def _set(plan: Plan, step: Step | None, name: str, text: str) -> None:
    match name:
        case "name":
            plan.name = text or plan.name
        case "goal":
            plan.goal = text or plan.goal
        case "risk":
            plan.risks += [text] if text else []
        case "what" if step:
            step.description = text
        case "success" if step:
            step.success = text
        case _:
            pass


def _checked(new: Plan, plan: Plan, needs: dict[str, list[int]]) -> Plan:
    ids = {number: step.step_id for number, step in enumerate(plan.steps, 1)}
    remaining_ids = {step.step_id for step in new.steps}
    if not new.steps:
        raise UsageError("plan.text_empty")
    for step in plan.steps:
        if step.status != "pending" and step.step_id not in remaining_ids:
            raise UsageError("plan.step_begun", step=step.name)
    for step in new.steps:
        needed_ids = (ids.get(number, "") for number in needs.get(step.step_id, ()))
        step.depends_on = [step_id for step_id in needed_ids if step_id in remaining_ids and step_id != step.step_id]
    if problems := dependency_problems(new.steps):
        raise UsageError("plan.text_unclear", line=problems[0])
    if new.status == "completed" and any(step.status != "completed" for step in new.steps):
        new.status = "in_progress"
    return new


CONTROLS = ("pause", "resume", "cancel")
WRONG = "# ⚠"


async def plan(context: CommandContext, line: str) -> str:
    """Shows, approves or edits the plan, renames or moves a step, or drops a step or the whole plan."""
    current_plan = context.conversation.state.plan
    if current_plan is None:
        return context.words("plan.none")
    verb, *arguments = line.split(maxsplit=2) or ["show"]
    if verb == "edit" and not arguments:
        return await _edit(context, current_plan)
    return _plan(context, current_plan, verb, arguments)


def _plan(context: CommandContext, now: Plan, what: str, arguments: list[str]) -> str:
    match what, arguments:
        case "show", _:
            return plan_tree(now, context.words)
        case "approve", _ if now.status == "draft":
            context.conversation.work.approve_plan(now.fingerprint())
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
            return context.words.phrase(context.conversation.work.drop_plan(now))
        case _:
            return context.words("plan.usage")


async def _edit(context: CommandContext, now: Plan) -> str:
    text = plan_text(now, context.words)
    choices = tuple(Choice(key=key, label=say(f"gate.{key}")) for key in ("edit", "no"))
    while True:
        question = Question(kind="edit", title=say("plan.edit", name=now.name), text=text, choices=choices)
        answer = await context.ask(question)
        if answer.choice != "edit" or answer.text.strip() == text.strip():
            return context.words("plan.unchanged")
        try:
            new_plan = plan_from_text(answer.text, context.conversation.state.plan or now)
        except UsageError as problem:
            # The user's text is not lost: it is opened again, with the problem above it.
            lines = (line for line in answer.text.split("\n") if not line.startswith(WRONG))
            text = "\n".join([f"{WRONG} {' '.join(context.words.error(problem).split())}", *lines])
        else:
            return _change(context, new_plan)


def _change(context: CommandContext, new: Plan) -> str:
    """Changes the plan. That is safe while a job runs, because the job reads the plan again before its next task."""
    context.conversation.work.change_plan(new)
    return "" if new.status in SHOWN_WHEN_CHANGED else plan_tree(new, context.words)


async def tasks(context: CommandContext, line: str) -> str:
    """Shows the jobs, or pauses, resumes or cancels one. With `ask`, the user is asked which of these to do."""
    verb, _, job_name = line.partition(" ")
    if not verb:
        return job_lines(context.conversation.state, context.words)
    if verb == "ask":
        names = ", ".join(live_job.name for live_job in context.conversation.state.live_jobs())
        choices = tuple(Choice(key=key, label=say(f"job.ask.{key}")) for key in ("pause", "cancel", "leave"))
        verb = (await context.ask(Question(kind="choice", title=say("job.ask", job=names), choices=choices))).choice
        if verb == "leave":
            return ""
    if verb not in CONTROLS:
        return context.words("job.usage")
    context.conversation.work.control(verb, job_name.strip())
    return ""


GROUP = (
    Command("plan", plan, ("show", "approve", "edit", "reorder", "reopen", "drop")),
    Command("tasks", tasks, CONTROLS),
)

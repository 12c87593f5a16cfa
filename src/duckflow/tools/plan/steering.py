"""Passes the user's words about a step on to that step while it is at work."""

import re

from duckflow.errors import ToolError
from duckflow.events.ports import Emit
from duckflow.events.types import Noticed
from duckflow.events.work import StepTold
from duckflow.i18n.template import note
from duckflow.state.agent import OPEN, AgentState, Job
from duckflow.state.data import same_words, say
from duckflow.state.plan import Plan, Step, startable
from duckflow.tools.plan.step_files import FILE_NAME, works_on

LEAST_NAME = 3
"""The fewest letters that a step's name must have to be recognized in a text: a shorter one may be any word."""


def words_of_user(state: AgentState, text: str) -> str:
    """Returns the user's newest message of this turn, uncut. If the model has put it in other words, these follow."""
    newest_message = next((message for message in reversed(state.messages) if message.role == "user"), None)
    if newest_message is None or newest_message.turn != state.turn or same_words(newest_message.text, text):
        return newest_message.text if newest_message and newest_message.turn == state.turn else text
    return note(state.language, "passed_on", words=newest_message.text, text=text)


def tell_step(emit: Emit, plan: Plan, step: Step, words: str, by_call: bool = False) -> None:
    emit(StepTold(plan_id=plan.plan_id, step_id=step.step_id, step=step.name, words=words, by_call=by_call))


def tell_changed_steps(emit: Emit, state: AgentState, before: Plan, words: str = "") -> None:
    """Tells the steps at work that the plan was changed: in the user's `words`, or without them by the steps' new
    texts. If a step has already ended, the user is told that the change came too late."""
    plan_after, old_steps = state.plans[before.plan_id], {step.step_id: step for step in before.steps}
    changed_steps = [
        step for step in plan_after.steps if step.step_id in old_steps and _text(step) != _text(old_steps[step.step_id])
    ]
    other_steps = old_steps.keys() != {step.step_id for step in plan_after.steps}
    for step in plan_after.steps if words and not (changed_steps or other_steps) else changed_steps:
        if step.status == "in_progress" and _jobs_of(state, step):
            tell_step(emit, plan_after, step, words or _edited(state.language, step))
        elif step.status in ("completed", "failed") and step in changed_steps:
            _keep_open(emit, state, plan_after, step, words or _edited(state.language, step))
            emit(Noticed(what=say("step.too_late", step=step.name, text=words or step.description)))


def tell_unheard(emit: Emit, steps: list[Step]) -> None:
    """Tells the user which of their words did not reach a step before it ended."""
    for step in steps:
        if step.status != "completed" and (words := "\n".join(step.open_words)):
            emit(Noticed(what=say("step.too_late", step=step.name, text=words)))


def steps_that_hear(emit: Emit, state: AgentState, wanted: str, words: str) -> list[tuple[Plan, Step]]:
    """Returns the steps at work that the user's words are for: the steps of a job, or one step by its id, number or
    name. If a job is between two steps, the words are for the next step. If no such step is left, a ToolError tells
    both the user and the model; the steps that begin later are told what is open."""
    jobs = [job for job in state.jobs.values() if job.status in OPEN]
    named_jobs = [job for job in jobs if wanted in ("", job.job_id, job.name)]
    step = state.plan.step(wanted) if state.plan and not named_jobs else None
    if step and state.plan and (step.status in ("completed", "failed") or not _jobs_of(state, step)):
        _keep_open(emit, state, state.plan, step, words)
        raise _too_late(state, step.name, words)
    if step and state.plan:
        return [(state.plan, step)]
    hearing_steps = [(state.plans[job.plan_id], step) for job in named_jobs for step in _hearing(state, job, words)]
    if not hearing_steps:
        raise _too_late(state, named_jobs[0].name if named_jobs else wanted or "-", words)
    return hearing_steps


def _hearing(state: AgentState, job: Job, words: str) -> list[Step]:
    plan = state.plans[job.plan_id]
    open_steps = startable(plan, job.step_ids)
    running_steps = [step for step in open_steps if step.status == "in_progress"]
    return _meant(running_steps, words) if len(running_steps) > 1 else running_steps or open_steps[:1]


def _meant(steps: list[Step], words: str) -> list[Step]:
    """Returns those of the steps at work that the words name, else the first step that works on each file that they
    name. Words that name neither are for all."""
    long_names = [step for step in steps if len(step.name) >= LEAST_NAME or not step.name.isascii()]
    named_steps = [step for step in long_names if re.search(rf"(?ai)(?<![\w-]){re.escape(step.name)}(?![\w-])", words)]
    first_steps = (next((step for step in steps if works_on(step, path)), None) for path in FILE_NAME.findall(words))
    ids_by_file = {step.step_id for step in first_steps if step}
    return named_steps or [step for step in steps if step.step_id in ids_by_file] or steps


def _keep_open(emit: Emit, state: AgentState, plan: Plan, step: Step, words: str) -> None:
    """Keeps words that came after the end of a step while its job goes on."""
    if step.status == "completed" and _jobs_of(state, step):
        tell_step(emit, plan, step, words, by_call=True)


def _jobs_of(state: AgentState, step: Step) -> list[Job]:
    return [job for job in state.jobs.values() if job.status in OPEN and step.step_id in job.step_ids]


def _too_late(state: AgentState, step: str, words: str) -> ToolError:
    return ToolError(note(state.language, "step_over", step=step), "step.too_late", step=step, text=words)


def _text(step: Step) -> tuple[str, str, str]:
    return step.name, step.description, step.success


def _edited(language: str, step: Step) -> str:
    return note(language, "step_edited", step=step.name, description=step.description, success=step.success)

"""`task_tool.generate_list` plans the tasks of a step; `task_loop` runs them in the background and controls that
work."""

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.events.ports import Emit
from duckflow.events.work import StepChanged, TasksPlanned
from duckflow.i18n.template import note
from duckflow.prompts.layers import job_line
from duckflow.state.agent import AgentState
from duckflow.state.data import say
from duckflow.state.plan import Plan
from duckflow.tools.plan.plan_tools import DraftingTool, IdArgs, PlanTool, approved_plan, needs_done, the_step
from duckflow.tools.plan.ports import Jobs
from duckflow.tools.plan.steering import steps_that_hear, tell_step, words_of_user
from duckflow.tools.tool import Done


class GenerateList(DraftingTool[IdArgs]):
    """Plans the tasks of a step. It executes nothing."""

    operation = "task_tool.generate_list"
    when = ("approved",)
    args = IdArgs

    async def run(self, args: IdArgs) -> Done:
        plan = approved_plan(self._state)
        step = the_step(plan, args.id)
        if step.status == "completed":
            raise ToolError(f"{step.name!r} is completed already", "plan.step_done", step=step.name)
        if any(step.step_id in job.step_ids for job in self._state.live_jobs()):
            raise ToolError(
                f"{step.name!r} is being worked on; plan_tool.revise changes what is left of it",
                "plan.step_at_work",
                step=step.name,
            )
        tasks = await self._drafter.tasks(plan, step)
        self._emit(TasksPlanned(plan_id=plan.plan_id, step_id=step.step_id, tasks=tuple(tasks)))
        if step.status == "failed":
            self._emit(StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status="pending"))
        listing = "\n".join(f"{number}. {task.line}" for number, task in enumerate(tasks, 1))
        return Done(
            f"{len(tasks)} tasks for {step.step_id} {step.name!r}; task_loop.run starts them:\n{listing}",
            say("task.planned", step=step.name, tasks=len(tasks)),
        )


class RunTasks(PlanTool[IdArgs]):
    """Hands a step, or all open steps of the plan, to the background worker."""

    operation = "task_loop.run"
    when = ("approved",)
    led = True
    args = IdArgs

    def __init__(self, state: AgentState, jobs: Jobs) -> None:
        self._state = state
        self._jobs = jobs

    async def run(self, args: IdArgs) -> Done:
        plan = approved_plan(self._state)
        job = self._jobs.start(plan.plan_id, _wanted(plan, args.id))
        return Done(
            f"{job.job_id} runs in the background: {job.name}. You get its report when it ends; do not wait for it.",
            say("job.started", job=job.name),
        )


class JobStatus(PlanTool[IdArgs]):
    """Reports how far the background work is."""

    operation = "task_loop.status"
    counts_as = "read"
    when = ("jobs",)
    args = IdArgs

    def __init__(self, state: AgentState) -> None:
        self._state = state

    async def run(self, args: IdArgs) -> Done:
        jobs = [job for job in self._state.jobs.values() if args.id in (None, job.job_id)]
        lines = [job_line(self._state, job) for job in jobs[-5:]]
        return Done("\n".join(lines) or "no job has run yet", say("job.looked_up", jobs=len(jobs)))


class MessageArgs(IdArgs):
    """A message to a job, or to one of its steps."""

    text: str = Field(min_length=1)


class MessageJob(PlanTool[MessageArgs]):
    """Passes a message about a step at work on to that step, together with the user's newest message."""

    operation = "task_loop.message"
    when = ("jobs",)
    args = MessageArgs

    def __init__(self, state: AgentState, emit: Emit) -> None:
        self._state = state
        self._emit = emit

    async def run(self, args: MessageArgs) -> Done:
        words = words_of_user(self._state, args.text)
        hearing_steps = steps_that_hear(self._emit, self._state, args.id or "", words)
        for plan, step in hearing_steps:
            tell_step(self._emit, plan, step, words, by_call=True)
        names = ", ".join(step.name for _, step in hearing_steps)
        return Done(note(self._state.language, "step_hears", step=names), say("step.told", step=names, text=words))


class JobTool(PlanTool[IdArgs]):
    """A tool that controls a job."""

    when = ("jobs",)
    args = IdArgs

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs


class PauseJob(JobTool):
    operation = "task_loop.pause"

    async def run(self, args: IdArgs) -> Done:
        job = await self._jobs.pause(args.id or "")
        return Done(
            f"{job.job_id} stands still, its running command too, until task_loop.resume",
            say("job.paused", job=job.name),
        )


class ResumeJob(JobTool):
    operation = "task_loop.resume"

    async def run(self, args: IdArgs) -> Done:
        job = await self._jobs.resume(args.id or "")
        return Done(f"{job.job_id} goes on", say("job.resumed", job=job.name))


class CancelJob(JobTool):
    operation = "task_loop.cancel"

    async def run(self, args: IdArgs) -> Done:
        job = await self._jobs.cancel(args.id or "")
        return Done(f"{job.job_id} is cancelled; its open tasks stay pending", say("job.cancelled", job=job.name))


def _wanted(plan: Plan, wanted: str | None) -> list[str]:
    if not wanted:
        remaining_ids = [step.step_id for step in plan.steps if step.status in ("pending", "in_progress")]
        if not remaining_ids:
            the_step(plan, None)
            raise ToolError(
                "what is left of the plan has failed: plan its tasks anew with task_tool.generate_list",
                "plan.left_failed",
            )
        return remaining_ids
    step = the_step(plan, wanted)
    if step.status == "completed":
        raise ToolError(f"{step.name!r} is completed already", "plan.step_done", step=step.name)
    if step.status == "failed":
        raise ToolError(
            f"{step.name!r} has failed: plan its tasks anew with task_tool.generate_list({step.step_id})",
            "plan.step_failed",
            step=step.name,
        )
    needs_done(plan, step)
    return [step.step_id]

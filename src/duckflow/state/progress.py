"""The progress of a job, computed from the state."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from duckflow.state.agent import AgentState, Job, JobReport
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.plan import Step, Task

ENOUGH = 3
"""The number of finished tasks of one kind that is needed before their usual time is shown."""
LINE = 80
"""The largest number of characters of a command or task that are shown."""


class Doing(NamedTuple):
    """A step in progress with its running task, or without one while its tasks are being prepared."""

    number: int
    step: Step
    task: Task | None

    @property
    def seconds(self) -> float:
        start_time = self.task.began if self.task else self.step.began
        return max(0.0, time.time() - start_time) if start_time else 0.0

    def line(self) -> str:
        return f"{self.step.name}: {self.task.line}" if self.task else self.step.name


class Progress(NamedTuple):
    """Counts of steps and of the tasks known so far, and the steps in progress."""

    done: int
    failed: int
    total: int
    steps_done: int
    steps: int
    now: tuple[Doing, ...]

    @property
    def left(self) -> int:
        return self.total - self.done - self.failed

    @property
    def doing(self) -> str:
        return ", ".join(doing.line() for doing in self.now)


def steps_of(state: AgentState, job: Job) -> list[Step]:
    plan = state.plans.get(job.plan_id)
    return [step for step in plan.steps if step.step_id in job.step_ids] if plan else []


def progress(state: AgentState, job: Job) -> Progress:
    steps = steps_of(state, job)
    tasks = [task for step in steps for task in step.tasks]
    plan = state.plans.get(job.plan_id)
    numbers = {step.step_id: number for number, step in enumerate(plan.steps if plan else (), 1)}
    return Progress(
        done=sum(task.status == "completed" for task in tasks),
        failed=sum(task.status == "failed" for task in tasks),
        total=len(tasks),
        steps_done=sum(step.status == "completed" for step in steps),
        steps=len(steps),
        now=tuple(
            Doing(
                numbers[step.step_id], step, next((task for task in step.tasks if task.status == "in_progress"), None)
            )
            for step in steps
            if step.status == "in_progress"
        ),
    )


def only_asked(state: AgentState, job: Job) -> bool:
    """Says whether the only running task still waits for the user's yes. Then it has done nothing yet, and can begin
    again."""
    begun_tasks = [task for step in steps_of(state, job) for task in step.tasks if task.status == "in_progress"]
    current_job = state.jobs.get(job.job_id)
    return (
        len(begun_tasks) == 1
        and current_job is not None
        and current_job.question is not None
        and current_job.question.gate is not None
    )


def in_the_middle(state: AgentState, job: Job) -> bool:
    """Says whether a task of the job is being carried out right now, and is not waiting for an answer."""
    is_task_running = any(task.status == "in_progress" for step in steps_of(state, job) for task in step.tasks)
    return is_task_running and job.status == "running" and job.question is None


def job_progress(state: AgentState, job: Job) -> Iterator[Phrase]:
    """Describes a job that is not over: how far it is, what it does and for how long, and what it asks."""
    progress_now = progress(state, job)
    # A step finds its tasks while it runs, so nobody knows how many there will be.
    step_counts = {"steps_done": progress_now.steps_done, "steps": progress_now.steps, "done": progress_now.done}
    phrase_key = "job.waits" if job.question else f"job.progress.{job.status}"
    yield say(phrase_key, job=job.name, elapsed=duration(job.took()), **step_counts)
    for doing in progress_now.now:
        phrase_values = {"number": doing.number, "step": doing.step.name, "elapsed": duration(doing.seconds)}
        if doing.task is None:
            yield say("job.preparing", **phrase_values)
        elif seconds := usual_seconds(state, doing.task):
            yield say("job.now_usual", **phrase_values, task=shorten(doing.task.line, LINE), usual=duration(seconds))
        else:
            yield say("job.now", **phrase_values, task=shorten(doing.task.line, LINE))
    if job.status == "running" and not progress_now.now and progress_now.steps_done == progress_now.steps:
        yield say("job.reporting")
    if job.question:
        gate = job.question.gate
        subjects = [*gate.commands, *(impact.path for impact in gate.impacts)] if gate else []
        yield say("job.asks_for", what=shorten(", ".join(subjects), LINE)) if subjects else job.question.title


def told_end(job: Job) -> Phrase:
    """Describes a job that is over: how it ended, and how many tasks it did."""
    report = job.report or JobReport()
    return say(f"job.ended.{job.status}", job=job.name, done=report.done, failed=report.failed, left=report.left)


def usual_seconds(state: AgentState, task: Task) -> float:
    """Returns the seconds that the same task took before, else the usual seconds of tasks of its kind; 0 when neither
    is known."""
    from statistics import median

    past_tasks = [
        past_task
        for plan in state.plans.values()
        for step in plan.steps
        for past_task in step.tasks
        if past_task.seconds
    ]
    seconds_of_task = [past_task.seconds for past_task in past_tasks if past_task.line == task.line]
    seconds_of_operation = [past_task.seconds for past_task in past_tasks if past_task.operation == task.operation]
    return (
        median(seconds_of_task)
        if seconds_of_task
        else median(seconds_of_operation)
        if len(seconds_of_operation) >= ENOUGH
        else 0.0
    )


def duration(seconds: float) -> str:
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes}m{remainder:02d}s" if minutes else f"{remainder}s"

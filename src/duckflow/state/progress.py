"""How far a job is, computed from the state."""

from dataclasses import dataclass

from duckflow.state.action import subject_of
from duckflow.state.agent import AgentState
from duckflow.state.job import Job
from duckflow.state.plan import Step, Task


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of tasks, and what is being done."""

    done: int
    failed: int
    total: int
    doing: str

    @property
    def left(self) -> int:
        return self.total - self.done - self.failed


def steps_of(state: AgentState, job: Job) -> list[Step]:
    plan = state.plans.get(job.plan_id)
    return [step for step in plan.steps if step.step_id in job.step_ids] if plan else []


def progress(state: AgentState, job: Job) -> Progress:
    tasks = [task for step in steps_of(state, job) for task in step.tasks]
    return Progress(
        done=sum(task.status == "completed" for task in tasks),
        failed=sum(task.status == "failed" for task in tasks),
        total=len(tasks),
        doing=", ".join(task_line(task) for task in tasks if task.status == "in_progress"),
    )


def task_line(task: Task) -> str:
    """A task in a few words."""
    return f"{task.operation} {subject_of(task.args)}".strip()

"""Events of plans, jobs and agents, small ones, so that long plans stay cheap.

A job is JobStarted … JobEnded, with JobChanged when it is paused, goes on or was interrupted. Inside it, for every step
that runs: TasksPlanned when it had no tasks, StepChanged to in_progress, TaskChanged for each task, StepChanged to
completed or failed.

An agent is AgentStarted … AgentEnded, and what carries its id as `job` is its doing; it may be started again.
"""

from duckflow.events.event import Event
from duckflow.state.job import AgentReport, Job, JobReport, JobStatus, SubAgent, SubAgentStatus
from duckflow.state.plan import StepStatus, Task, TaskStatus


class WorkEvent(Event):
    """Something about plans, steps, tasks and jobs."""

    kind = "work"


class TasksPlanned(WorkEvent):
    """A step has (other) tasks now; those already done are among them."""

    kind = "tasks_planned"
    plan_id: str
    step_id: str
    tasks: tuple[Task, ...]


class StepChanged(WorkEvent):
    kind = "step_changed"
    plan_id: str
    step_id: str
    status: StepStatus
    evidence: str = ""
    lacking: str = ""
    """What its criterion names and no result shows, where it is completed all the same."""
    found: str = ""


class StepTold(WorkEvent):
    """The user has said something about a step that is at work. Its next request has these words."""

    kind = "step_told"
    plan_id: str
    step_id: str
    step: str
    """Its name."""
    words: str


class TaskChanged(WorkEvent):
    kind = "task_changed"
    plan_id: str
    step_id: str
    task_id: str
    status: TaskStatus
    result: str | None = None


class JobStarted(WorkEvent):
    kind = "job_started"
    job: Job


class JobChanged(WorkEvent):
    kind = "job_changed"
    job_id: str
    status: JobStatus


class JobEnded(WorkEvent):
    """The last event of a job; what is left of its tasks stays pending."""

    kind = "job_ended"
    job_id: str
    status: JobStatus
    report: JobReport


class AgentStarted(WorkEvent):
    """With the id of one that is over it goes on."""

    kind = "agent_started"
    agent: SubAgent


class AgentEnded(WorkEvent):
    kind = "agent_ended"
    agent_id: str
    status: SubAgentStatus
    report: AgentReport

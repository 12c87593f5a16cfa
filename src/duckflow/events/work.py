"""Events of plans, jobs and agents. The events are small, so that long plans stay cheap.

A job is JobStarted … JobEnded, with JobChanged when it is paused, goes on or was interrupted. Inside it, for every step
that runs: TasksPlanned when it had no tasks, StepChanged to in_progress, TaskChanged for each task, StepChanged to
completed or failed.

An agent is AgentStarted … AgentEnded. Events with its id as `job` are about its work. It may be started again."""

from duckflow.events.event import Event
from duckflow.state.agent import AgentReport, Job, JobReport, JobStatus, SubAgent, SubAgentStatus
from duckflow.state.plan import StepStatus, Task, TaskStatus


class WorkEvent(Event):
    """The base of events about plans, steps, tasks, jobs and agents."""

    kind = "work"


class TasksPlanned(WorkEvent):
    """A step has new tasks; tasks that are already done are among them."""

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
    """The part of the step's criterion for success that no result has shown, although the step was completed."""
    found: str = ""


class StepTold(WorkEvent):
    """The user has said something about a running step. Its next request contains these words."""

    kind = "step_told"
    plan_id: str
    step_id: str
    step: str
    """The name of the step that the words are for."""
    words: str
    by_call: bool = False
    """True if a call of the conversation has passed the words on. Its result tells the user."""


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
    """The last event of a job. Its remaining tasks stay pending."""

    kind = "job_ended"
    job_id: str
    status: JobStatus
    report: JobReport


class AgentStarted(WorkEvent):
    """An agent was started. If its id belongs to an agent that has ended, that agent goes on."""

    kind = "agent_started"
    agent: SubAgent


class AgentEnded(WorkEvent):
    kind = "agent_ended"
    agent_id: str
    status: SubAgentStatus
    report: AgentReport

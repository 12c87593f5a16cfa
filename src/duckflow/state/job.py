"""Background jobs, their reports, and how far they have come."""

from typing import Literal

from pydantic import Field

from duckflow.state.message import Message
from duckflow.state.noun import Noun, Value, new_id
from duckflow.state.question import Question

JobStatus = Literal["running", "paused", "completed", "failed", "cancelled", "interrupted"]
OPEN: tuple[JobStatus, ...] = ("running", "paused", "interrupted")
"""A job with such a status runs, or can be resumed."""
ENDED: frozenset[JobStatus] = frozenset({"completed", "failed", "cancelled"})


class JobReport(Value):
    """How a job went. The counts are computed; the words are the model's, or computed when there is none."""

    done: int = 0
    failed: int = 0
    left: int = 0
    summary: str = ""
    causes: tuple[str, ...] = ()
    next_action: str = ""
    shown: tuple[str, ...] = ()
    """Of each completed step, the recorded result by which it counts."""
    unverified: tuple[str, ...] = ()
    """Completed steps that no result shows."""
    lesson: str = ""
    """What later sessions should know; nothing, when nothing was learned."""
    computed: bool = False


class Job(Noun):
    """What runs, for which steps of which plan, and what it waits for."""

    job_id: str = Field(default_factory=new_id("job"))
    name: str
    plan_id: str
    step_ids: list[str] = Field(default_factory=list[str])
    status: JobStatus = "running"
    began: float = 0.0
    was_running: bool = False
    """When it was cut off; one that was paused then stays so."""
    question: Question | None = None
    messages: list[Message] = Field(default_factory=list[Message])
    """What its tasks brought, for the texts that later tasks need; gone when it ends."""
    report: JobReport | None = None

"""Background jobs, their reports, and how far they have come."""

import time
from collections.abc import Collection
from typing import Literal

from pydantic import Field

from duckflow.outcome import Outcome
from duckflow.state.message import Message, Usage
from duckflow.state.noun import Noun, Value, new_id
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question

SubAgentStatus = Literal["running", "done", "capped", "stopped", "failed", "interrupted"]
"""`capped`: at a limit of its own. `stopped`: by a person. `interrupted`: the program ended in the middle of it."""
AGENTS_KEPT = 20


class AgentReport(Value):
    """What came of an agent's work. `found` is its own last word; the rest is computed."""

    asked: str
    outcome: Outcome
    found: str = ""
    changed: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    open: Phrase | None = None
    """Why it ended before its end."""


class SubAgent(Noun):
    """One agent, at work or over. Its name is its id: `explore-1`. What it thinks is on the record only."""

    agent_id: str
    kind: str
    task: str
    files: tuple[str, ...] = ()
    only_reads: bool = False
    status: SubAgentStatus = "running"
    began: float = 0.0
    seconds: float = 0.0
    """Of all its times before the present one."""
    usage: Usage = Field(default_factory=Usage)
    """Counted in the session's, too."""
    doing: str = ""
    question: Question | None = None
    report: AgentReport | None = None

    def took(self) -> float:
        return self.seconds + (max(0.0, time.time() - self.began) if self.status == "running" else 0.0)


def next_agent_id(kind: str, known: Collection[str]) -> str:
    """Numbered through, whatever their kinds."""
    last = max((int(one.rpartition("-")[2]) for one in known), default=0)
    return f"{kind}-{last + 1}"


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

"""Background jobs and agents, and their reports."""

import time
from collections.abc import Collection
from typing import Literal

from pydantic import Field

from duckflow.outcome import Outcome
from duckflow.state.data import FrozenData, MutableData, new_id
from duckflow.state.message import Message, Usage
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question

SubAgentStatus = Literal["running", "done", "capped", "stopped", "failed", "interrupted"]
"""The states of an agent. `capped`: it reached a limit of its own. `stopped`: a person stopped it. `interrupted`: the
program ended while it ran."""
AGENTS_KEPT = 20


class AgentReport(FrozenData):
    """The result of an agent's work. `found` is the agent's own last message; the rest is computed."""

    asked: str
    outcome: Outcome
    found: str = ""
    changed: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    open: Phrase | None = None
    """The reason why the agent ended before its work was done; empty if it was done."""


class SubAgent(MutableData):
    """One agent, at work or over. Its id is its name, such as `explore-1`. Its thoughts are only in the journal."""

    agent_id: str
    kind: str
    task: str
    files: tuple[str, ...] = ()
    only_reads: bool = False
    status: SubAgentStatus = "running"
    began: float = 0.0
    seconds: float = 0.0
    """Seconds of all the agent's earlier runs, without the present one."""
    usage: Usage = Field(default_factory=Usage)
    """Tokens that the agent used. The session's usage includes them."""
    doing: str = ""
    question: Question | None = None
    report: AgentReport | None = None

    def took(self) -> float:
        return self.seconds + (max(0.0, time.time() - self.began) if self.status == "running" else 0.0)


def next_agent_id(kind: str, known: Collection[str]) -> str:
    """Returns the id of a new agent. Agents of all kinds are numbered in one sequence."""
    last = max((int(agent_id.rpartition("-")[2]) for agent_id in known), default=0)
    return f"{kind}-{last + 1}"


JobStatus = Literal["running", "paused", "completed", "failed", "cancelled", "interrupted"]
OPEN: tuple[JobStatus, ...] = ("running", "paused", "interrupted")
"""Statuses of a job that runs, or can be resumed."""
ENDED: frozenset[JobStatus] = frozenset({"completed", "failed", "cancelled"})


class JobReport(FrozenData):
    """The report of a job. The counts are computed; the words are the model's, or computed where it wrote none."""

    done: int = 0
    failed: int = 0
    left: int = 0
    summary: str = ""
    causes: tuple[str, ...] = ()
    next_action: str = ""
    shown: tuple[str, ...] = ()
    """For each completed step, the recorded result that shows it."""
    unverified: tuple[str, ...] = ()
    """Completed steps that no recorded result shows."""
    lesson: str = ""
    """A lesson for later sessions; empty when nothing was learned."""
    computed: bool = False


class Job(MutableData):
    """A background job: the steps of a plan that it carries out, how it stands, and the question it waits for."""

    job_id: str = Field(default_factory=new_id("job"))
    name: str
    plan_id: str
    step_ids: list[str] = Field(default_factory=list[str])
    status: JobStatus = "running"
    began: float = 0.0
    was_running: bool = False
    """True if the job was running when the program ended. A job that was paused then stays paused."""
    question: Question | None = None
    messages: list[Message] = Field(default_factory=list[Message])
    """The results of the job's tasks, which later tasks need. They are removed when the job ends."""
    report: JobReport | None = None

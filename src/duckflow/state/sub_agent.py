"""Agents that the conversation hands a task to, and what they report."""

import time
from collections.abc import Collection
from typing import Literal

from pydantic import Field

from duckflow.outcome import Outcome
from duckflow.state.noun import Noun, Value
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question
from duckflow.state.usage import Usage

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

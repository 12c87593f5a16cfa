"""Reasons for which the Pacemaker steps in, their severity, and its findings."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from duckflow.state.phrase import Phrase, say
from duckflow.state.vitals import Severity


class Reason(StrEnum):
    """Reasons to step in, in the order in which they are checked."""

    STAMINA_DEPLETED = "STAMINA_DEPLETED"
    LOOP_EXHAUSTED = "LOOP_EXHAUSTED"
    ERROR_CASCADE = "ERROR_CASCADE"
    FOCUS_LOST = "FOCUS_LOST"
    STAGNATION = "STAGNATION"
    CONFIDENCE_LOW = "CONFIDENCE_LOW"


SEVERITY: dict[Reason, Severity] = {
    Reason.STAMINA_DEPLETED: "critical",
    Reason.LOOP_EXHAUSTED: "high",
    Reason.ERROR_CASCADE: "high",
    Reason.FOCUS_LOST: "medium",
    Reason.STAGNATION: "medium",
    Reason.CONFIDENCE_LOW: "low",
}


class Escalation(IntEnum):
    """The level of intervention that a repetition demands."""

    FINE = 0
    REPLAN = 1
    CALL = 2


class Finding(NamedTuple):
    """A description of what was repeated, how often, since which step of the turn, and at what cost."""

    reason: Reason
    key: str
    label: str = ""
    times: int = 0
    since: int = 0
    steps: int = 0
    tokens: int = 0

    def phrase(self) -> Phrase:
        return say(f"pacemaker.found.{self.key}", label=self.label, times=self.times, since=self.since)

    def cost(self) -> Phrase:
        if self.tokens:
            return say("pacemaker.cost.tokens", steps=self.steps, tokens=self.tokens)
        return say("pacemaker.cost.steps", steps=self.steps)

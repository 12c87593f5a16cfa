"""Phases of the work (the Decision's `step`), its status, and the moves between phases that are allowed."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from duckflow.state.data import FrozenData, Line200


class Phase(StrEnum):
    PLANNING = "PLANNING"
    EXECUTION = "EXECUTION"
    REVIEW = "REVIEW"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    DONE = "DONE"


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    REQUIRES_USER_INPUT = "REQUIRES_USER_INPUT"


Rating = Literal["good", "fair", "needs_work"]
ReviewVerdict = Literal["approved", "fix", "rejected"]


class Review(FrozenData):
    """The judgement of a review: the model's, or one computed from the record."""

    rating: Rating
    verdict: ReviewVerdict
    by: Literal["model", "system"] = "system"


class Transition(FrozenData):
    """One move from a phase to another, as the history holds it."""

    source: Phase
    target: Phase
    why: Line200 = ""
    by: Literal["model", "system"] = "system"


class TransitionTable(FrozenData):
    """The allowed moves between phases. The data comes from a packaged file and can be overridden."""

    allowed: dict[Phase, dict[Phase, str]] = Field(default_factory=dict)

    def allows(self, source: Phase, target: Phase) -> bool:
        return target in self.allowed.get(source, {})

    def reason(self, source: Phase, target: Phase) -> str:
        return self.allowed.get(source, {}).get(target, "")

    def targets(self, source: Phase) -> list[Phase]:
        return list(self.allowed.get(source, {}))

"""Phases of the work (the Decision's `step`), its status, and the moves between phases that are allowed."""

from enum import StrEnum
from typing import Literal

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

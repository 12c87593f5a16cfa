"""The condition of the work: its phase (the Decision's `step`), its status, and the vitals of Duckflow."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from duckflow.state.data import FrozenData, Line100, Line200, MutableData, Phrase, Unit, first


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
    """One move of the work from a phase to another."""

    source: Phase
    target: Phase
    why: Line200 = ""
    by: Literal["model", "system"] = "system"


Severity = Literal["low", "medium", "high", "critical"]
"""The severity of an intervention of the Pacemaker, which watches how the work goes."""


class Vitals(FrozenData):
    """Three figures for how the work goes: mood (confidence in the plan), focus (coherence) and stamina, which falls
    with wear."""

    mood: Unit = 1.0
    focus: Unit = 1.0
    stamina: Unit = 1.0


class VitalsChange(FrozenData):
    """One change of a vital with its cause, as it is shown to the user."""

    vital: str
    delta: float
    cause: Phrase


Two100 = Annotated[list[Line100], first(2)]
Three100 = Annotated[list[Line100], first(3, counted=True)]


class FiveItems(MutableData):
    """The five items that every prompt contains: the goal, why now, constraints, the plan in short, and open
    questions."""

    goal: Line200 = ""
    why_now: Line200 = ""
    constraints: Two100 = Field(default_factory=list[str])
    plan_brief: Three100 = Field(default_factory=list[str])
    open_questions: Two100 = Field(default_factory=list[str])


class StateDelta(FrozenData):
    """The changes that a Decision (a reply of the model) makes to the five items of every prompt, and one line for the
    decision log."""

    goal: Line200 | None = None
    why_now: Line200 | None = None
    constraints: Two100 | None = None
    plan_brief: Three100 | None = None
    open_questions: Two100 | None = None
    decision: Line100 | None = None

    def items(self) -> dict[str, str | list[str]]:
        """Returns those items of every prompt (such as the goal) that the Decision changes, by name."""
        return {
            name: value
            for name in ("goal", "why_now", "constraints", "plan_brief", "open_questions")
            if (value := getattr(self, name)) is not None
        }

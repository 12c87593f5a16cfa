"""The five items that every prompt holds, and the changes that a model may make to them."""

from typing import Annotated

from pydantic import Field

from duckflow.state.data import FrozenData, Line100, Line200, MutableData, first

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
    """The changes that a Decision makes to the five items, and one line for the decision log."""

    goal: Line200 | None = None
    why_now: Line200 | None = None
    constraints: Two100 | None = None
    plan_brief: Three100 | None = None
    open_questions: Two100 | None = None
    decision: Line100 | None = None

    def items(self) -> dict[str, str | list[str]]:
        """Returns the changed items only."""
        return {
            name: value
            for name in ("goal", "why_now", "constraints", "plan_brief", "open_questions")
            if (value := getattr(self, name)) is not None
        }

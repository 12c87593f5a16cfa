"""Arguments the plan tools share: the fewer shapes, the shorter every request."""

from functools import cache
from typing import Any

from pydantic import AliasChoices, Field

from duckflow.state.operation import Operation
from duckflow.state.plan import StepStatus
from duckflow.tools.tool import A, Args, Tool


class PlanTool(Tool[A]):
    """Ten operations with three shapes: each shape is worked out once, since every start waits for it."""

    def describe(self) -> Operation:
        return Operation(name=self.operation, parameters=_shape(self.args))


@cache
def _shape(args: type[Args]) -> dict[str, Any]:
    return args.model_json_schema()


class WordsArgs(Args):
    """What is wanted, in words: a goal, or changes."""

    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "goal", "changes"))


class IdArgs(Args):
    """A plan, step or job; without one, the one at hand."""

    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "step_id", "plan_id", "job_id"))


class StepArgs(Args):
    id: str = Field(validation_alias=AliasChoices("id", "step_id"))
    status: StepStatus

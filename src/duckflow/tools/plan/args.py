"""Arguments the plan tools share: the fewer shapes, the shorter every request."""

from pydantic import AliasChoices, Field

from duckflow.state.plan import StepStatus
from duckflow.tools.tool import Args


class WordsArgs(Args):
    """What is wanted, in words: a goal, or changes."""

    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "goal", "changes"))


class IdArgs(Args):
    """A plan, step or job; without one, the one at hand."""

    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "step_id", "plan_id", "job_id"))


class StepArgs(Args):
    id: str = Field(validation_alias=AliasChoices("id", "step_id"))
    status: StepStatus

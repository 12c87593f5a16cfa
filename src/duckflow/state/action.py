"""Actions, Decisions and results; and what a model is told of an operation."""

from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field, field_validator, model_validator

from duckflow.state.five import StateDelta
from duckflow.state.noun import Line200, Value, new_id
from duckflow.state.phase import Phase
from duckflow.state.phrase import Phrase
from duckflow.state.vitals import Unit


class Operation(Value):
    """One operation as offered to the model. `parameters` is the JSON schema of its arguments."""

    name: str
    parameters: dict[str, Any]
    changes: bool = False
    body: str = ""
    """Name of the argument that travels outside the JSON (a file's content, an edit), or nothing."""


NextStep = Literal["done", "pending_user", "defer", "continue"]
PromptPattern = Literal["base_main", "base_main_specialized"]

ALIASES = {"name": "operation", "parameters": "args", "thought": "reasoning"}


class TaskProfile(StrEnum):
    SIMPLE_QUESTION = "SIMPLE_QUESTION"
    GENERAL_CHAT = "GENERAL_CHAT"
    FILE_OPERATION = "FILE_OPERATION"
    CREATIVE_WRITING = "CREATIVE_WRITING"
    CODE_ANALYSIS = "CODE_ANALYSIS"
    DEBUGGING = "DEBUGGING"
    MULTI_STEP_TASK = "MULTI_STEP_TASK"
    RESEARCH = "RESEARCH"
    COMPLEX_REASONING = "COMPLEX_REASONING"


class Action(Value):
    """One tool call. It must say why."""

    action_id: str = Field(default_factory=new_id("act"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str

    @model_validator(mode="before")
    @classmethod
    def _accept_aliases(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data).copy()
        for alias, field in ALIASES.items():
            if alias in given and field not in given:
                given[field] = given.pop(alias)
        return given

    @field_validator("reasoning")
    @classmethod
    def _say_why(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("reasoning must say why this action is needed")
        return text


class Decision(Value):
    """What the main LLM returns for one loop."""

    rationale: Line200
    goal_consistency: str
    constraint_check: str
    confidence: Unit
    task_profile: TaskProfile
    step: Phase
    next_step: NextStep
    prompt_pattern: PromptPattern
    alternative: Line200 | None = None
    """Another real way, if there is one: shown when the user is asked."""
    state_delta: StateDelta | None = None
    actions: list[Action]

    @field_validator("step")
    @classmethod
    def _working_phase(cls, step: Phase) -> Phase:
        if step is Phase.DONE:
            raise ValueError("step is one of PLANNING, EXECUTION, REVIEW, AWAITING_APPROVAL")
        return step

    def objection(self) -> str:
        """The reason, when one of the two checks says no; else nothing."""
        for check in (self.goal_consistency, self.constraint_check):
            if check.strip().lower().startswith("no"):
                return check.strip().partition(":")[2].strip() or check.strip()
        return ""


class ActionResult(Value):
    """What one action brought: a text for the model, a phrase for people, and the files it changed."""

    action_id: str
    operation: str
    ok: bool
    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    seconds: float = 0.0

"""What the Pacemaker sees: one step of a loop, whoever runs it (the chat or a background job)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from duckflow.state.action import Action, ActionResult, StepKind


class LoopStep(NamedTuple):
    """One action with what came of it. `text` is what a step that talks has said; `tokens` what its loop consumed."""

    name: str
    args: Mapping[str, Any] | str = ""
    result: str = ""
    is_error: bool = False
    kind: StepKind = "other"
    text: str = ""
    tokens: int = 0


def user_spoke(text: str = "") -> LoopStep:
    """A message of the user, which starts everything afresh."""
    return LoopStep("user", kind="user", text=text)


def step_of(action: Action, result: ActionResult, tokens: int = 0) -> LoopStep:
    """The step that a finished action makes. Whatever changed files is an edit, a shell command too."""
    kind = "edit" if result.changed else result.kind
    said = str(action.args.get("text", "")) if kind == "talk" else ""
    return LoopStep(action.operation, action.args, result.for_model, not result.ok, kind, said, tokens)

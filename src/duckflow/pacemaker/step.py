"""What the Pacemaker sees: one step of a loop, whoever runs it (the chat or a background job)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from duckflow.state.action import Action, ActionResult

Kind = Literal["read", "search", "edit", "run", "submit", "ask", "talk", "other", "user"]

KIND_OF_OPERATION: dict[str, Kind] = {
    "response": "talk",
    "duck_call": "ask",
    "exit": "submit",
    "file_ops.list_files": "search",
    "file_ops.find_files": "search",
    "file_ops.grep": "search",
    "file_ops.read_file": "read",
    "file_ops.write_file": "edit",
    "file_ops.edit_file": "edit",
    "file_ops.move_file": "edit",
    "file_ops.delete_file": "edit",
    "file_ops.make_folder": "edit",
    "shell.run": "run",
    "memory.recall": "search",
    "memory.remember": "edit",
    "plan_tool.get": "read",
    "task_loop.status": "read",
}


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One action with what came of it. `text` is what a step that talks has said; `tokens` what its loop consumed."""

    name: str
    args: Mapping[str, Any] | str = ""
    result: str = ""
    is_error: bool = False
    kind: Kind = "other"
    text: str = ""
    tokens: int = 0


def user_spoke(text: str = "") -> LoopStep:
    """A message of the user, which starts everything afresh."""
    return LoopStep("user", kind="user", text=text)


def step_of(action: Action, result: ActionResult, tokens: int = 0) -> LoopStep:
    """The step that a finished action makes. Whatever changed files is an edit, a shell command too."""
    kind = "edit" if result.changed else KIND_OF_OPERATION.get(action.operation, "other")
    said = str(action.args.get("text", "")) if kind == "talk" else ""
    return LoopStep(action.operation, action.args, result.for_model, not result.ok, kind, said, tokens)

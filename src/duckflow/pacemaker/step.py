"""What the Pacemaker sees: one step of a loop, whoever runs it (the chat or a background job)."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from duckflow.state.action import Action, ActionResult, StepKind
from duckflow.state.evidence import succeeded

SEARCHED = re.compile(r"^<{5,} ?SEARCH.*\n((?:.*\n)*?)={5,}$", re.MULTILINE)


class LoopStep(NamedTuple):
    """One action with what came of it. `text` is what a step that talks has said; `tokens` what its loop consumed."""

    name: str
    args: Mapping[str, Any] | str = ""
    result: str = ""
    is_error: bool = False
    kind: StepKind = "other"
    text: str = ""
    tokens: int = 0
    changed: tuple[str, ...] = ()
    """The files it changed."""
    error: str = ""
    """Which kind of error it was, where the tool itself says so."""


def user_spoke(text: str = "", about: str = "") -> LoopStep:
    """A message of the user, which starts everything afresh. `about`: the goal and the plan it belongs to."""
    return LoopStep("user", about, kind="user", text=text)


def decided_nothing(tokens: int = 0) -> LoopStep:
    """A Decision without any action."""
    return LoopStep("nothing", kind="talk", tokens=tokens)


def step_of(action: Action, result: ActionResult, tokens: int = 0) -> LoopStep:
    """The step that a finished action makes. Whatever changed files is an edit, a shell command that worked too."""
    failed = not succeeded(result)
    kind = "edit" if result.changed and not failed else result.kind
    said = str(action.args.get("text", "")) if kind == "talk" else ""
    error = "" if result.ok else result.for_user.key
    return LoopStep(action.operation, action.args, result.for_model, failed, kind, said, tokens, result.changed, error)


def replaced_texts(args: Mapping[str, Any] | str) -> list[str]:
    """What an edit takes away, as far as its arguments tell."""
    if isinstance(args, str):
        return []
    edits: Any = args.get("edits") or [args]
    if isinstance(edits, str):
        return SEARCHED.findall(edits)
    pairs = [cast("Mapping[str, Any]", one) for one in edits if isinstance(one, Mapping)]
    return [str(one["old"]) for one in pairs if one.get("old")]

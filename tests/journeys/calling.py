"""Scripts for models that call tools: a Decision is played as text and calls."""

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, cast

from duckflow.llm.scripted import WINDOW, Line, Scripted, ScriptedReply
from duckflow.state.action import DECIDE, RESPOND, wire_name
from duckflow.state.message import ToolCall


def script_of(replies: Iterable[Line], native: bool, window: int = WINDOW) -> Scripted:
    """A scripted model; with `native` it takes tools, and Decisions become calls."""
    lines = (called(line) if native and isinstance(line, Mapping) and "actions" in line else line for line in replies)
    return Scripted(lines, window=window, native=native)


def called(decision: Mapping[str, Any]) -> ScriptedReply:
    """A Decision as a model that calls tools would put it: what is said is text, everything else a call."""
    said, calls, own = list[str](), list[tuple[str, dict[str, Any]]](), dict(decision)
    for action in cast("list[dict[str, Any]]", own.pop("actions")):
        if action["operation"] == RESPOND:
            said.append(action["args"]["text"])
        else:
            calls.append((wire_name(action["operation"]), {"reasoning": action["reasoning"], **action["args"]}))
    rationale = str(own.pop("rationale", ""))
    if calls or not said or "rating" in own:
        calls.insert(0, (DECIDE, own))
    made = (
        ToolCall(call_id=f"call_{secrets.token_hex(4)}", name=name, arguments=json.dumps(args, ensure_ascii=False))
        for name, args in calls
    )
    return ScriptedReply("\n\n".join(said) or rationale, calls=tuple(made))

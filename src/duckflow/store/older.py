"""What version 1 of the journal wrote, as this version has it. Its rows stay as they are, and are read through this.

A reply of the model was a message whose text was the Decision as JSON, with the ids of its actions beside it."""

import json
from typing import Any, cast

Fields = dict[str, Any]
# Keys, with quotes that a text in a JSON string cannot hold unescaped.
IN_THIS_VERSION = '"decision":'
IN_VERSION_1 = '"native":'


def upgraded(kind: str, body: str) -> str:
    """A row's body; the same one where nothing has changed since."""
    if kind != "message_added" or IN_THIS_VERSION in body:
        return body
    event = _object(body)
    event["message"] = _message(event.get("message", {}))
    return json.dumps(event, ensure_ascii=False)


def upgraded_snapshot(body: str) -> str:
    """A snapshot of the state, which holds the messages of jobs."""
    if IN_VERSION_1 not in body:
        return body
    state = _object(body)
    for job in state.get("jobs", {}).values():
        job["messages"] = [_message(message) for message in job.get("messages", ())]
    return json.dumps(state, ensure_ascii=False)


def older_words(role: str, text: str) -> str:
    """What the archive holds of a message, in words. Of a reply it held the JSON: then what was said and done."""
    decision = _decision(text) if role == "assistant" else None
    if decision is None:
        return text
    return "; ".join(map(_said_or_done, decision["actions"])) or str(decision["rationale"])


def _message(old: Fields) -> Fields:
    """A message with its Decision as data. One that was cut keeps its text."""
    if "decision" in old:
        return old
    message = {name: value for name, value in old.items() if name not in ("actions", "native")}
    decision = _decision(str(old.get("text", ""))) if old.get("role") == "assistant" else None
    if decision is None:
        return message | {"decision": None}
    for action, action_id in zip(decision["actions"], old.get("actions", ()), strict=False):
        action["action_id"] = action_id
    wire = cast("Fields | None", old.get("native"))
    said = [str(action["args"].get("text", "")) for action in decision["actions"] if action["operation"] == "response"]
    message["text"] = wire.pop("text", "") if wire else "\n\n".join(said)
    return message | {"decision": decision, "wire": wire}


def _said_or_done(action: Fields) -> str:
    args: Fields = action["args"]
    return str(args.get("text") or f"{action['operation']} {next(iter(args.values()), '')}")


def _decision(text: str) -> Fields | None:
    """The Decision in a text that is one and nothing else."""
    if not text.startswith('{"rationale":'):
        return None
    try:
        decision = _object(text)
    except (ValueError, RecursionError):
        return None
    return decision if "actions" in decision and "next_step" in decision else None


def _object(text: str) -> Fields:
    value: Any = json.loads(text)
    return cast("Fields", value) if isinstance(value, dict) else {}

"""Reads rows of a journal that older versions wrote. The rows stay as they are, and are converted when they are read.

In version 1 a reply of the model was a message whose text was the Decision as JSON, with the ids of its actions beside
it. Gates and Duck Calls had their own events for being asked and being answered. Calls did not name the argument that
they are about; it was the first of some well-known names."""

import json
from collections.abc import Sequence
from typing import Any, cast

Fields = dict[str, Any]
# Keys with their quotes, which a text in a JSON string cannot contain unescaped.
IN_THIS_VERSION = '"decision":'
IN_VERSION_1 = '"native":'
ASKED, CLOSED = "question_asked", "question_closed"
RENAMED = {"gate_opened": ASKED, "duck_called": ASKED, "gate_answered": CLOSED, "duck_answered": CLOSED}
"""The present names of kinds of events, by their old names."""
CALLS, SAYS_SUBJECT = '"args":', '"subject":'
KINDS_WITH_CALLS = ("action_started", "decision_made", "tasks_planned", "plan_changed")
SUBJECTS = ("path", "command", "source", "goal", "query", "pattern", "words")


def stored_kinds(kinds: Sequence[str]) -> list[str]:
    """Returns these kinds of events, and all their old names."""
    return [*kinds, *(old for old, new in RENAMED.items() if new in kinds)]


def upgraded(kind: str, body: str) -> tuple[str, str]:
    """Returns a row's kind and body in the present form. A row that is already in this form is returned unchanged."""
    if kind in RENAMED:
        return RENAMED[kind], json.dumps(_question_event(_object(body)), ensure_ascii=False)
    if kind in KINDS_WITH_CALLS:
        return kind, _with_subjects(body)
    if kind != "message_added" or IN_THIS_VERSION in body:
        return kind, body
    event = _object(body)
    event["message"] = _message(event.get("message", {}))
    return kind, json.dumps(event, ensure_ascii=False)


def upgraded_snapshot(body: str) -> str:
    """Returns a snapshot of the state, which holds plans and messages of jobs, in the present form."""
    body = _with_subjects(body)
    if IN_VERSION_1 not in body:
        return body
    snapshot_fields = _object(body)
    for job in snapshot_fields.get("jobs", {}).values():
        job["messages"] = [_message(message) for message in job.get("messages", ())]
    return json.dumps(snapshot_fields, ensure_ascii=False)


def _question_event(event: Fields) -> Fields:
    """Moves the fields that stood beside the question of a Duck Call into the question."""
    if "question" not in event:
        return event | {"on_record": True}
    moved_fields = {name: event[name] for name in ("reason", "severity") if name in event}
    return event | {"question": event["question"] | moved_fields | {"on_record": True}}


def _with_subjects(body: str) -> str:
    """Returns the body with a subject for each call. It is unchanged if every call already has one."""
    if body.count(SAYS_SUBJECT) >= body.count(CALLS):
        return body
    event = _object(body)
    _name_subjects(event)
    return json.dumps(event, ensure_ascii=False)


def _name_subjects(value: Any) -> None:
    """Adds to each call within the value the name of the argument that it is about."""
    if isinstance(value, list):
        for inner_value in cast("list[Any]", value):
            _name_subjects(inner_value)
    if not isinstance(value, dict):
        return
    fields = cast("Fields", value)
    if "operation" in fields and isinstance(args := fields.get("args"), dict):
        fields.setdefault("subject", next((name for name in SUBJECTS if cast("Fields", args).get(name)), ""))
        return
    for inner_value in fields.values():
        _name_subjects(inner_value)


def older_words(role: str, text: str) -> str:
    """Returns an archived message in words. A reply that was stored as JSON becomes the words and actions in it."""
    decision = _decision(text) if role == "assistant" else None
    if decision is None:
        return text
    return "; ".join(map(_said_or_done, decision["actions"])) or str(decision["rationale"])


def _message(old: Fields) -> Fields:
    """Returns a message with its Decision as data. A message that was cut keeps its text."""
    if "decision" in old:
        return old
    message = {name: value for name, value in old.items() if name not in ("actions", "native")}
    decision = _decision(str(old.get("text", ""))) if old.get("role") == "assistant" else None
    if decision is None:
        return message | {"decision": None}
    for action, action_id in zip(decision["actions"], old.get("actions", ()), strict=False):
        action["action_id"] = action_id
    wire_fields = cast("Fields | None", old.get("native"))
    answers = [
        str(action["args"].get("text", "")) for action in decision["actions"] if action["operation"] == "response"
    ]
    message["text"] = wire_fields.pop("text", "") if wire_fields else "\n\n".join(answers)
    return message | {"decision": decision, "wire": wire_fields}


def _said_or_done(action: Fields) -> str:
    args: Fields = action["args"]
    return str(args.get("text") or f"{action['operation']} {next(iter(args.values()), '')}")


def _decision(text: str) -> Fields | None:
    """Returns the Decision in a text; None if the text is not just a Decision."""
    if not text.startswith('{"rationale":'):
        return None
    try:
        decision = _object(text)
    except (ValueError, RecursionError):
        return None
    return decision if "actions" in decision and "next_step" in decision else None


def _object(text: str) -> Fields:
    parsed_json: Any = json.loads(text)
    return cast("Fields", parsed_json) if isinstance(parsed_json, dict) else {}

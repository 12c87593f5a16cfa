"""Operations as tools, and the conversation as calls with their results."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from duckflow.forms.form import own_words_renamed, renamed, spoken_by_others
from duckflow.forms.schema import listed, told
from duckflow.i18n.template import note, one_line, render, tool_text
from duckflow.state.action import (
    CALL,
    CHECK_PATTERN,
    DECIDE,
    DUCK_CALL,
    EXIT,
    RESPOND,
    Action,
    NextStep,
    Operation,
    PromptPattern,
    Rating,
    ReviewVerdict,
    wire_name,
)
from duckflow.state.message import Message, PromptMessage, ToolCall, ToolSpec
from duckflow.state.phase import Phase

Schema = dict[str, Any]

REASON = "reasoning"
TEXT: Schema = {"type": "string"}
CALL_PARAMETERS: Schema = {
    "type": "object",
    "properties": {"tool": TEXT, "args": {"type": "object"}},
    "required": ["tool"],
}
CHECK: Schema = {"type": "string", "pattern": CHECK_PATTERN}
LISTS = ("constraints", "plan_brief", "open_questions")
LEFT_OUT = ("title", "default", "additionalProperties", "minLength", "maxLength", "minimum", "maximum")


def tools(first: Sequence[Operation], operations: Sequence[Operation], language: str) -> tuple[ToolSpec, ...]:
    """Gives the first ones but `response`, which is text without a call; the tool that calls the other operations,
    where there are some; and what a Decision says besides."""
    specs = [
        ToolSpec(wire_name(one.name), renamed(told(one, language), operations, wire_name), _parameters(one))
        for one in first
        if one.name != RESPOND
    ]
    if len(first) < len(operations):
        rare = in_lines([one for one in operations if one.rare], language)
        specs.append(ToolSpec(CALL, f"{tool_text(language, CALL)}\n{rare}".strip(), CALL_PARAMETERS))
    return (*specs, ToolSpec(DECIDE, render(language, "decision_tool"), _decision_parameters()))


def in_lines(operations: Sequence[Operation], language: str) -> str:
    """Gives the operations that are called through another tool, one line each."""
    return renamed(listed(operations, language), operations, wire_name)


def _parameters(operation: Operation) -> Schema:
    given = operation.parameters
    told = cast("Schema", _plain(given.get("properties", {}), given.get("$defs", {}), ()))
    required: list[str] = list(given.get("required", ()))
    if operation.says_why and REASON not in told:
        # Not required: a line of text before the calls says why as well.
        told = {REASON: TEXT, **told}
    return {"type": "object", "properties": told, **({"required": required} if required else {})}


def _plain(value: Any, definitions: Schema, seen: tuple[str, ...]) -> Any:
    """Without what only costs room, and with what is referred to written out."""
    if isinstance(value, list):
        return [_plain(one, definitions, seen) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    table = cast("Schema", value)
    if name := str(table.get("$ref", "")).rpartition("/")[2]:
        # A shape that holds itself cannot be written out; any object may stand there.
        return {"type": "object"} if name in seen else _plain(definitions[name], definitions, (*seen, name))
    options = [one for one in table.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        # What may be null may be left out.
        return _plain(options[0], definitions, seen)
    return {
        key: _plain(item, definitions, seen)
        for key, item in table.items()
        if key not in LEFT_OUT or isinstance(item, dict)
    }


def _decision_parameters() -> Schema:
    """What a model may want to say of its work. The fields that are computed are taken too, but every request would pay
    for naming them."""
    steps = [step for step in Phase if step is not Phase.DONE]
    texts = {"type": "array", "items": TEXT}
    delta = {"goal": TEXT, "constraints": texts, "open_questions": texts, "decision": TEXT}
    return {
        "type": "object",
        "properties": {
            "step": _one_of(steps),
            "next_step": _one_of(get_args(NextStep)),
            "confidence": {"type": "number"},
            "goal_consistency": TEXT,
            "constraint_check": TEXT,
            "alternative": TEXT,
            "prompt_pattern": _one_of(get_args(PromptPattern)),
            "rating": _one_of(get_args(Rating)),
            "verdict": _one_of(get_args(ReviewVerdict)),
            "state_delta": {"type": "object", "properties": delta},
        },
    }


def _one_of(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def as_calls(history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
    """The conversation with every call right before its result, and whatever else was said in its order."""
    history = [own_words_renamed(message, operations, wire_name) for message in history]
    results = {one.answers: one for one in history if one.role == "tool" and one.answers}
    told: list[PromptMessage] = []
    shown: set[str] = set()
    for message in history:
        if message.role == "assistant":
            said, ids = _replied(message)
            # An empty reply is no message that every wire takes back.
            told += [said] if said.text or said.calls else []
            for call, action in zip(said.calls, ids, strict=True):
                shown.add(action)
                told.append(_result(call, results.get(action), language))
            told += _seen([results[one] for one in ids if one in results], language)
        elif not message.answers or message.answers not in shown:
            told.append(spoken_by_others(message, language))
    return told


def _result(call: ToolCall, result: Message | None, language: str) -> PromptMessage:
    if result:
        return PromptMessage("tool", result.text, answers=call.call_id)
    heard = call.name in (DECIDE, DUCK_CALL, EXIT)
    return PromptMessage("tool", note(language, "call_heard" if heard else "call_unanswered"), answers=call.call_id)


def _seen(results: Iterable[Message], language: str) -> list[PromptMessage]:
    """What is to be seen of the results, right after them: not every wire has pictures in a result."""
    pictures = tuple(picture for one in results for picture in one.pictures)
    names = one_line(", ".join(one.name for one in pictures))
    told = note(language, "result_pictures", names=names)
    return [PromptMessage("user", f"[duckflow]\n{told}", pictures=pictures)] if pictures else []


def _replied(message: Message) -> tuple[PromptMessage, list[str]]:
    """A reply as it came, or as it would have come by calls; and for each call the id of its action."""
    decision, wire = message.decision, message.wire
    if decision is None:
        return PromptMessage("assistant", message.text), []
    actions = [action for action in decision.actions if action.operation != RESPOND]
    if wire is None:
        calls = tuple(_call(one, ToolCall(call_id=one.action_id, name=one.operation), "") for one in actions)
        return PromptMessage("assistant", message.text or decision.rationale, calls), [one.action_id for one in actions]
    waiting, ids, made = iter(actions), list[str](), list[ToolCall]()
    for call in wire.calls:
        action = None if call.name == DECIDE else next(waiting, None)
        ids.append(action.action_id if action else "")
        made.append(_call(action, call, decision.rationale if message.text else "") if action else call)
    return PromptMessage("assistant", message.text, tuple(made), extra=wire.extra), ids


def _call(action: Action, call: ToolCall, rationale: str) -> ToolCall:
    """The call with the action's arguments; a reason that is the whole reply's was none of its own."""
    why = {} if action.reasoning in (rationale, call.name, action.operation) else {REASON: action.reasoning}
    args = why | action.args
    if call.name == CALL:
        args = {"tool": wire_name(action.operation), "args": args}
    return call.model_copy(update={"name": wire_name(call.name), "arguments": json.dumps(args, ensure_ascii=False)})

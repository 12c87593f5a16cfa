"""Describes operations for a model, in words or as tools, and turns the conversation into messages: calls with their
results, and the words of everybody else."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast, get_args

from duckflow.forms.form import GIVEN_BY_USER
from duckflow.i18n.template import note, one_line, quoted, render, tool_text
from duckflow.i18n.words import search, text_in
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
    PlanMoment,
    PromptPattern,
    Rating,
    ReviewVerdict,
    wire_name,
)
from duckflow.state.agent import AgentState
from duckflow.state.data import ELLIPSIS
from duckflow.state.message import ERROR, PAST, Message, PromptMessage, ToolCall, ToolSpec, last_request
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


def timely(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Returns the operations without those plan operations that cannot be used now."""
    current_moments = plan_moments(state) | ({"changed"} if state.changed_before else frozenset[PlanMoment]())
    return tuple(
        operation for operation in operations if not operation.when or current_moments.intersection(operation.when)
    )


def few(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Returns the operations that a small model is told of, with only their required arguments. Such a model would plan
    even the smallest thing, so it is told of plans only when the request has several parts."""
    has_several_parts = search("requests.several_parts", last_request(state.messages), state.language)
    needs_no_plan = state.plan is None and not has_several_parts
    led_operations = (operation for operation in timely(operations, state) if operation.led)
    return tuple(
        brief(operation, state.language) for operation in led_operations if not (needs_no_plan and operation.when)
    )


def told(operation: Operation, language: str) -> str:
    """Returns a short description of the operation for the model."""
    text = text_in(operation.told, language) if operation.told else tool_text(language, operation.name)
    return text.replace("{more}", operation.more)


def signature(operation: Operation) -> str:
    """Returns the call of an operation, such as `file_ops.read_file(path, start_line?, end_line?)`."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    names = [name if name in required else f"{name}?" for name in properties]
    return f"{operation.name}({', '.join(names)})"


def listed(operations: Iterable[Operation], language: str, marked: bool = False) -> str:
    """Lists operations, one a line: how each is called, and its purpose. `marked` puts a star before those that change
    things."""
    bullets = ("-", "*" if marked else "-")
    return "\n".join(
        f"{bullets[operation.changes]} {signature(operation)}: {told(operation, language)}" for operation in operations
    )


def brief(operation: Operation, language: str) -> Operation:
    """Returns the operation with only its required arguments, and no text of a file. Operations that then take the same
    arguments share one shape of the schema."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    required_properties = {name: properties[name] for name in properties if name in required}
    parameters = {**operation.parameters, "properties": required_properties}
    text = tool_text(language, f"{operation.name}.brief") or told(operation, language)
    return without_body(operation.model_copy(update={"parameters": parameters, "told": {language: text}}))


def without_body(operation: Operation) -> Operation:
    """Returns the operation without its argument for a long text, which is asked for in a separate request."""
    if not operation.body:
        return operation
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    other_properties = {name: properties[name] for name in properties if name != operation.body}
    required = [name for name in operation.parameters.get("required", ()) if name != operation.body]
    parameters = {**operation.parameters, "properties": other_properties, "required": required}
    return operation.model_copy(update={"parameters": parameters})


def plan_moments(state: AgentState) -> frozenset[PlanMoment]:
    """Returns the stages of planning that hold now, such as `draft`. They decide which operations on plans are
    offered."""
    plan = state.plan
    if plan is None or plan.is_over:
        return frozenset({"none", "over"} if plan and plan.status == "completed" else {"none"})
    if plan.status == "draft":
        return frozenset({"draft"})
    has_live_job = any(job.status in ("running", "paused", "interrupted") for job in state.jobs.values())
    return frozenset({"approved", "jobs"} if has_live_job else {"approved"})


def tools(first: Sequence[Operation], operations: Sequence[Operation], language: str) -> tuple[ToolSpec, ...]:
    """Returns the tools for a request: the `first` operations except `response` (text without a call replaces it); the
    tool that calls all other operations, if there are any; and the `decision` tool."""
    specs = [
        ToolSpec(
            wire_name(operation.name), renamed(told(operation, language), operations, wire_name), _parameters(operation)
        )
        for operation in first
        if operation.name != RESPOND
    ]
    if len(first) < len(operations):
        rare_operations = in_lines([operation for operation in operations if operation.rare], language)
        specs.append(ToolSpec(CALL, f"{tool_text(language, CALL)}\n{rare_operations}".strip(), CALL_PARAMETERS))
    return (*specs, ToolSpec(DECIDE, render(language, "decision_tool"), _decision_parameters()))


def in_lines(operations: Sequence[Operation], language: str) -> str:
    """Lists the operations that the model calls through the tool `call`, one line each."""
    return renamed(listed(operations, language), operations, wire_name)


def _parameters(operation: Operation) -> Schema:
    schema = operation.parameters
    properties = cast("Schema", _plain(schema.get("properties", {}), schema.get("$defs", {}), ()))
    required: list[str] = list(schema.get("required", ()))
    if operation.says_why and REASON not in properties:
        # The reason is not required: a line of text before the calls says it as well.
        properties = {REASON: TEXT, **properties}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _plain(value: Any, definitions: Schema, seen: tuple[str, ...]) -> Any:
    """Returns the schema without fields that only cost room, and with references written out."""
    if isinstance(value, list):
        return [_plain(part, definitions, seen) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    table = cast("Schema", value)
    if name := str(table.get("$ref", "")).rpartition("/")[2]:
        # A shape that contains itself cannot be written out: any object may stand there.
        return {"type": "object"} if name in seen else _plain(definitions[name], definitions, (*seen, name))
    options = [option for option in table.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        # An argument that may be null may be left out.
        return _plain(options[0], definitions, seen)
    return {
        key: _plain(field_value, definitions, seen)
        for key, field_value in table.items()
        if key not in LEFT_OUT or isinstance(field_value, dict)
    }


def _decision_parameters() -> Schema:
    """Returns the schema of the fields by which a model may describe its work. A model may also fill in the fields that
    are computed, but naming these would make every request longer."""
    steps = [step for step in Phase if step is not Phase.DONE]
    texts = {"type": "array", "items": TEXT}
    delta = {"goal": TEXT, "constraints": texts, "open_questions": texts, "decision": TEXT}
    return {
        "type": "object",
        "properties": {
            "step": one_of(steps),
            "next_step": one_of(get_args(NextStep)),
            "confidence": {"type": "number"},
            "goal_consistency": TEXT,
            "constraint_check": TEXT,
            "alternative": TEXT,
            "prompt_pattern": one_of(get_args(PromptPattern)),
            "rating": one_of(get_args(Rating)),
            "verdict": one_of(get_args(ReviewVerdict)),
            "state_delta": {"type": "object", "properties": delta},
        },
    }


def one_of(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def as_calls(history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
    """Returns the conversation with every call right before its result, and everything else in its order."""
    history = [own_words_renamed(message, operations, wire_name) for message in history]
    results = {message.answers: message for message in history if message.role == "tool" and message.answers}
    prompt_messages: list[PromptMessage] = []
    shown_actions: set[str] = set()
    for message in history:
        if message.role == "assistant":
            reply, ids = _replied(message)
            # Some endpoints refuse an empty reply in the conversation.
            prompt_messages += [reply] if reply.text or reply.calls else []
            for call, action in zip(reply.calls, ids, strict=True):
                shown_actions.add(action)
                prompt_messages.append(_result(call, results.get(action), language))
            prompt_messages += _seen([results[action_id] for action_id in ids if action_id in results], language)
        elif not message.answers or message.answers not in shown_actions:
            prompt_messages.append(spoken_by_others(message, language))
    return prompt_messages


def _result(call: ToolCall, result: Message | None, language: str) -> PromptMessage:
    if result:
        return PromptMessage("tool", result.text, answers=call.call_id, open_texts=_open_texts(result))
    is_heard = call.name in (DECIDE, DUCK_CALL, EXIT)
    return PromptMessage("tool", note(language, "call_heard" if is_heard else "call_unanswered"), answers=call.call_id)


def _seen(results: Iterable[Message], language: str) -> list[PromptMessage]:
    """Returns a message with the pictures of these results, to be sent after them. Not every endpoint takes pictures in
    a result."""
    pictures = tuple(picture for result in results for picture in result.pictures)
    names = one_line(", ".join(picture.name for picture in pictures))
    remark = note(language, "result_pictures", names=names)
    return [PromptMessage("user", f"[duckflow]\n{remark}", pictures=pictures)] if pictures else []


def _replied(message: Message) -> tuple[PromptMessage, list[str]]:
    """Returns a reply as the endpoint sent it, and the id of each call's action. A reply without tool calls is turned
    into calls."""
    decision, wire = message.decision, message.wire
    if decision is None:
        return PromptMessage("assistant", message.text), []
    actions = [action for action in decision.actions if action.operation != RESPOND]
    if wire is None:
        calls = tuple(
            _call(action, ToolCall(call_id=action.action_id, name=action.operation), "") for action in actions
        )
        return PromptMessage("assistant", message.text or decision.rationale, calls), [
            action.action_id for action in actions
        ]
    waiting_actions, ids, tool_calls = iter(actions), list[str](), list[ToolCall]()
    for call in wire.calls:
        action = None if call.name == DECIDE else next(waiting_actions, None)
        ids.append(action.action_id if action else "")
        tool_calls.append(_call(action, call, message.text) if action else call)
    return PromptMessage("assistant", message.text, tuple(tool_calls), extra=wire.extra), ids


def _call(action: Action, call: ToolCall, text: str) -> ToolCall:
    """Returns the call with the action's arguments. A reason that only repeats the text before the calls is left
    out."""
    is_said = action.reasoning.removesuffix(ELLIPSIS) in text or action.reasoning in (call.name, action.operation)
    reason_field = {} if is_said else {REASON: action.reasoning}
    args = reason_field | action.args
    if call.name == CALL:
        args = {"tool": wire_name(action.operation), "args": args}
    return call.model_copy(update={"name": wire_name(call.name), "arguments": json.dumps(args, ensure_ascii=False)})


def renamed(text: str, operations: Iterable[Operation], name: Callable[[str], str]) -> str:
    """Replaces the names of operations in one of Duckflow's own sentences by those that the model uses."""
    for operation in operations:
        if operation.name in text:
            text = re.sub(rf"(?<![\w.]){re.escape(operation.name)}(?!\w)", name(operation.name), text)
    return text


def own_words_renamed(message: Message, operations: Sequence[Operation], name: Callable[[str], str]) -> Message:
    """Renames operations in Duckflow's own sentences: in notes, results of plans, and the first line of an error.
    Everything else is a quotation, and stays as it is."""
    own_text, quoted_text = "", message.text
    if message.role == "system" or any(
        operation.name == message.operation and operation.effect == "plan" for operation in operations
    ):
        own_text, quoted_text = message.text, ""
    elif message.role == "tool" and message.text.startswith(ERROR):
        own_text, line_end, quoted_text = message.text.partition("\n")
        quoted_text = line_end + quoted_text
    renamed_text = renamed(own_text, operations, name)
    return message if renamed_text == own_text else message.model_copy(update={"text": renamed_text + quoted_text})


def spoken_by_others(message: Message, language: str) -> PromptMessage:
    """Returns a message, which is no reply of the model, as it stands in a request. Text from outside is put between
    marks."""
    match message.role:
        case "assistant":
            return PromptMessage("assistant", message.text)
        case "tool":
            from_user = message.operation.startswith(GIVEN_BY_USER)
            source = message.operation if from_user else render(language, "result", operation=message.operation)
            text, open_texts = quoted(language, source, message.text), _open_texts(message)
            return PromptMessage("user", text, pictures=message.pictures, open_texts=open_texts)
        case "system" if message.message_id.startswith(PAST):
            return PromptMessage("user", quoted(language, "memory", message.text))
        case "system":
            return PromptMessage("user", f"[duckflow]\n{message.text}")
        case "user":
            meanwhile_note = note(language, "said_meanwhile") + "\n" if message.meanwhile else ""
            return PromptMessage("user", meanwhile_note + message.text, open_texts=_open_texts(message))


def _open_texts(message: Message) -> tuple[str, ...]:
    return (message.text,) if message.is_open else ()

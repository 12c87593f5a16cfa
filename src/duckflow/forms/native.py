"""The form for models that call tools: the calls are the actions, and text without a call is the answer."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from duckflow.errors import ReplyUnusable
from duckflow.forms.broken_json import read_json
from duckflow.forms.calls import REASON, as_calls, in_lines, tools
from duckflow.forms.decision import CHECKS, PLAIN_FIELDS, make_decision, refuse_too_many
from duckflow.forms.form import Form, LiveWords, ParsedReply, ReplyRoom
from duckflow.forms.live import LiveText, without_thoughts
from duckflow.i18n.asking import ends_asking, question_in_passing
from duckflow.i18n.template import note, render
from duckflow.llm.provider import Reply, Request
from duckflow.state.action import (
    ALIASES,
    CALL,
    DECIDE,
    RESPOND,
    Action,
    Decision,
    Operation,
    TaskProfile,
    looks_only,
    wire_name,
)
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten
from duckflow.state.message import Message, PromptMessage, ToolCall, ToolSpec, WireReply
from duckflow.state.phase import Phase
from duckflow.whole_text import parse_json

CUT_OFF = (
    "The reply was cut off before its end, so none of its calls was made. "
    "Make the calls again, fewer at a time; write a long file in several parts."
)
CUT_OFF_SAYING = "Your answer was cut off at the limit of its length. Give it again, shorter, or call at once."
WRITTEN_CALL = r"(?s)<tool_call>\s*(.*?)\s*</tool_call>"
WRITTEN_DECISION = rf'(?:```(?:json)?\s*)?\{{\s*"(?:{"|".join(PLAIN_FIELDS)})"\s*:'
LINE_END, SENTENCE_END = r"\n", r"(?<=[^\d\s][.!?])\s+|(?<=[。！？])|\n"
LIST_MARK = r"(?:^|(?<=\s))(?:[-*•・]|[(（]?\d{1,2}[.)）])\s+|[①-⑳]\s*"
"""The mark before a part of a list."""
FILE = re.compile(r"(?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-]+\.[A-Za-z]\w{0,5}(?!\w)")
LONGEST_LEAD_IN = 6
QUOTE = r'(?<!\\)"'
FENCED = r"(?s)\A```(?:json)?\s*\n(.*)\n```\Z"


class NativeForm:
    """Reads calls as actions, with the texts of files in them. An endpoint's cache begins with the tools, so they are
    the same in every request. Operations that are offered only at times are listed beside the state, and called through
    the tool `call`."""

    format_name = ""

    def __init__(self) -> None:
        self._specs: tuple[object, tuple[ToolSpec, ...]] = ((), ())

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        return tuple(operations)

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            operation
            for operation in operations
            if not operation.rare and (not operation.when or "none" in operation.when)
        )

    def instructions(self, language: str, operations: Sequence[Operation]) -> str:
        return render(language, "format_native")

    def listed(self, operations: Sequence[Operation], language: str) -> str:
        first_operations = self.told_first(operations)
        specs = [tool._asdict() for tool in self.tools(operations, language)] if first_operations else []
        specs_text = json.dumps(specs, ensure_ascii=False) if specs else ""
        return "\n".join(
            filter(None, (specs_text, in_lines([operation for operation in operations if operation.when], language)))
        )

    def name(self, operation: str) -> str:
        return wire_name(operation)

    def spoken(self, history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
        return as_calls(history, operations, language)

    def without_texts(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(operations)

    def for_tasks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(operations)

    def for_texts(self) -> Form:
        from duckflow.forms.json_form import JsonForm

        return JsonForm()

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        return Request(messages, max_tokens=room.with_texts, tools=self.tools(operations, state.language))

    def tools(self, operations: Sequence[Operation], language: str) -> tuple[ToolSpec, ...]:
        """Returns the tools. They are written out once, and again only when the operations differ."""
        key = (language, *map(id, operations))
        if self._specs[0] != key:
            self._specs = key, tools(self.told_first(operations), operations, language)
        return self._specs[1]

    def live(self, operations: Iterable[Operation]) -> LiveWords:
        return LiveText({operation.name: operation.says for operation in operations if operation.says}, prose=True)

    def read(self, reply: Reply, operations: Sequence[Operation], state: AgentState) -> ParsedReply:
        """Reads the Decision that the calls make, with the text before them as its rationale. An empty reply, or one
        with nothing but the `decision` tool, is a Decision without actions.

        If none of the calls can be read, a check cannot be read, or the reply was cut off, nothing of the reply is
        done. A single unreadable call among others is `broken`: it is answered with the reason and not run. So is each
        call that changes something without saying why."""
        text, calls = without_thoughts(reply.text).strip(), reply.calls
        if reply.finish == "length":
            raise ReplyUnusable(CUT_OFF if calls else CUT_OFF_SAYING)
        if not calls and (reading := _written_out(text, operations, state)):
            return reading._replace(ignores_tools=True)
        wire = WireReply(calls=tuple(map(_without_arguments, calls)), extra=dict(reply.extra))
        return _reading(text, calls, operations, state)._replace(wire=wire)


def _reading(text: str, calls: Sequence[ToolCall], operations: Sequence[Operation], state: AgentState) -> ParsedReply:
    refuse_too_many(len(calls))
    operations_by_name = {wire_name(operation.name): operation for operation in operations}
    rationale, last_actions = shorten(text.partition("\n")[0], 200), _last_decided(state)
    declared_fields: dict[str, Any] = {}
    actions: list[dict[str, Any]] = []
    faults: dict[int, str] = {}
    unexplained_actions: dict[int, str] = {}
    is_doubtful = False
    reasons = _reasons(text, [call for call in calls if call.name != DECIDE], rationale)
    for call in calls:
        own_reason = rationale if call.name == DECIDE else next(reasons)
        try:
            call, args, is_mended = _meant(call)
            if is_mended:
                _require_whole(call, args, operations_by_name.get(wire_name(call.name)))
                is_doubtful = True
            if call.name == DECIDE:
                declared_fields |= {name: value for name, value in args.items() if value is not None}
            else:
                operation = operations_by_name.get(wire_name(call.name))
                actions.append(_action(call.name, args, operation, own_reason, last_actions))
                if operation and operation.says_why and actions[-1]["reasoning"] == operation.name:
                    unexplained_actions[id(actions[-1])] = note(state.language, "unexplained")
        except ReplyUnusable as problem:
            if call.name == DECIDE:
                raise
            operation = operations_by_name.get(wire_name(call.name))
            name = operation.name if operation else call.name
            actions.append({"operation": name, "args": {}, "reasoning": name})
            faults[id(actions[-1])] = problem.correction
    if faults and len(faults) == len(actions):
        raise ReplyUnusable(" ".join((*faults.values(), "No call was made.")))
    # If no text comes before the calls, their own reasons become the rationale.
    rationale = (
        rationale or shorten("; ".join(dict.fromkeys(str(action["reasoning"]) for action in actions)), 200) or "-"
    )
    # A reply that only declares something has neither acted nor answered, unless the work is done or it says so. An
    # empty reply after one that was for the user adds nothing.
    has_spoken = any(action.operation == RESPOND for action in last_actions)
    next_step = declared_fields.get(
        "next_step", "done" if not calls or has_spoken or _has_results(state) else "continue"
    )
    ends_turn = bool(text or calls or has_spoken) and not actions and next_step != "continue"
    called_operations = [operations_by_name.get(wire_name(str(action["operation"]))) for action in actions]
    changes_something = any(operation and operation.changes for operation in called_operations)
    # A reply that asks something but only calls reading tools is not a question to the user.
    calls_made = zip(called_operations, actions, strict=True)
    more_than_reads = any(
        operation and not looks_only(operation.name, operation.effect, action["args"])
        for operation, action in calls_made
    )
    waits = declared_fields.get("next_step") == "pending_user" and any(
        operation and operation.effect != "plan" for operation in called_operations
    )
    asks_user = (not actions or more_than_reads) and (waits or ends_asking(text, state.language))
    asks_user |= more_than_reads and bool(question_in_passing(text, state.language))
    answer = [{"operation": RESPOND, "args": {"text": text}, "reasoning": rationale}] if text else []
    if ends_turn or asks_user or not actions:
        actions = [*answer, *actions]
    fields = _computed(state, rationale, changes_something) | {
        "next_step": _next_step(ends_turn, asks_user and ends_turn),
        "actions": actions,
    }
    decision = _decision(fields, declared_fields, operations)
    action_pairs = zip(decision.actions, actions, strict=True)
    faults |= unexplained_actions
    faults_by_id = {
        action.action_id: faults[id(fields_of_action)]
        for action, fields_of_action in action_pairs
        if id(fields_of_action) in faults
    }
    return ParsedReply(decision, text, is_doubtful, broken=faults_by_id, asks_for_texts=False)


def _reasons(text: str, calls: Sequence[ToolCall], rationale: str) -> Iterator[str]:
    """Yields the reason of each call that the text before the calls gives. A text with as many lines, sentences or
    parts of a list as there are calls has one for each; otherwise all of it is for all of them. A sentence is never
    split, because its parts depend on each other."""
    for sign in LINE_END, SENTENCE_END, LIST_MARK:
        parts = [shorten(re.sub(LIST_MARK, "", part).strip(" \n,;、"), 200) for part in re.split(sign, text)]
        parts = [part for part in parts if part]
        if len(parts) == len(calls) > 1 and not any(_is_about_another(part, n, calls) for n, part in enumerate(parts)):
            return iter(parts)
    return iter([rationale] * len(calls))


def _is_about_another(part: str, number: int, calls: Sequence[ToolCall]) -> bool:
    """Says whether a part of the text cannot be the reason of this call: it is only a lead-in ("First"), or it names a
    file of another call and none of its own."""
    own_text = calls[number].arguments
    names = [name for name in FILE.findall(part) if any(name in call.arguments for call in calls)]
    is_lead_in = part.isascii() and " " not in part and len(part) <= LONGEST_LEAD_IN
    return is_lead_in or (bool(names) and not any(name in own_text for name in names))


def _last_decided(state: AgentState) -> Sequence[Action]:
    """Returns the actions of the model's last reply, if it belongs to this turn and the user has said nothing since."""
    last = next((message for message in reversed(state.messages) if message.role in ("assistant", "user")), None)
    return last.decision.actions if last and last.decision and last.turn == state.turn else ()


def _has_results(state: AgentState) -> bool:
    """Says whether something has been done in this turn."""
    return any(message.role == "tool" for message in state.messages if message.turn == state.turn)


def _decision(fields: dict[str, Any], declared: dict[str, Any], operations: Sequence[Operation]) -> Decision:
    """Makes the Decision. Declared fields that cannot be read are left out, since they are not worth another request.
    Only the checks must be readable."""
    try:
        return make_decision(fields | declared | {"declared": _known(declared)}, operations)
    except ReplyUnusable:
        readable_fields = {name: declared[name] for name in CHECKS if name in declared}
        decision = make_decision(fields | readable_fields | {"declared": _known(readable_fields)}, operations)
    for name in declared.keys() - readable_fields.keys():
        with suppress(ReplyUnusable):
            more_fields = readable_fields | {name: declared[name]}
            decision = make_decision(fields | more_fields | {"declared": _known(more_fields)}, operations)
            readable_fields = more_fields
    return decision


def _known(declared: Mapping[str, Any]) -> list[str]:
    return [name for name in PLAIN_FIELDS if name in declared]


def _computed(state: AgentState, rationale: str, changing: bool) -> dict[str, Any]:
    """Returns values for the fields that a model leaves out when it only calls tools. The phase stays the same, but a
    change means EXECUTION."""
    step = Phase.EXECUTION if changing else Phase.PLANNING if state.phase is Phase.DONE else state.phase
    return {
        "rationale": rationale,
        "goal_consistency": "yes",
        "constraint_check": "yes",
        "confidence": state.vitals.mood,
        "task_profile": TaskProfile.MULTI_STEP_TASK,
        "step": step,
        "prompt_pattern": state.prompt_pattern,
    }


def _next_step(ends: bool, asks: bool) -> str:
    if asks:
        return "pending_user"
    return "done" if ends else "continue"


def _action(
    name: str, args: dict[str, Any], operation: Operation | None, rationale: str, before: Sequence[Action]
) -> dict[str, Any]:
    """Makes an action. If the call gives no reason, the action gets the text before the calls as its reason, or the
    reason of an equal call in `before`."""
    own_properties: dict[str, Any] = operation.parameters.get("properties", {}) if operation else {}
    names = [name for name in (REASON, *ALIASES) if ALIASES.get(name, name) == REASON and name not in own_properties]
    reasoning = "".join(str(args.pop(name, "") or "") for name in names)
    name = operation.name if operation else name
    earlier_reasonings = (action.reasoning for action in before if (action.operation, action.args) == (name, args))
    return {
        "operation": name,
        "args": args,
        "reasoning": reasoning.strip() or rationale or next(earlier_reasonings, name),
    }


def _meant(call: ToolCall) -> tuple[ToolCall, dict[str, Any], bool]:
    """Returns the call that the model means, its arguments, and whether they had to be mended. For the tool `call`, the
    call that the model means stands in the arguments."""
    args, is_mended = _arguments(call)
    if call.name != CALL:
        return call, args, is_mended
    inner_args: Any = args.get("args") or {}
    text = inner_args if isinstance(inner_args, str) else json.dumps(inner_args)
    call = call.model_copy(update={"name": str(args.get("tool") or CALL), "arguments": text})
    args, inner_mended = _arguments(call)
    return call, args, is_mended or inner_mended


def _arguments(call: ToolCall) -> tuple[dict[str, Any], bool]:
    """Returns the arguments, and whether they had to be mended. Arguments that end within a text or before their last
    bracket may be incomplete, so they are not mended."""
    text, is_mended = call.arguments.strip(), False
    if not text:
        return {}, is_mended
    try:
        value = parse_json(text)
    except ValueError as problem:
        error = ReplyUnusable(f"The arguments of {call.name} are no JSON ({problem}).")
        if len(re.findall(QUOTE, text)) % 2:
            raise error from None
        try:
            parsed = read_json(text)
        except ReplyUnusable:
            raise error from None
        if parsed.cut or parsed.rest.strip("}] \n`"):
            raise error from None
        value, is_mended = parsed.value, True
    if not isinstance(value, dict):
        raise ReplyUnusable(f"The arguments of {call.name} must be one JSON object.")
    return cast("dict[str, Any]", value), is_mended


def _require_whole(call: ToolCall, args: dict[str, Any], operation: Operation | None) -> None:
    """Raises a ReplyUnusable if mended arguments lack a required one: the others may be incomplete, too."""
    required = operation.parameters.get("required", ()) if operation else ()
    if missing_names := [name for name in required if name not in args]:
        raise ReplyUnusable(f"The arguments of {call.name} are no JSON, and {', '.join(missing_names)} cannot be read.")


def _without_arguments(call: ToolCall) -> ToolCall:
    """Returns the call without its arguments, which stand in the Decision, except those of the `decision` tool."""
    return call if call.name == DECIDE else call.model_copy(update={"arguments": ""})


def _written_out(text: str, operations: Sequence[Operation], state: AgentState) -> ParsedReply | None:
    """Reads a Decision, or calls, that the model wrote as text; returns None if the text holds neither."""
    if written_calls := re.findall(WRITTEN_CALL, text):
        values = [_loaded(call) for call in written_calls]
    else:
        if re.match(WRITTEN_DECISION, text):
            from duckflow.forms.json_form import read_decision

            return read_decision(text, operations, "stop", state.phase)
        fenced = re.match(FENCED, text)
        value = _loaded(fenced[1] if fenced else text)
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
    names = {name for operation in operations for name in (operation.name, wire_name(operation.name))}
    tables = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    calls = [call for table in tables if (call := _call(table, names))]
    if not calls or len(calls) < len(values):
        return None
    return _reading(text.partition("<tool_call>")[0].strip() if written_calls else "", calls, operations, state)


def _call(value: Mapping[str, Any], names: set[str]) -> ToolCall | None:
    name, args = str(value.get("name", "")), value.get("arguments", value.get("parameters"))
    if name not in names or not isinstance(args, dict | str):
        return None
    return ToolCall(call_id="", name=name, arguments=args if isinstance(args, str) else json.dumps(args))


def _loaded(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return None

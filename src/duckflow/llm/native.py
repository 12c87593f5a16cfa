"""From a reply with tool calls to a Decision, and from one whose calls stand in its text."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from duckflow.errors import ReplyUnusable
from duckflow.llm.bodies import without_thoughts
from duckflow.llm.decision import CHECKS, Reading, make_decision, read_decision
from duckflow.llm.json_fields import as_table
from duckflow.state.action import DECIDE, RESPOND, Decision, Operation, TaskProfile, wire_name
from duckflow.state.agent import AgentState
from duckflow.state.asking import ends_asking
from duckflow.state.message import NativeReply, ToolCall
from duckflow.state.noun import shorten
from duckflow.state.phase import Phase

CUT_OFF = (
    "The reply was cut off before its end, so none of its calls was made. "
    "Make the calls again, fewer at a time; write a long file in several parts."
)
CUT_OFF_SAYING = "Your answer was cut off at the limit of its length. Give it again, shorter, or call at once."
REASON = "reasoning"
WRITTEN_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
WRITTEN_DECISION = re.compile(rf'(?:```(?:json)?\s*)?\{{\s*"(?:{"|".join(Decision.model_fields)})"\s*:')
FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)


def read_native(reply: NativeReply, finish: str, operations: Sequence[Operation], state: AgentState) -> Reading:
    """The Decision that the calls make, with the text before them as its rationale; text without calls is the answer.
    Nothing at all, or nothing but the `decision` tool, is a Decision without actions.

    ReplyUnusable, with what the model should change, when no call or a check cannot be read or the reply was cut off:
    then nothing of it is done. A call that cannot be read among others is `broken`: it is answered with the reason."""
    said, calls = without_thoughts(reply.text).strip(), reply.calls
    if finish == "length":
        raise ReplyUnusable(CUT_OFF if calls else CUT_OFF_SAYING)
    if not calls and (heedless := _written_out(said, operations, state)):
        return heedless
    kept = NativeReply(text=said, calls=tuple(_without_arguments(call) for call in calls), extra=reply.extra)
    return _reading(said, calls, operations, state, kept)


def _reading(
    said: str, calls: Sequence[ToolCall], operations: Sequence[Operation], state: AgentState, reply: NativeReply | None
) -> Reading:
    known = {wire_name(one.name): one for one in operations}
    rationale = shorten(said.partition("\n")[0], 200)
    given: dict[str, Any] = {}
    actions: list[dict[str, Any]] = []
    waits_from: int | None = None
    faults: dict[int, str] = {}
    for call in calls:
        try:
            args = _arguments(call)
            if call.name == DECIDE:
                given |= {name: value for name, value in args.items() if value is not None}
                waits_from = len(actions) if args.get("next_step") == "pending_user" else waits_from
            else:
                actions.append(_action(call.name, args, known.get(wire_name(call.name)), rationale))
        except ReplyUnusable as problem:
            if call.name == DECIDE:
                raise
            operation = known.get(wire_name(call.name))
            name = operation.name if operation else call.name
            actions.append({"operation": name, "args": {}, "reasoning": name})
            faults[id(actions[-1])] = problem.correction
    if faults and len(faults) == len(actions):
        raise ReplyUnusable(" ".join((*faults.values(), "No call was made.")))
    # Who says nothing before its calls says why with them.
    rationale = rationale or shorten("; ".join(dict.fromkeys(str(one["reasoning"]) for one in actions)), 200) or "-"
    # Who only says something of itself has neither acted nor answered, unless its work is done or it says so.
    spoken = _has_spoken(state)
    wants = given.get("next_step", "done" if not calls or spoken or _has_results(state) else "continue")
    ends = bool(said or calls or spoken) and not actions and wants != "continue"
    called = [known.get(wire_name(str(one["operation"]))) for one in actions]
    changing = any(one and one.changes for one in called)
    # Who asks and only looks around asks nobody but itself.
    asks = (not actions or any(one and one.effect != "read" for one in called)) and ends_asking(said)
    told = [{"operation": RESPOND, "args": {"text": said}, "reasoning": rationale}] if said else []
    if ends or asks or not actions:
        actions = [*told, *actions]
    elif waits_from is not None and any(one and one.changes for one in called[waits_from:]):
        # It waits for the user: what it would change after saying so is not done.
        actions = [*actions[:waits_from], *told, *(actions[waits_from:] if told else ())]
    fields = _computed(state, rationale, changing) | {"next_step": _next_step(ends, asks), "actions": actions}
    if changing and given.get("step") != Phase.AWAITING_APPROVAL:
        given.pop("step", None)
    decision = _decision(fields, given, operations)
    wrong = zip(decision.actions, actions, strict=True)
    broken = {action.action_id: faults[id(one)] for action, one in wrong if id(one) in faults}
    return Reading(decision, native=reply, broken=broken)


def _has_spoken(state: AgentState) -> bool:
    """Whether what it said last in this turn was for the user: who says nothing more then has said it all."""
    last = next((one for one in reversed(state.messages) if one.role in ("assistant", "user")), None)
    if last is None or last.role == "user" or last.turn != state.turn:
        return False
    return f'"operation":"{RESPOND}"' in last.text


def _has_results(state: AgentState) -> bool:
    """Whether something has been done in this turn."""
    return any(one.role == "tool" for one in state.messages if one.turn == state.turn)


def _decision(fields: dict[str, Any], given: dict[str, Any], operations: Sequence[Operation]) -> Decision:
    """What it says of itself is not worth writing everything again: what of it cannot be read is left out. Only a check
    must be a yes or a no."""
    try:
        return make_decision(fields | given, operations)
    except ReplyUnusable:
        checks = {name: given[name] for name in CHECKS if name in given}
        decision = make_decision(fields | checks, operations)
    for name in given.keys() - checks.keys():
        with suppress(ReplyUnusable):
            decision = make_decision(fields | checks | {name: given[name]}, operations)
            fields |= {name: given[name]}
    return decision


def _computed(state: AgentState, rationale: str, changing: bool) -> dict[str, Any]:
    """What a model that only calls tools leaves unsaid: nothing changes of it, but who changes things executes."""
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


def _action(name: str, args: dict[str, Any], operation: Operation | None, rationale: str) -> dict[str, Any]:
    """A reason that was left out is the one before the calls. What changes something must have one."""
    own: dict[str, Any] = operation.parameters.get("properties", {}) if operation else {}
    reasoning = str(args.pop(REASON, "") or "") if REASON not in own else ""
    if not (reasoning or rationale) and operation and operation.says_why:
        raise ReplyUnusable(f"{name} was called without {REASON}: say why this is needed.")
    why = reasoning.strip() or rationale or name
    return {"operation": operation.name if operation else name, "args": args, "reasoning": why}


def _arguments(call: ToolCall) -> dict[str, Any]:
    if not call.arguments.strip():
        return {}
    try:
        value: Any = json.loads(call.arguments, strict=False)
    except (ValueError, RecursionError) as problem:
        raise ReplyUnusable(f"The arguments of {call.name} are no JSON ({problem}).") from None
    if not isinstance(value, dict):
        raise ReplyUnusable(f"The arguments of {call.name} must be one JSON object.")
    return cast("dict[str, Any]", value)


def _without_arguments(call: ToolCall) -> ToolCall:
    return call if call.name == DECIDE else call.model_copy(update={"arguments": ""})


def _written_out(said: str, operations: Sequence[Operation], state: AgentState) -> Reading | None:
    """A Decision, or calls, written as text: the endpoint did not hand the tools on."""
    if written := WRITTEN_CALL.findall(said):
        values = [_loaded(one) for one in written]
    else:
        if WRITTEN_DECISION.match(said):
            return read_decision(said, operations, "stop", state.phase)
        whole = FENCED.match(said)
        value = _loaded(whole[1] if whole else said)
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
    names = {name for one in operations for name in (one.name, wire_name(one.name))}
    calls = [call for value in values if (call := _call(as_table(value), names))]
    if not calls or len(calls) < len(values):
        return None
    return _reading(said.partition("<tool_call>")[0].strip() if written else "", calls, operations, state, None)


def _call(value: Mapping[str, Any], names: set[str]) -> ToolCall | None:
    name, args = str(value.get("name", "")), value.get("arguments", value.get("parameters"))
    if name not in names or not isinstance(args, dict | str):
        return None
    return ToolCall(call_id="", name=name, arguments=args if isinstance(args, str) else json.dumps(args))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

"""From a model's reply to a Decision, or to a correction that the model can act on."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from pydantic import ValidationError

from duckflow.errors import ReplyUnusable
from duckflow.llm.bodies import take_blocks, without_thoughts
from duckflow.llm.json_fields import as_table, text_of
from duckflow.state.action import ALIASES, RESPOND, Action, Decision, NextStep, Operation, PromptPattern, TaskProfile
from duckflow.state.checks import read_check
from duckflow.state.five import StateDelta
from duckflow.state.message import NativeReply
from duckflow.state.phase import Phase, Rating, ReviewVerdict

if TYPE_CHECKING:
    from duckflow.llm.repair import ReadJson

DEPTH = 40
PROBLEMS_TOLD = 8
CUT_OFF = (
    "The reply was cut off before its end, so none of it was used. "
    "Send the whole Decision again, shorter: fewer actions, short texts, no file contents inside the JSON."
)
# Closing brackets a model may have forgotten at the end of a whole reply: those of an action, the list, the Decision.
FORGOTTEN = ("", "}", "]}", "}]}")
# When the token limit cut the reply, a list left open may lack actions, or its last one may be half.
CLOSED_LIST = ("", "}")
CHECK = '"yes" or "no: reason"'
CHECKS = ("goal_consistency", "constraint_check")
RATINGS = {one: one for one in get_args(Rating)} | {"良い": "good", "普通": "fair", "要改善": "needs_work"}
VERDICTS = {one: one for one in get_args(ReviewVerdict)} | {"承認": "approved", "要修正": "fix", "拒否": "rejected"}
LINES = "null or a list of short texts"
EXPECTED = {
    "rationale": "one line of text: why this, now",
    "goal_consistency": CHECK,
    "constraint_check": CHECK,
    "confidence": "a number from 0 to 1",
    "task_profile": "one of " + ", ".join(TaskProfile),
    "step": "one of " + ", ".join(phase for phase in Phase if phase is not Phase.DONE),
    "next_step": "one of " + ", ".join(get_args(NextStep)),
    "prompt_pattern": "one of " + ", ".join(get_args(PromptPattern)),
    "state_delta": "null or an object with " + ", ".join(StateDelta.model_fields),
    "actions": "a list of objects with operation, args and reasoning",
    "action": "an object with operation, args and reasoning",
    "args": "an object",
    "reasoning": "a sentence that says why this action is needed",
    "constraints": LINES,
    "plan_brief": LINES,
    "open_questions": LINES,
}


class Reading(NamedTuple):
    """A Decision as read. `doubtful`: it was repaired or cut off, so it changes nothing without the user's yes.

    `blocks` are the raw bodies that followed the JSON. `native`: it came as tool calls, or as the text without any.
    """

    decision: Decision
    doubtful: bool = False
    blocks: tuple[str, ...] = ()
    native: NativeReply | None = None
    broken: Mapping[str, str] = MappingProxyType({})
    """By action: why it cannot be read. The others can."""


def read_decision(
    text: str, operations: Sequence[Operation], finish: str = "stop", phase: Phase = Phase.PLANNING
) -> Reading:
    """The Decision in a reply, or ReplyUnusable with what the model should change.

    Unknown operations and bad arguments are not looked at: they become results; so does an action that cannot be read
    among others of a whole reply. Plain prose without any `{` comes from a model that just answers; it is taken as one
    `response` that leaves the `phase` as it is, marked doubtful, since a response can harm nothing.
    """
    answer = without_thoughts(text)
    if not answer.strip():
        raise ReplyUnusable("The reply was empty. Send one JSON object, the Decision.")
    if "{" not in answer and "｛" not in answer:
        return _spoken(answer.strip(), operations, finish, phase)
    try:
        found, value = _find(answer)
    except ReplyUnusable:
        if finish == "length":
            raise ReplyUnusable(CUT_OFF) from None
        raise
    may_lack = CLOSED_LIST if finish == "length" else FORGOTTEN
    if found.half or found.missing not in may_lack or (found.guessed and finish == "length"):
        raise ReplyUnusable(CUT_OFF)
    doubtful = found.repaired or found.truncated or finish == "length"
    # What was cut off or guessed may be broken because it is half.
    faults = {} if found.truncated or found.guessed or finish == "length" else _faults(value, operations)
    if faults:
        value = value | {"actions": [_named(one) if at in faults else one for at, one in enumerate(value["actions"])]}
    try:
        decision = make_decision(value, operations)
    except ReplyUnusable:
        if found.truncated:
            raise ReplyUnusable(CUT_OFF) from None
        raise
    if "]" in found.missing and not decision.actions:
        # It ends where the list of actions had just begun.
        raise ReplyUnusable(CUT_OFF)
    broken = {decision.actions[at].action_id: fault for at, fault in faults.items()}
    # With one that cannot be read it is not sure whose text is whose: they are asked for.
    return Reading(decision, doubtful, () if broken else take_blocks(found.rest), broken=broken)


def _faults(value: dict[str, Any], operations: Sequence[Operation]) -> dict[int, str]:
    """By place: why an action cannot be read among others that can. What is shown while it comes must be whole."""
    known = {operation.name: operation for operation in operations}
    actions = cast("list[Any]", value["actions"]) if isinstance(value.get("actions"), list) else []
    faults: dict[int, str] = {}
    for at, one in enumerate([] if _too_deep(value) else actions):
        try:
            Action.model_validate(_action(one, known))
        except ValidationError as error:
            faults[at] = "; ".join(_problems(error, operations, "actions", at))
    shown = any((operation := known.get(_named(actions[at])["operation"])) and operation.says for at in faults)
    return {} if shown or len(faults) == len(actions) else faults


def _named(given: Any) -> dict[str, Any]:
    """What stands for an action that cannot be read, with as much as was given: it is not run."""
    action = as_table(_action(given, {}))
    named = {"operation": text_of(action, "operation") or "unnamed", "args": as_table(action.get("args"))}
    return named | {"reasoning": text_of(action, "reasoning").strip() or "-"}


def _spoken(text: str, operations: Sequence[Operation], finish: str, phase: Phase) -> Reading:
    if finish == "length":
        raise ReplyUnusable(CUT_OFF)
    if text.startswith("[") or RESPOND not in {operation.name for operation in operations}:
        raise ReplyUnusable("There is no Decision in the reply. Send one JSON object, the Decision.")
    answer = Action(operation=RESPOND, args={"text": text}, reasoning="the model answered in plain text")
    step = Phase.PLANNING if phase is Phase.DONE else phase
    decision = Decision.made_up(
        "answered in plain text", [answer], TaskProfile.GENERAL_CHAT, step, "pending_user", confidence=0.5
    )
    return Reading(decision, doubtful=True)


def _find(text: str) -> tuple["ReadJson", dict[str, Any]]:
    """The first object that has a Decision's fields; what else looks like JSON stands in the prose around it."""
    from duckflow.llm.repair import json_values

    is_list = False
    for found in json_values(text):
        listed = isinstance(found.value, list)
        is_list = is_list or listed
        objects = map(as_table, cast("list[Any]", found.value) if listed else [found.value])
        decisions = [one for one in objects if not Decision.model_fields.keys().isdisjoint(one)]
        if len(decisions) == 1:
            return found, decisions[0]
    problem = "The reply is a list" if is_list else "The JSON in the reply is not a Decision"
    raise ReplyUnusable(f"{problem}. Send one JSON object with {', '.join(Decision.model_fields)}.")


def make_decision(value: dict[str, Any], operations: Sequence[Operation]) -> Decision:
    """The Decision with these fields, or ReplyUnusable with what is wrong about them."""
    if _too_deep(value):
        raise ReplyUnusable(f"The JSON is nested more than {DEPTH} levels deep. Send a simpler Decision.")
    try:
        return Decision.model_validate(_plain(value, {operation.name: operation for operation in operations}))
    except ValidationError as error:
        problems = _problems(error, operations)
    told = "\n".join(f"- {problem}" for problem in problems[:PROBLEMS_TOLD])
    raise ReplyUnusable(f"The Decision is not usable:\n{told}")


def _problems(error: ValidationError, operations: Sequence[Operation], *place: int | str) -> list[str]:
    """Each in one line; `place` is where in the Decision it was found."""
    expected = EXPECTED | {"operation": "one of " + ", ".join(operation.name for operation in operations)}
    return [_problem((*place, *one["loc"]), one["type"] == "missing", one["input"], expected) for one in error.errors()]


def _problem(place: tuple[int | str, ...], missing: bool, given: Any, expected: dict[str, str]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    must = expected.get("action" if place[:-1] == ("actions",) else str(place[-1]), "a text")
    if missing:
        return f"{path} is missing; it must be {must}"
    shown = json.dumps(given, ensure_ascii=False, default=str)
    return f"{path} is {shown[:60]}{'…' if len(shown) > 60 else ''}; it must be {must}"


def _plain(given: dict[str, Any], operations: dict[str, Operation]) -> dict[str, Any]:
    """The fields with their harmless variations made plain."""
    fields = {name: given[name] for name in Decision.model_fields if name in given}
    for name in ("task_profile", "step"):
        fields |= {name: _name(fields[name]).upper()} if isinstance(fields.get(name), str) else {}
    for name in ("next_step", "prompt_pattern"):
        fields |= {name: _name(fields[name]).lower()} if isinstance(fields.get(name), str) else {}
    for name in CHECKS:
        fields |= {name: _check(fields[name])} if name in fields else {}
    for name, known in (("rating", RATINGS), ("verdict", VERDICTS)):
        # Who says it in other words is not asked again: it counts as not said.
        fields |= {name: known.get(_name(str(fields[name])).lower())} if name in fields else {}
    if "confidence" in fields:
        fields["confidence"] = _confidence(fields["confidence"])
    fields["state_delta"] = _delta(fields.get("state_delta"))
    if isinstance(actions := fields.get("actions"), dict | list):
        listed = cast("list[Any]", actions if isinstance(actions, list) else [actions])
        fields["actions"] = [_action(one, operations) for one in listed]
    return fields


def _name(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip())


def _check(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    # What says neither is no text that a check can be.
    return read_check(value) or [value] if isinstance(value, str) else value


def _confidence(value: Any) -> float | str:
    """A number, or a text that is none: then the Decision says what it must be."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return json.dumps(value, default=str)
    text = str(value).strip()
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return text


def _delta(value: Any) -> Any:
    if not value:
        return None
    if not isinstance(value, dict):
        return value
    delta = {name: item for name, item in cast("dict[str, Any]", value).items() if item not in (None, "")}
    for name in ("constraints", "plan_brief", "open_questions"):
        if isinstance(delta.get(name), str):
            delta[name] = [delta[name]]
    return delta


def _action(value: Any, operations: dict[str, Operation]) -> Any:
    """One action under its proper names, without an id of its own, and without the nulls that stand for `not given`."""
    if not isinstance(value, dict):
        return value
    action = {ALIASES.get(name, name): item for name, item in cast("dict[str, Any]", value).items()}
    action.pop("action_id", None)
    if isinstance(action.get("operation"), str):
        action["operation"] = action["operation"].strip()
    args = action.get("args")
    if isinstance(args, str) and args.lstrip().startswith("{"):
        args = _loaded(args)
    if args is None:
        args = {}
    operation = operations.get(str(action.get("operation")))
    if operation and isinstance(args, dict):
        required = operation.parameters.get("required", ())
        args = {
            name: item for name, item in cast("dict[str, Any]", args).items() if item is not None or name in required
        }
    return action | {"args": args}


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()

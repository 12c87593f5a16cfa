"""Makes a Decision from the fields that a model gave. If that fails, it says what the model should correct."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from pydantic import ValidationError

from duckflow.errors import ReplyUnusable
from duckflow.i18n.words import fullmatch, joined, search
from duckflow.state.action import (
    ALIASES,
    Decision,
    NextStep,
    Operation,
    PromptPattern,
    TaskProfile,
    first_given,
)
from duckflow.state.phase import Phase, Rating, ReviewVerdict, StateDelta
from duckflow.whole_text import parse_json

WELL, WRONG = "[○✓]", "[×✗]"


def read_check(text: str) -> str:
    """Reads a check as `yes`, `no` or `no: reason`; returns an empty text if it says neither yes nor no."""
    plain_text = unicodedata.normalize("NFKC", text).strip().strip(".。\"'")
    yes_pattern, no_pattern = joined("checks.yes", plain_text), joined("checks.no", plain_text)
    if answer := re.match(rf"(?i)(?:{yes_pattern}|{WELL})(?![a-z])", plain_text):
        return "" if search("checks.but", plain_text[answer.end() :]) else "yes"
    if answer := re.match(rf"(?i)(?:{no_pattern}|{WRONG})(?![a-z/])\s*(?:[:,.;、。—–-]\s*|$)", plain_text):
        reason = plain_text[answer.end() :].strip()
        if fullmatch("checks.no_objection", reason):
            return "yes"
        return f"no: {reason}" if reason else "no"
    match _leaning(plain_text.casefold()):
        case 1:
            return "yes"
        case -1:
            return f"no: {plain_text}"
        case _:
            # "no it deletes the file": the colon after the no was left out.
            reason = re.sub(rf"(?i)^(?:{no_pattern}|{WRONG})(?![a-z/])\s+", "", plain_text)
            return f"no: {reason}" if reason != plain_text else ""


def _leaning(text: str) -> int:
    """Returns 1 for a text that says all is well, -1 for a text that says something is wrong, and 0 if it says neither.
    A negated word counts as its opposite."""
    good_pattern, bad_pattern = joined("checks.good", text), joined("checks.bad", text)
    not_before = rf"{joined('checks.not_before', text)}(?:\W+[\w'’]+){{0,4}}?\W+\w*"
    not_after = rf"[^、。]{{0,8}}?{joined('checks.not_after', text)}"
    text_without_denials = re.sub(rf"{not_before}{bad_pattern}\w*|{bad_pattern}{not_after}", " ", text)
    if re.search(bad_pattern, text_without_denials) or re.search(
        rf"{not_before}{good_pattern}|{good_pattern}{not_after}", text_without_denials
    ):
        return -1
    return 1 if text_without_denials != text or re.search(good_pattern, text_without_denials) else 0


DEPTH = 40
MOST_CALLS = 100
"""The most calls of one reply that are carried out: nobody could follow more, or be asked about them."""
PROBLEMS_TOLD = 8
PLAIN_FIELDS = tuple(name for name in Decision.model_fields if name != "declared")
"""The fields that a model may give in a Decision (its reply with actions)."""
CHECK = '"yes" or "no: reason"'
CHECKS = ("goal_consistency", "constraint_check")
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


def make_decision(value: dict[str, Any], operations: Sequence[Operation]) -> Decision:
    """Makes the Decision with these fields. If they are wrong, raises a ReplyUnusable that says what is wrong."""
    if is_too_deep(value):
        raise ReplyUnusable(f"The JSON is nested more than {DEPTH} levels deep. Send a simpler Decision.")
    try:
        return Decision.model_validate(_plain(value, {operation.name: operation for operation in operations}))
    except ValidationError as error:
        problems = _problems(error, operations)
    lines = "\n".join(f"- {problem}" for problem in problems[:PROBLEMS_TOLD])
    raise ReplyUnusable(f"The Decision is not usable:\n{lines}")


def refuse_too_many(calls: int) -> None:
    if calls > MOST_CALLS:
        raise ReplyUnusable(
            f"The reply has {calls} calls, and at most {MOST_CALLS} are carried out at once. None was made. "
            "Make the first of them, look at the results, then go on; or use one command for all."
        )


def action_problems(error: ValidationError, operations: Sequence[Operation], place: int) -> list[str]:
    """Says what is wrong with the action at this place, each problem in one line."""
    return _problems(error, operations, "actions", place)


def _problems(error: ValidationError, operations: Sequence[Operation], *place: int | str) -> list[str]:
    """Returns each problem in one line. `place` says where in the Decision the checked value stands."""
    expected_texts = EXPECTED | {"operation": "one of " + ", ".join(operation.name for operation in operations)}
    return [
        _problem((*place, *fault["loc"]), fault["type"] == "missing", fault["input"], expected_texts)
        for fault in error.errors()
    ]


def _problem(place: tuple[int | str, ...], missing: bool, value: Any, expected: dict[str, str]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    expectation = expected.get("action" if place[:-1] == ("actions",) else str(place[-1]), "a text")
    if missing:
        return f"{path} is missing; it must be {expectation}"
    value_text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{path} is {value_text[:60]}{'…' if len(value_text) > 60 else ''}; it must be {expectation}"


def _plain(value: dict[str, Any], operations: dict[str, Operation]) -> dict[str, Any]:
    """Returns the fields in their regular form, where the model wrote a harmless variation of it."""
    fields = {name: value[name] for name in Decision.model_fields if name in value}
    for name in ("task_profile", "step"):
        fields |= {name: _name(fields[name]).upper()} if isinstance(fields.get(name), str) else {}
    for name in ("next_step", "prompt_pattern"):
        fields |= {name: _name(fields[name]).lower()} if isinstance(fields.get(name), str) else {}
    for name in CHECKS:
        fields |= {name: _check(fields[name])} if name in fields else {}
    for name, known_values in (("rating", get_args(Rating)), ("verdict", get_args(ReviewVerdict))):
        fields |= {name: _meant(name, _name(str(fields[name])).lower(), known_values)} if name in fields else {}
    if "confidence" in fields:
        fields["confidence"] = _confidence(fields["confidence"])
    fields["state_delta"] = _delta(fields.get("state_delta"))
    if isinstance(actions := fields.get("actions"), dict | list):
        action_list = cast("list[Any]", actions if isinstance(actions, list) else [actions])
        fields["actions"] = [action_fields(action, operations) for action in action_list]
    return fields


def _meant(field: str, word: str, known: Sequence[str]) -> str | None:
    """Returns the value that a word stands for. Returns None for an unknown word, which is not worth another request to
    the model."""
    return next((value for value in known if word == value or fullmatch(f"checks.{field}.{value}", word)), None)


def _name(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip())


def _check(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == "yes":
        return value
    # A check that says neither yes nor no becomes a list, which the Decision refuses.
    return read_check(value) or [value] if isinstance(value, str) else value


def _confidence(value: Any) -> float | str:
    """Returns the confidence as a number. A value that is no number is returned as a text, which the Decision then
    refuses."""
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


def action_fields(value: Any, operations: dict[str, Operation]) -> Any:
    """Returns one action with the proper names of its fields, without an id, and without nulls that stand for `not
    given`."""
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
    operation, subject = operations.get(str(action.get("operation"))), ""
    if operation and isinstance(args, dict):
        required = operation.parameters.get("required", ())
        args = {
            name: item for name, item in cast("dict[str, Any]", args).items() if item is not None or name in required
        }
        subject = first_given(operation.subject, args)
    return action | {"args": args, "subject": subject}


def _loaded(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH):
        level = [inner_value for outer_value in level for inner_value in _inside(outer_value)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()

"""From replies as models really write them to a Decision, or to a correction they can follow."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from pydantic import BaseModel

from duckflow.errors import ReplyUnusable
from duckflow.forms.json_form import read_decision
from duckflow.state.action import Decision, Operation, TaskProfile
from duckflow.state.phase import Phase


class Text(BaseModel):
    text: str


class Read(BaseModel):
    path: str
    limit: int = 100


class Keep(BaseModel):
    value: str | None


OPERATIONS = [
    Operation(name="response", parameters=Text.model_json_schema()),
    Operation(name="file_ops.read_file", parameters=Read.model_json_schema()),
    Operation(name="keep", parameters=Keep.model_json_schema()),
    Operation(name="file_ops.write_file", parameters=Read.model_json_schema(), effect="write"),
]


def reply(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "rationale": "the file must be seen first",
        "goal_consistency": "yes",
        "constraint_check": "yes",
        "confidence": 0.8,
        "task_profile": "FILE_OPERATION",
        "step": "EXECUTION",
        "state_delta": None,
        "actions": [{"operation": "file_ops.read_file", "reasoning": "to see it", "args": {"path": "a.py"}}],
        "next_step": "continue",
        "prompt_pattern": "base_main",
    }
    return given | changes


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in reply().items() if name not in names}


def read(given: dict[str, Any]) -> Decision:
    return read_decision(json.dumps(given), OPERATIONS).decision


def correction(text: str, finish: str = "stop") -> str:
    with pytest.raises(ReplyUnusable) as refusal:
        read_decision(text, OPERATIONS, finish)
    return refusal.value.correction


def test_a_proper_reply_is_a_decision_without_doubt() -> None:
    reading = read_decision(json.dumps(reply()), OPERATIONS)
    assert not reading.doubtful
    assert reading.decision.task_profile is TaskProfile.FILE_OPERATION
    assert [action.operation for action in reading.decision.actions] == ["file_ops.read_file"]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"step": "awaiting approval"}, "step", Phase.AWAITING_APPROVAL),
        ({"step": " Execution "}, "step", Phase.EXECUTION),
        ({"task_profile": "multi-step task"}, "task_profile", TaskProfile.MULTI_STEP_TASK),
        ({"next_step": "Pending User"}, "next_step", "pending_user"),
        ({"prompt_pattern": "BASE_MAIN"}, "prompt_pattern", "base_main"),
        ({"confidence": "80%"}, "confidence", 0.8),
        ({"confidence": "0.8"}, "confidence", 0.8),
        ({"confidence": 7}, "confidence", 1.0),
        ({"confidence": 10**400}, "confidence", 1.0),
        ({"goal_consistency": True}, "goal_consistency", "yes"),
        ({"constraint_check": False}, "constraint_check", "no"),
        ({"constraint_check": "None."}, "constraint_check", "yes"),
        ({"constraint_check": "No constraints are violated."}, "constraint_check", "yes"),
        ({"constraint_check": "no: no constraints are violated"}, "constraint_check", "yes"),
        ({"constraint_check": "no: reason"}, "constraint_check", "yes"),
        ({"constraint_check": "No constraint allows it"}, "constraint_check", "no: No constraint allows it"),
        ({"constraint_check": "いいえ"}, "constraint_check", "no"),
        ({"constraint_check": "false"}, "constraint_check", "no"),
        ({"constraint_check": "いいえ、制約に違反"}, "constraint_check", "no: 制約に違反"),
        ({"constraint_check": "違反しています"}, "constraint_check", "no: 違反しています"),
        ({"constraint_check": "違反はありません"}, "constraint_check", "yes"),
        ({"constraint_check": "not violated"}, "constraint_check", "yes"),
        ({"goal_consistency": "The action serves the goal"}, "goal_consistency", "yes"),
        ({"goal_consistency": "目標に沿っていない"}, "goal_consistency", "no: 目標に沿っていない"),
        (
            {"goal_consistency": "no: it breaks the rule not to write"},
            "goal_consistency",
            "no: it breaks the rule not to write",
        ),
        ({"goal_consistency": "no"}, "goal_consistency", "no"),
        ({"constraint_check": "no: it deletes"}, "constraint_check", "no: it deletes"),
        ({"state_delta": {}}, "state_delta", None),
        ({"state_delta": ""}, "state_delta", None),
    ],
)
def test_harmless_variations_are_taken(given: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read(reply(**given)), field) == value


@pytest.mark.parametrize("said", ["Noted", "yes, but it deletes a file", "maybe", ""])
def test_a_check_that_says_neither_is_asked_for_again(said: str) -> None:
    told = correction(json.dumps(reply(goal_consistency=said)))
    assert "goal_consistency is" in told and 'it must be "yes" or "no: reason"' in told


def test_a_delta_may_leave_things_empty_and_give_one_line_for_a_list() -> None:
    delta = read(reply(state_delta={"goal": "", "why_now": None, "constraints": "no network"})).state_delta
    assert delta
    assert delta.items() == {"constraints": ["no network"]}


@pytest.mark.parametrize(
    "action",
    [
        {"name": "file_ops.read_file", "parameters": {"path": "a.py"}, "thought": "to see it"},
        {"operation": " file_ops.read_file ", "args": '{"path": "a.py"}', "reasoning": "to see it"},
        {"operation": "file_ops.read_file", "args": {"path": "a.py", "limit": None}, "reasoning": "to see it"},
        {"action_id": "mine", "operation": "file_ops.read_file", "args": {"path": "a.py"}, "reasoning": "to see it"},
    ],
)
def test_an_action_may_come_in_other_words(action: dict[str, Any]) -> None:
    for actions in ([action], action):
        (got,) = read(reply(actions=actions)).actions
        assert (got.operation, got.args, got.reasoning) == ("file_ops.read_file", {"path": "a.py"}, "to see it")
        assert got.action_id.startswith("act_")


def test_a_null_that_means_something_stays() -> None:
    kept = {"operation": "keep", "args": {"value": None}, "reasoning": "to forget it"}
    unknown = {"operation": "fly", "args": {"to": None}, "reasoning": "why not"}
    first, second = read(reply(actions=[kept, unknown])).actions
    assert first.args == {"value": None}
    assert second.operation == "fly"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (without("next_step"), "- next_step is missing; it must be one of done, pending_user, defer, continue"),
        (reply(step="DONE"), '- step is "DONE"; it must be one of PLANNING, EXECUTION, REVIEW, AWAITING_APPROVAL'),
        (reply(confidence="high"), '- confidence is "high"; it must be a number from 0 to 1'),
        (reply(confidence=None), "it must be a number from 0 to 1"),
        (reply(confidence=[0.5]), "it must be a number from 0 to 1"),
        (reply(rationale=None), "- rationale is null; it must be one line of text: why this, now"),
        (reply(state_delta=["x"]), '- state_delta is ["x"]; it must be null or an object with goal, why_now,'),
        (reply(state_delta={"constraints": 5}), "- state_delta.constraints is 5; it must be null or a list"),
        (reply(actions="read"), '- actions is "read"; it must be a list of objects'),
        (reply(actions=["read"]), '- actions[0] is "read"; it must be an object with operation, args and reasoning'),
        (reply(actions=[{"args": {}, "reasoning": "x"}]), "- actions[0].operation is missing; it must be one of resp"),
        (
            reply(actions=[{"operation": "response", "args": {"text": "hi"}}]),
            "- actions[0].reasoning is missing; it must be a sentence that says why this action is needed",
        ),
        (reply(actions=[{"operation": "response", "args": {}, "reasoning": " "}]), '- actions[0].reasoning is " "'),
        (reply(actions=[{"operation": "response", "args": [1], "reasoning": "x"}]), "- actions[0].args is [1]"),
        ({"actions": []}, "- rationale is missing"),
    ],
)
def test_each_problem_is_told_in_one_line(given: dict[str, Any], told: str) -> None:
    said = correction(json.dumps(given))
    assert told in said
    assert "pydantic" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("<think>endless", "empty"),
        ('[{"operation": "response", "args": {"text": "hi"}, "reasoning": "x"}]', "The reply is a list"),
        ('{"operation": "response", "args": {"text": "hi"}, "reasoning": "x"}', "not a Decision"),
        ("[]", "no Decision"),
        ("Use {braces} freely", "cannot be read"),
        ('{"rationale": ' + "[" * 100 + "]" * 100 + "}", "nested"),
    ],
)
def test_a_reply_that_is_no_decision_is_refused(text: str, told: str) -> None:
    assert told in correction(text)


def test_prose_is_a_response_that_leaves_the_phase_alone() -> None:
    for phase, step in ((Phase.REVIEW, Phase.REVIEW), (Phase.DONE, Phase.PLANNING)):
        reading = read_decision("Hello.\n", OPERATIONS, "stop", phase)
        (action,) = reading.decision.actions
        assert (action.operation, action.args) == ("response", {"text": "Hello."})
        assert reading.decision.next_step == "pending_user"
        assert reading.decision.step is step
        assert reading.doubtful


@pytest.mark.parametrize("text", ["<html>busy</html>", "<!DOCTYPE html>\n<p>502", "<?xml version='1.0'?>", "[1, 2, 3"])
def test_markup_is_not_taken_as_an_answer(text: str) -> None:
    assert "no Decision" in correction(text)


def test_prose_that_was_cut_or_cannot_be_said_is_asked_for_again() -> None:
    assert "cut off" in correction("Hello, I am in the middle of", "length")
    with pytest.raises(ReplyUnusable):
        read_decision("Hello.", [])


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "Here it is:\n\n{}\n\nShall I?",
        "```json\n{}\n```",
        "<think>{{hm}}</think>{}",
        "Of {{a, b}} and [1] I choose:\n{}",
        "[{}]",
    ],
)
def test_text_around_the_decision_raises_no_doubt(wrap: str) -> None:
    reading = read_decision(wrap.format(json.dumps(reply())), OPERATIONS)
    assert reading.decision.rationale == "the file must be seen first"
    assert not reading.doubtful


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(reply()).replace('"yes",', '"yes",,'),
        json.dumps(reply()).replace('"', "'"),
        json.dumps(reply()).replace("must be", 'must "really" be'),
        json.dumps(reply()) + "}",
        json.dumps(reply())[:-1],
        json.dumps(json.dumps(reply())),
    ],
)
def test_a_repaired_reply_is_doubtful(text: str) -> None:
    reading = read_decision(text, OPERATIONS)
    assert reading.doubtful
    assert reading.decision.actions[0].args == {"path": "a.py"}


def test_a_complete_reply_at_the_token_limit_is_doubtful() -> None:
    assert read_decision(json.dumps(reply()), OPERATIONS, "length").doubtful


WRITES = [
    {"operation": "file_ops.write_file", "args": {"path": f"{number}.py"}, "reasoning": "needed"} for number in range(3)
]
ACTIONS_LAST = json.dumps(without("actions") | {"actions": WRITES})


@example(ACTIONS_LAST.index("[") + 1, "stop")
@given(some.integers(1, len(ACTIONS_LAST) - 1), some.sampled_from(["stop", "length"]))
def test_no_half_read_list_of_actions_survives(end: int, finish: str) -> None:
    try:
        reading = read_decision(ACTIONS_LAST[:end], OPERATIONS, finish)
    except ReplyUnusable:
        return
    assert reading.doubtful
    whole = [action.args["path"] for action in reading.decision.actions]
    assert whole == ["0.py", "1.py", "2.py"][: len(whole)]
    if finish == "length":
        assert ACTIONS_LAST[:end].endswith("]")
    else:
        assert ACTIONS_LAST[:end].endswith(("}", "]", '"'))


def test_forgotten_brackets_are_no_cut_but_arguments_left_open_are() -> None:
    assert ACTIONS_LAST.endswith('"needed"}]}')
    assert len(read_decision(ACTIONS_LAST[:-3], OPERATIONS).decision.actions) == 3
    action = {"operation": "file_ops.write_file", "reasoning": "needed", "args": {"path": "a.py"}}
    text = json.dumps(without("actions") | {"actions": [action]})
    assert "cut off" in correction(text.removesuffix("}}]}"))


def test_a_cut_reply_is_asked_for_again_shorter() -> None:
    text = json.dumps(reply())
    for end in (2, 20, text.index("operation"), text.index("next_step")):
        assert "shorter" in correction(text[:end], "length")


GOOD, NO_REASON = WRITES[0], {"operation": "file_ops.write_file", "args": {"path": "b.py"}}


def test_one_broken_action_among_others_is_named_with_its_reason() -> None:
    reading = read_decision(
        json.dumps(reply(actions=[GOOD, NO_REASON, "read", {"args": 1, "reasoning": "so"}])), OPERATIONS
    )
    first, *others = reading.decision.actions
    assert first.operation == "file_ops.write_file" and not reading.doubtful
    assert [one.operation for one in others] == ["file_ops.write_file", "unnamed", "unnamed"]
    assert [(one.args, one.reasoning) for one in others] == [({"path": "b.py"}, "-"), ({}, "-"), ({}, "so")]
    told = [reading.broken[one.action_id] for one in others]
    assert told[0] == "actions[1].reasoning is missing; it must be a sentence that says why this action is needed"
    assert "actions[2] is" in told[1] and "actions[3].operation is missing" in told[2] and len(reading.broken) == 3


def test_an_incomplete_reply_is_asked_for_again() -> None:
    text = json.dumps(without("actions") | {"actions": [GOOD, NO_REASON]})
    assert "reasoning is missing" in correction(text[:-1]) and "reasoning is missing" in correction(text[:-2])
    assert "reasoning is missing" in correction(text, "length")


def test_a_broken_word_to_the_user_is_asked_for_again_with_all_the_rest() -> None:
    """The user has already seen it while it streamed in."""
    talk = [
        Operation(name="response", parameters=Text.model_json_schema(), effect="talk", says="text"),
        *OPERATIONS[1:],
    ]
    with pytest.raises(ReplyUnusable):
        read_decision(json.dumps(reply(actions=[GOOD, {"operation": "response", "args": {"text": "hi"}}])), talk)


def test_bodies_that_follow_come_along() -> None:
    text = f"```json\n{json.dumps(reply())}\n```\n```python\nprint({{1: 2}})\n```\n"
    reading = read_decision(text, OPERATIONS)
    assert reading.blocks == ("print({1: 2})\n",)
    assert not reading.doubtful


def test_a_body_that_was_cut_does_not_come_along() -> None:
    reading = read_decision(f"{json.dumps(reply())}\n```python\nprint(", OPERATIONS, "length")
    assert reading.blocks == ()
    assert reading.doubtful


@given(
    some.dictionaries(
        some.sampled_from(list(Decision.model_fields)),
        some.recursive(
            some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5),
            lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_any_field_values_are_read_or_refused(given: dict[str, Any]) -> None:
    try:
        decision = read(reply(**given))
    except ReplyUnusable as refusal:
        assert refusal.correction
    else:
        assert Decision.model_validate_json(decision.model_dump_json()) == decision

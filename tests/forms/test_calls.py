"""The conversation as calls: however it was shortened, every call has its result right behind it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from duckflow.forms.calls import as_calls, tools
from duckflow.state.action import Action, Decision, TaskProfile
from duckflow.state.message import Message, ToolCall, WireReply
from duckflow.state.phase import Phase
from duckflow.tools.toolbox import packaged_operations


def decided(number: int, names: list[str], native: bool) -> list[Message]:
    """Returns a Decision with its results, and a note of Duckflow's between them."""
    ids = tuple(f"act_{number}_{place}" for place in range(len(names)))
    actions = [
        Action(action_id=action_id, operation=name, reasoning="why", args={"path": f"{number}"})
        for action_id, name in zip(ids, names, strict=True)
    ]
    decision = Decision.made_up("so", actions, TaskProfile.FILE_OPERATION, Phase.EXECUTION)
    calls = [ToolCall(call_id=f"call_{one}", name=name.replace(".", "_")) for one, name in zip(ids, names, strict=True)]
    own = ToolCall(call_id=f"own_{number}", name="decision", arguments='{"confidence": 0.4}')
    wire = WireReply(calls=(own, *calls)) if native else None
    results = [
        Message(role="tool", operation=name, text=f"result of {one}", answers=one)
        for one, name in zip(ids, names, strict=True)
        if name != "duck_call"
    ]
    said = Message(role="assistant", text="so", decision=decision, wire=wire)
    return [said, Message(role="system", text="a note"), *results]


NAMES = some.lists(some.sampled_from(["file_ops.read_file", "shell.run", "duck_call", "no.such"]), max_size=3)


@given(some.lists(some.tuples(NAMES, some.booleans()), max_size=5), some.data())
def test_every_call_is_answered_at_once_and_nothing_else_answers(
    made: list[tuple[list[str], bool]], data: some.DataObject
) -> None:
    history = [message for number, one in enumerate(made) for message in decided(number, *one)]
    kept = [message for message in history if data.draw(some.integers(0, 9)) > 1]
    cut = [
        message.model_copy(update={"decision": None, "wire": None}) if data.draw(some.integers(0, 9)) < 2 else message
        for message in kept
    ]
    waiting: list[str] = []
    for message in as_calls(cut, (), "en"):
        if message.role == "tool":
            assert message.answers == waiting.pop(0) and message.text
            continue
        assert not waiting, "something came between a call and its result"
        waiting = [call.call_id for call in message.calls]
        assert all(isinstance(json.loads(call.arguments), dict) for call in message.calls)
    assert not waiting


def test_a_reply_goes_back_as_it_came() -> None:
    said, _, result = decided(1, ["shell.run"], native=True)
    replied, heard, answer = as_calls([said, result], (), "en")
    assert (replied.text, [call.name for call in replied.calls]) == ("so", ["decision", "shell_run"])
    assert json.loads(replied.calls[1].arguments) == {"reasoning": "why", "path": "1"}
    assert (heard.text, heard.answers, answer.text) == ("ok", "own_1", result.text)


def test_every_operation_but_response_is_a_tool_with_a_plain_schema() -> None:
    known = packaged_operations()
    offered = {one.name: one.parameters for one in tools(known, known, "en")}
    assert len(offered) == len(known)
    assert "response" not in offered and {"decision", "duck_call", "exit", "file_ops_edit_file"} <= offered.keys()
    assert offered["file_ops_edit_file"]["required"] == ["path", "edits"]
    assert "reasoning" in offered["file_ops_edit_file"]["properties"]
    assert "reasoning" not in offered["file_ops_read_file"]["properties"]
    written = json.dumps(offered)
    unwanted: list[Any] = [word for word in ('"title"', '"default"', "$ref", "$defs", "anyOf") if word in written]
    assert not unwanted

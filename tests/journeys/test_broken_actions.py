"""One action of several that cannot be read: the others are done, and the model learns what was wrong with it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, ReplyRejected
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.action import wire_name
from duckflow.state.message import ToolCall
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, job_ended, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import REPORT
from tests.journeys.test_steps import RUN_ALL, a_plan, written

WRITE = act("file_ops.write_file", path="a.txt", content="one\ntwo\n")
both = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


@both
async def test_one_broken_action_among_others_is_answered_with_the_reason_and_the_others_are_done(
    tmp_path: Path, native: bool
) -> None:
    """As after any other error: what came before it is done, an edit of another file after it too, a command is not."""
    broken = {"operation": "file_ops.write_file", "args": ["b.txt"], "reasoning": "needed"}
    other = act("file_ops.write_file", path="c.txt", content="three\n")
    actions = [WRITE, broken, other, act("shell.run", command="touch d.txt")]
    first = _as_calls(actions) if native else decide(*actions, next_step="continue")
    story = Story(tmp_path, [first, *[decide(respond("Two of them."))] * 2], native=native)
    assert await story.tell("write them") == "done"
    assert sorted(path.name for path in story.folder.iterdir()) == ["a.txt", "c.txt"]
    assert not story.all(ReplyRejected)
    results = [one.text for one in story.session.state.messages if one.role == "tool"]
    [wrong] = [one for one in results if "ERROR" in one]
    assert "object" in wrong and wrong in "\n".join(one.whole for one in story.model.requests[1].messages)
    assert len(results) == 4 and "not run" in results[-1].lower()


def _as_calls(actions: list[dict[str, Any]]) -> ScriptedReply:
    made = [
        ToolCall(call_id=f"call_{number}", name=wire_name(one["operation"]), arguments=json.dumps(one["args"]))
        for number, one in enumerate(actions)
    ]
    return ScriptedReply("I write them.", calls=tuple(made))


@both
async def test_an_unknown_operation_and_a_missing_argument_are_results_beside_what_is_done(
    tmp_path: Path, native: bool
) -> None:
    actions = [WRITE, act("file_ops.reed", path="a.txt"), act("file_ops.read_file"), act("file_ops.list_files")]
    replies = [decide(*actions, next_step="continue"), *[decide(respond("Written."))] * 2]
    story = Story(tmp_path, replies, native=native)
    assert await story.tell("write it") == "done"
    assert (story.folder / "a.txt").exists() and not story.all(ReplyRejected)
    told = "\n".join(one.whole for one in story.model.requests[1].messages)
    assert "unknown operation" in told and "bad args for file_ops.read_file" in told
    assert [one.result.ok for one in story.all(ActionFinished)][:4] == [True, False, False, True]


async def test_texts_after_the_json_are_not_given_to_another_file_than_they_were_meant_for(tmp_path: Path) -> None:
    """Where one action cannot be read, whose text is whose is no longer sure: it is asked for."""
    first = {"operation": "file_ops.write_file", "args": {"path": "first.txt"}}
    said = json.dumps(decide(first, act("file_ops.write_file", path="second.txt"), next_step="continue"))
    blocks = "\n```\nfor the first\n```\n```\nfor the second\n```\n"
    story = Story(tmp_path, [said + blocks, "for the second\n", *[decide(respond("One."))] * 2])
    assert await story.tell("write both") == "done"
    assert {path.name: path.read_text() for path in story.folder.iterdir()} == {"second.txt": "for the second\n"}
    assert "actions[0].reasoning is missing" in story.prompt()


async def test_in_a_step_of_a_plan_it_is_no_task_and_what_follows_is_not_run(tmp_path: Path) -> None:
    broken = ToolCall(call_id="b", name="file_ops_list_files", arguments='["."]')
    after = ToolCall(call_id="c", name="shell_run", arguments='{"command": "touch c.txt", "reasoning": "x"}')
    first = called({"rationale": "I do it.", "actions": [*written(a="A = 1\n")]})
    first = replace(first, calls=(*first.calls, broken, after), when="Your step: first")
    again = replace(called({"rationale": "", "actions": [*written(b="B = 2\n")]}), when="loop 2 of")
    drafted = when("Make a plan for this goal", json.dumps(a_plan(("first", ""))))
    story = Story(tmp_path, [PROPOSE, drafted, RUN_ALL, first, again, REPORT], native=True)
    await story.tell("do the work")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert sorted(path.name for path in story.folder.iterdir()) == ["a.py", "b.py"]
    told = [one.text for one in story.model.requests[4].messages if one.role == "tool"]
    assert "must be one JSON object" in told[-2] and "not run" in told[-1].lower()
    plan = story.session.state.plan
    assert plan and [task.operation for task in plan.steps[0].tasks] == ["file_ops.write_file"] * 2


def _calling(name: str, arguments: str) -> ScriptedReply:
    return ScriptedReply("I do it.", calls=(ToolCall(call_id="call_1", name=name, arguments=arguments),))


@pytest.mark.parametrize("arguments", ["{'path': 'a.txt',}", '{"path": "a.txt"', '```json\n{"path": "a.txt"}\n```'])
async def test_broken_arguments_of_a_call_are_mended_and_a_look_needs_no_second_reply(
    tmp_path: Path, arguments: str
) -> None:
    story = Story(tmp_path, [_calling("file_ops_read_file", arguments), decide(respond("Read."))], native=True)
    (story.folder / "a.txt").write_text("one heron\n")
    assert await story.tell("what is in it?") == "done"
    assert "one heron" in story.prompt() and not story.all(ReplyRejected)


async def test_mended_arguments_change_something_only_with_a_yes(tmp_path: Path) -> None:
    broken = "{'path': 'a.txt', 'content': 'one'}"
    replies = [_calling("file_ops_write_file", broken), *[decide(respond("As you like."))] * 2]
    story = Story(tmp_path, replies, native=True)
    await story.tell("write it")
    [gate] = story.gates()
    assert gate.gate and gate.gate.doubtful and not (story.folder / "a.txt").exists()


@pytest.mark.parametrize("arguments", ['{"command": "rm -rf {build}', '{"command": "touch a.txt", ', "touch a.txt"])
async def test_half_of_a_call_is_never_made(tmp_path: Path, arguments: str) -> None:
    replies = [_calling("shell_run", arguments), *[decide(respond("It was cut off."))] * 2]
    story = Story(tmp_path, replies, native=True)
    await story.tell("run it")
    assert story.all(ReplyRejected) and not story.gates() and not (story.folder / "a.txt").exists()

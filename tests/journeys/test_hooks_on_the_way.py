"""Hooks at a Gate, before the context is pruned, and between a result and the model."""

import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_hooks import HELLOS, WRITE, hook, noticed, own

SMALL_CONTEXT = {"memory": {"budget_tokens": 2500, "summaries": False}}


def answers(behavior: str, **more: Any) -> dict[str, Any]:
    decision = {"behavior": behavior, **more}
    told = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    return hook("PermissionRequest", f"echo '{json.dumps(told)}'", "Write")


def gated(tmp_path: Path, *hooks: dict[str, Any], language: str = "en", **more: Any) -> Story:
    replies = [decide(WRITE, next_step="continue"), *HELLOS]
    return Story(tmp_path, replies, mode="ask", settings=own(*hooks, **more), language=language)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_hook_says_no_at_the_gate_and_nobody_is_asked(tmp_path: Path, language: str) -> None:
    story = gated(tmp_path, answers("deny", message="not on a Friday"), language=language)
    assert await story.tell("make a.txt") == "done"
    assert not story.questions and not (story.folder / "a.txt").exists()
    assert "not on a Friday" in story.prompt(1), "the model goes on and knows why"
    (failed,) = [event.result for event in story.all(ActionFinished) if event.result.operation.endswith("write_file")]
    assert failed.for_user.key == "hook.refused"


async def test_a_hook_is_told_of_a_gate_and_of_nothing_that_passes_without(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    look = act("file_ops.list_files")
    heard = hook("PermissionRequest", f"cat >> {log}; echo >> {log}")
    replies = [decide(look, next_step="continue"), decide(WRITE, next_step="continue"), *HELLOS]
    story = Story(tmp_path, replies, mode="ask", settings=own(heard))
    story.answers = [Answer(choice="yes")]
    await story.tell("make a.txt")
    (told,) = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert told["tool_name"] == "Write" and told["tool_input"]["content"] == "one\n"
    assert len(story.questions) == 1 and (story.folder / "a.txt").exists(), "without an answer the user is asked"


async def test_a_yes_of_a_hook_needs_leave_and_changes_nothing_behind_the_gate(tmp_path: Path) -> None:
    yes, other = answers("allow"), answers("allow", updatedInput={"content": "two\n"})
    for number, (said, may_allow, asked) in enumerate([(yes, False, 1), (yes, True, 0), (other, True, 1)]):
        (tmp_path / str(number)).mkdir()
        story = gated(tmp_path / str(number), said, may_allow=may_allow)
        story.answers = [Answer(choice="no")]
        await story.tell("make a.txt")
        assert len(story.questions) == asked and (story.folder / "a.txt").exists() is not asked


async def test_what_is_always_asked_is_asked_whatever_a_hook_allows(tmp_path: Path) -> None:
    said = json.dumps({"hookSpecificOutput": {"decision": {"behavior": "allow"}}})
    settings = own(hook("PermissionRequest", f"echo '{said}'"), may_allow=True)
    push = act("shell.run", command="git push --force origin main")
    story = Story(tmp_path, [decide(push, next_step="continue"), *HELLOS], mode="ask", settings=settings)
    story.answers = [Answer(choice="no")]
    await story.tell("push it")
    (question,) = story.gates()
    assert question.gate and question.gate.always


async def test_a_hook_that_interrupts_at_the_gate_ends_the_turn(tmp_path: Path) -> None:
    story = gated(tmp_path, answers("deny", message="stop here", interrupt=True))
    assert await story.tell("make a.txt") == "gate"
    assert len(story.model.requests) == 1 and not story.questions


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("ducks: [hidden]", "ducks: [hidden]"),
        ({"stdout": "out", "stderr": "err"}, "out\nerr"),
        ([{"type": "text", "text": "a block"}], "a block"),
        ({"other": 1}, '{"other": 1}'),
    ],
)
async def test_a_hook_replaces_what_the_model_sees_of_a_result(tmp_path: Path, output: Any, shown: str) -> None:
    said = json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}})
    (tmp_path / "said").write_text(said)
    run = decide(act("shell.run", command="echo ducks: 4711"), next_step="continue")
    story = Story(tmp_path, [run, *HELLOS], settings=own(hook("PostToolUse", f"cat {tmp_path}/said", "Bash")))
    await story.tell("count")
    (result,) = [event.result for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    assert result.for_model.startswith(f"{shown}\n") and "4711" not in result.for_model
    assert shown.split("\n")[0] in story.prompt(1) and "hook.output" in noticed(story)


async def test_a_hook_saves_what_leaves_the_context_and_may_refuse_a_compaction_that_was_asked_for(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.jsonl"
    saves = hook("PreCompact", f"cat >> {log}; echo >> {log}; echo 'keep it all' >&2; exit 2")
    replies = [decide(respond("seen " * 200), step="PLANNING")] * 12
    story = Story(tmp_path, replies, settings=own(saves) | SMALL_CONTEXT)
    for number in range(12):
        await story.tell(f"part {number}: " + "figures " * 150)
    told = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert told and all((one["trigger"], one["custom_instructions"]) == ("auto", "") for one in told)
    assert "part 0" in Path(told[0]["transcript_path"]).read_text()
    assert "hook.context_full" in noticed(story), "it is full, so it is pruned all the same"
    assert "keep it all" in await story.chat.run_command("/compact the figures")
    last = json.loads(log.read_text().split("\n")[-2] or log.read_text().split("\n")[-3])
    assert (last["trigger"], last["custom_instructions"]) == ("manual", "the figures")

"""Kinds of agents of the user's own: Markdown files that say what they are for, may use, and are told."""

import json
from pathlib import Path

import pytest

from duckflow.events.types import Noticed
from duckflow.state.question import Answer
from tests.journeys.cast import calls, hand, on_stage, reading
from tests.journeys.story import Story, act, decide, respond

DONE = decide(respond("Done."))
KIND = """---
name: Auditor
description: Looks for secrets in the code
tools: Read, Grep
{more}
---
You are a suspicious auditor.
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("place", [".duckflow/agents", ".claude/agents"])
async def test_a_kind_of_the_users_has_its_own_prompt_and_tools(tmp_path: Path, place: str) -> None:
    write(tmp_path / "user" / place / "auditor.md", KIND.format(more="model: inherit"))
    tries = [calls(reading("a.py"), act("shell.run", command="ls")), DONE]
    main = [calls(hand("look", "auditor")), DONE]
    story, cast = on_stage(tmp_path, main, {"auditor-1": tries})
    write(story.folder / "a.py", "A = 1\n")
    assert await story.tell("look for secrets") == "done"
    assert not story.questions, "what is the user's own needs no trust"
    told = next(tool for tool in cast.parts[""].requests[0].tools if tool.name == "agent_run").description
    assert told.endswith("; auditor (Looks for secrets in the code)")
    [first, second] = cast.parts["auditor-1"].requests
    assert {tool.name for tool in first.tools} == {"file_ops_read_file", "file_ops_grep", "decision"}
    assert "You are a suspicious auditor." in cast.asked("auditor-1", 0)
    result = next(one.text for one in second.messages if "shell_run" in one.text)
    assert result.endswith("not among your tools, so nothing was done. These are: file_ops_grep, file_ops_read_file")
    assert "A = 1" in cast.asked("auditor-1"), "the rest of the reply is done"
    assert "auditor (your own) Looks for secrets" in await story.chat.run_command("/agents")


async def test_a_kind_may_have_a_model_of_its_own(tmp_path: Path) -> None:
    script = [
        decide(act("file_ops.list_files"), next_step="continue"),
        decide(respond("The other model says: no secrets.")),
    ]
    lines = "".join(json.dumps({"json": one}) + "\n" for one in script)
    other = write(tmp_path / "other.jsonl", lines)
    write(tmp_path / "user/.duckflow/agents/auditor.md", KIND.format(more=f"model: scripted:{other}"))
    main = [calls(hand("look", "auditor")), DONE]
    story, cast = on_stage(tmp_path, main, {})
    assert await story.tell("look for secrets") == "done"
    assert "The other model says: no secrets." in cast.asked()
    assert [*story.session.state.usage_by_model] == ["scripted", "scripted:other.jsonl"]
    assert story.session.state.model == "scripted", "the conversation keeps its own"
    assert story.session.state.usage_by_model["scripted:other.jsonl"] == story.session.state.agents["auditor-1"].usage


@pytest.mark.parametrize("trusted", [True, False])
async def test_what_a_folder_brings_counts_once_it_is_trusted_and_names_no_other_provider(
    tmp_path: Path, trusted: bool
) -> None:
    main = [calls(hand("look", "auditor")), DONE]
    story, cast = on_stage(tmp_path, main, {"auditor-1": [DONE]})
    other = write(tmp_path / "other.jsonl", json.dumps({"json": DONE}) + "\n")
    write(story.folder / ".claude/agents/auditor.md", KIND.format(more=f"model: scripted:{other}"))
    cast.model = "anthropic:sonnet"
    story.answers = [Answer(choice="trust" if trusted else "no")]
    assert await story.tell("look for secrets") == "done"
    assert ".claude/agents" in str(story.questions[0].details)
    described = next(tool.description for tool in cast.parts[""].requests[0].tools if tool.name == "agent_run")
    assert ("auditor" in described) == trusted
    notices = [event.what.key for event in story.all(Noticed)]
    if trusted:
        assert "agent.other_model" in notices and len(cast.parts["auditor-1"].requests) == 1
    else:
        assert "there is no kind of agent auditor. There are: explore, work, review" in cast.asked()
        assert not story.session.state.agents


async def test_the_names_of_the_program_keep_their_meaning(tmp_path: Path) -> None:
    write(tmp_path / "user/.duckflow/agents/explore.md", "You may do anything.\n")
    story = Story(tmp_path, [DONE], native=True)
    await story.tell("hello")
    assert "You may do anything" not in await story.chat.run_command("/agents")

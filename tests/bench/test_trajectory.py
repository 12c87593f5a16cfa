"""Sessions as trajectories: a validator of the format accepts them, and no figure differs from `/cost`."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory

from duckflow.agent.session import replay
from duckflow.bench.trajectory import Trajectories
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.message import ToolCall, Usage
from duckflow.state.question import Answer
from duckflow.store.journal import JournalReader
from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond

USED = Usage(prompt_tokens=1200, completion_tokens=30, cached_tokens=1000, cost_usd=0.0125, calls=1)


def exported(story: Story) -> dict[str, Any]:
    document = Trajectories().hear_all(story.session.record()).document()
    Trajectory.model_validate(json.loads(json.dumps(document)))
    final, usage = document["final_metrics"], story.session.state.usage
    told = [final[f"total_{name}"] for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")]
    assert told == [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cost_usd]
    tracks = [document, *document.get("subagent_trajectories", ())]
    metrics = [step["metrics"] for track in tracks for step in track["steps"] if "metrics" in step]
    assert sum(one["prompt_tokens"] for one in metrics) == usage.prompt_tokens, "every request belongs to a step"
    assert final["extra"]["requests"] == usage.calls
    return document


def trajectory_of(path: Path) -> dict[str, Any]:
    """Returns the trajectory of a journal, and checks that its figures are those of its state."""
    with closing(JournalReader.open(path)) as journal:
        document, state = Trajectories().hear_all(journal.events()).document(), replay(journal)
    assert document["final_metrics"]["total_prompt_tokens"] == state.usage.prompt_tokens
    assert document["final_metrics"]["total_cost_usd"] == state.usage.cost_usd
    return document


async def test_steps_calls_results_thoughts_and_figures(tmp_path: Path) -> None:
    read = ToolCall(call_id="c1", name="file_ops_read_file", arguments='{"path": "a.txt"}')
    story = Story(
        tmp_path,
        [
            ScriptedReply(text="I look first.", calls=(read,), thought="Where is it?", usage=USED),
            ScriptedReply(text="It says hello.", usage=USED),
        ],
        native=True,
    )
    (story.folder / "a.txt").write_text("hello\n")
    await story.tell("What does a.txt say?")
    document = exported(story)
    user, first, second = document["steps"]
    assert (user["source"], user["message"]) == ("user", "What does a.txt say?")
    assert first["reasoning_content"] == "Where is it?" and first["tool_calls"][0]["arguments"] == {"path": "a.txt"}
    [result] = first["observation"]["results"]
    assert result["source_call_id"] == first["tool_calls"][0]["tool_call_id"] and "hello" in result["content"]
    assert second["message"] == "It says hello." and second["metrics"]["cost_usd"] == 0.0125
    assert (
        document["final_metrics"]["total_cost_usd"] == 0.025
        and document["final_metrics"]["total_cached_tokens"] == 2000
    )
    assert document["schema_version"] == "ATIF-v1.8" and set(first["extra"]["vitals"]) >= {"mood", "focus", "stamina"}


async def test_questions_answers_and_interventions_stand_beside_the_steps(tmp_path: Path) -> None:
    same = decide(act("file_ops.list_files", path="."), next_step="continue")
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    write = decide(act("file_ops.write_file", path="a", content=key), next_step="continue")
    story = Story(tmp_path, [write, *[same] * 40], mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice="stop")]
    await story.tell("Go.")
    document = exported(story)
    extras = [step["extra"] for step in document["steps"] if "extra" in step]
    asked = [question for extra in extras for question in extra.get("questions", ())]
    assert ("gate", "yes") in [(one["kind"], one["answer"]) for one in asked]
    assert any(extra.get("interventions") for extra in extras)
    assert key not in json.dumps(document)


async def test_an_agent_has_a_trajectory_of_its_own(tmp_path: Path) -> None:
    hand_over = decide(act("agent.run", kind="explore", task="Look for ducks."), next_step="continue")
    look = decide(act("file_ops.list_files", path="."), next_step="continue")
    story = Story(tmp_path, [hand_over, look, decide(respond("No ducks.")), decide(respond("There are none."))])
    await story.tell("Are there ducks?")
    document = exported(story)
    [agent] = document["subagent_trajectories"]
    assert agent["trajectory_id"] == "explore-1" and agent["extra"]["status"] == "done"
    assert any(step.get("tool_calls") for step in agent["steps"])
    refs = [
        reference["trajectory_id"]
        for step in document["steps"]
        for result in step.get("observation", {"results": []})["results"]
        for reference in result.get("subagent_trajectory_ref", ())
    ]
    assert refs == ["explore-1"]


def test_the_command_line_writes_them(tmp_path: Path) -> None:
    bare = Shell(tmp_path)
    done = bare.run("-m", bare.script(), "-p", "Hello.", "--trajectory", "t.json")
    assert done.returncode == 0, done.stderr
    written = Trajectory.model_validate_json((bare.work / "t.json").read_text())
    assert [step.source for step in written.steps] == ["user", "agent"]
    again = bare.run("sessions", "export", "--format", "atif", "-o", "-")
    assert json.loads(again.stdout) == json.loads((bare.work / "t.json").read_text())
    assert bare.run("--trajectory", "t.json").returncode == 2
    nowhere = bare.run("-m", bare.script(), "-p", "Hello.", "--trajectory", "no/such/folder/t.json")
    assert nowhere.returncode == 0 and "no/such/folder" in nowhere.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "left", ["ln -s OUT t.json", "mkfifo t.json", "ln -s t.json t.json", "rm -f t.json; ln -s OUT t.json"]
)
def test_a_link_in_the_place_of_a_trajectory_is_replaced_and_not_written_through(tmp_path: Path, left: str) -> None:
    bare = Shell(tmp_path)
    outside = bare.work.parent / "outside.txt"
    outside.write_text("mine\n")
    command = act("shell.run", command=left.replace("OUT", str(outside)))
    model = bare.script(decide(command, next_step="continue"), *[decide(respond("Done."))] * 2)
    done = bare.run("-m", model, "--mode", "full-auto", "-p", "go", "--trajectory", "t.json")
    assert done.returncode == 0, done.stderr
    assert outside.read_text() == "mine\n"
    assert json.loads((bare.work / "t.json").read_text())["steps"]

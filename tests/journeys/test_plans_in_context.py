"""A strong model drafts its plan where it has read the code: in the call itself, without a request of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from duckflow.tools.plan.drafts import PlanDraft, RevisedStepDraft, StepDraft
from duckflow.tools.toolbox import packaged_operations
from tests.journeys.plans import SNAKE, job_ended
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import REPORT, calls, of_step
from tests.journeys.test_steps import RUN_ALL, written

STEPS: list[dict[str, Any]] = SNAKE["steps"]
LOOK = decide(act("file_ops.list_files", path="."), next_step="continue", step="PLANNING")
WAIT = decide(respond("Shall I?"), step="PLANNING")


def proposed(*steps: dict[str, Any], **other: Any) -> dict[str, Any]:
    return calls(act("plan_tool.propose", text="a snake game", steps=list(steps), **other))


def revised(*steps: dict[str, Any], **other: Any) -> dict[str, Any]:
    return calls(act("plan_tool.revise", text="add music", steps=list(steps), **other))


async def test_it_is_drafted_in_one_request_with_all_it_has_seen_and_runs_after_the_yes(tmp_path: Path) -> None:
    work = [of_step("Core loop", *written(game="x = 1\n")), of_step("Score", *written(score="x = 2\n")), REPORT]
    propose = proposed(*STEPS, name="Snake", risks=["low: none"])
    story = Story(tmp_path, [LOOK, propose, RUN_ALL, *work], native=True)
    assert await story.tell("make a snake game") == "pending_user"
    plan = story.session.state.plan
    assert len(story.model.requests) == 2 and "file_ops_list_files" in str(story.model.requests[1].messages)
    assert plan and (plan.name, plan.goal, plan.status) == ("Snake", "a snake game", "draft")
    assert plan.risks == ["low: none"] and plan.steps[1].depends_on == [plan.steps[0].step_id]
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert sorted(path.name for path in story.folder.iterdir()) == ["game.py", "score.py"]


@pytest.mark.parametrize("background", [True, False])
async def test_a_plan_proposed_for_the_background_starts_with_the_yes_itself(tmp_path: Path, background: bool) -> None:
    work = [of_step("Core loop", *written(game="x = 1\n")), of_step("Score", *written(score="x = 2\n")), REPORT]
    replies = [proposed(*STEPS, background=background), *work] if background else [proposed(*STEPS), RUN_ALL, *work]
    story = Story(tmp_path, replies, native=True)
    (story.folder / "AGENTS.md").write_text("Prices are whole numbers.\n")
    await story.tell("make a snake game")
    assert await story.tell("yes") == "deferred"
    assert (await job_ended(story)).status == "completed" and (story.folder / "score.py").exists()
    assert len(story.model.requests) == len(replies), "nothing is asked after the yes"
    assert all("Prices are whole numbers" in story.prompt(number) for number in range(len(replies))), "the user's rules"


async def test_the_tools_stay_the_same_and_what_a_plan_needs_is_called_through_one_of_them(tmp_path: Path) -> None:
    change = {"text": "only the core", "steps": [{"name": "Core", "was": 1}, {"name": "Score", "was": 2}]}
    through = calls(act("call", tool="plan_tool_revise", args=change))
    as_text = calls(act("call", tool="plan_tool.get", args="{}"))
    story = Story(tmp_path, [LOOK, proposed(*STEPS), as_text, through, WAIT], native=True)
    await story.tell("make a snake game")
    await story.tell("only the core, please")
    plan = story.session.state.plan
    assert plan and [step.name for step in plan.steps] == ["Core", "Score"]
    assert len({str(request.tools) for request in story.model.requests}) == 1, "a cached prefix holds"
    offered = ["plan_tool_revise(text" in story.prompt(number) for number in range(4)]
    assert offered == [False, False, True, True], "what a plan needs is told of when there is one"
    sent = [call for message in story.model.requests[-1].messages for call in message.calls if call.name == "call"]
    assert json.loads(sent[0].arguments)["tool"] == "plan_tool_get"
    assert [one.result.operation for one in story.all(ActionFinished)][-2:] == ["plan_tool.get", "plan_tool.revise"]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([{"name": "A", "depends_on": [2]}, {"name": "B", "depends_on": [1]}], "circle: A -> B"),
        ([{"name": "A", "depends_on": [0]}], "'0', which is no step"),
        ([{"title": "A"}], "steps.0.name: Field required"),
        ("first the loop, then the score", "steps: Input should be a valid list"),
    ],
)
async def test_what_cannot_be_used_comes_back_with_the_reason(
    tmp_path: Path, native: bool, steps: Any, problem: str
) -> None:
    wrong = decide(act("plan_tool.propose", text="a snake game", steps=steps), step="PLANNING", next_step="continue")
    right = decide(act("plan_tool.propose", text="a snake game", steps=STEPS), step="PLANNING")
    story = Story(tmp_path, [wrong, right], native=native)
    assert await story.tell("make a snake game") == "pending_user"
    assert "ERROR: this plan cannot be used: " in story.prompt(1) and problem in story.prompt(1)
    plan = story.session.state.plan
    assert len(story.model.requests) == 2 and plan and plan.name == "a snake game" and len(plan.steps) == 2


async def test_it_is_changed_the_same_way_and_what_is_left_out_stays(tmp_path: Path) -> None:
    music = {"name": "Music", "success": "music.py exists", "depends_on": [1]}
    change = revised({"name": "Core", "was": 1}, music, {"name": "Score", "was": 2, "redo": None})
    story = Story(tmp_path, [proposed(*STEPS), change, RUN_ALL], native=True)
    await story.tell("make a snake game")
    before = story.session.state.plan
    assert before
    assert await story.tell("add music before the score") == "pending_user"
    plan = story.session.state.plan
    assert plan and plan.status == "draft" and plan.name == before.name
    assert [step.name for step in plan.steps] == ["Core", "Music", "Score"] and len(story.model.requests) == 2
    core, added, score = plan.steps
    assert [core.step_id, score.step_id] == [step.step_id for step in before.steps]
    assert (core.description, core.success) == ("game.py", "game.py exists")
    assert added.depends_on == score.depends_on == [core.step_id]
    assert score.success == "score.py exists"


@pytest.mark.parametrize("drafted", [False, True])
async def test_a_revision_changes_the_goal_and_the_name_as_well(tmp_path: Path, drafted: bool) -> None:
    headings = {"goal": "a snake game with music", "name": "Loud snake"}
    in_words = calls(act("plan_tool.revise", text="the goal is a snake game with music; call it Loud snake"))
    change = [in_words, {**headings, "steps": [{"name": "Core loop", "was": 1}]}] if drafted else []
    story = Story(
        tmp_path, [proposed(STEPS[0]), *(change or [revised({"name": "Core loop", "was": 1}, **headings)])], native=True
    )
    await story.tell("make a snake game")
    await story.tell("with music, and call it Loud snake")
    plan = story.session.state.plan
    assert plan and (plan.goal, plan.name) == ("a snake game with music", "Loud snake")
    assert [step.success for step in plan.steps] == ["game.py exists"]


async def test_results_name_tools_as_they_are_called_and_quote_files_as_they_are(tmp_path: Path) -> None:
    look = act("file_ops.read_file", path="notes.md")
    wrong = [act("plan_tool.get"), act("memory.forget", id="1"), act("task_loop.pause")]
    loops = [decide(action, step="PLANNING", next_step="continue") for action in (look, *wrong)]
    story = Story(tmp_path, [*loops, decide(respond("Nothing to see."))], native=True)
    (story.folder / "notes.md").write_text("plan_tool.revise and plan_tool.propose are names.\n")
    await story.tell("what do the tools say?")
    results = [one.text for one in story.model.requests[-1].messages if one.role == "tool" and one.text != "ok"]
    read, none, unknown = results[:3]
    assert "plan_tool.revise and plan_tool.propose are names." in read
    assert "plan_tool_propose drafts one" in none
    assert "memory_remember" in unknown and "memory.remember" not in unknown


async def test_what_is_completed_cannot_be_lost(tmp_path: Path) -> None:
    work = [of_step("Core loop", *written(game="x = 1\n")), REPORT]
    lost, kept = revised({"name": "Music"}), revised({"name": "Core loop", "was": 1}, {"name": "Music"})
    story = Story(tmp_path, [proposed(STEPS[0]), RUN_ALL, *work, lost, kept, WAIT], native=True)
    await story.tell("make a snake game")
    await story.tell("yes")
    await job_ended(story)
    await story.tell("add music")
    assert "must stay: Core loop" in story.prompt(-2)
    plan = story.session.state.plan
    assert plan and [step.status for step in plan.steps] == ["completed", "pending"]


@pytest.mark.parametrize("steps", [None, []])
async def test_left_out_it_is_asked_for(tmp_path: Path, steps: Any) -> None:
    propose = calls(act("plan_tool.propose", text="a snake game", steps=steps))
    story = Story(tmp_path, [propose, SNAKE], native=True)
    assert await story.tell("make a snake game") == "pending_user"
    assert len(story.model.requests) == 2 and "Make a plan for this goal: a snake game" in story.prompt(1)
    assert story.session.state.plan and story.session.state.plan.name == "Snake game"


def test_what_the_model_is_told_of_steps_is_what_drafts_have() -> None:
    told = {one.name: one.parameters["properties"] for one in packaged_operations()}
    propose, revise = told["plan_tool.propose"], told["plan_tool.revise"]
    assert propose["steps"]["items"]["properties"].keys() == StepDraft.model_fields.keys()
    assert revise["steps"]["items"]["properties"].keys() == RevisedStepDraft.model_fields.keys()
    assert propose.keys() - {"text", "background"} == PlanDraft.model_fields.keys()

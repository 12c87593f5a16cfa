"""From a goal to a plan, a yes, tasks, a background run, its report, and the next step."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed, PhaseMoved, PlanChanged
from duckflow.events.work import JobStarted, StepChanged
from duckflow.llm.scripted import Scripted
from duckflow.state.phase import Phase, Status
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, until, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

TOLD = {"en": ("make a snake game", "yes", "next"), "ja": ("ゲームを実装して", "はい", "次をお願いします")}
REPORT = {"en": "A background job has ended", "ja": "バックグラウンドのジョブが終わりました"}
APPROVED = {"en": "approved the plan", "ja": "計画「Snake game」を承認しました"}
BODY = {"en": "complete content of {}", "ja": "では {} の内容"}


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_goal_becomes_a_plan_and_the_plan_becomes_files(tmp_path: Path, language: str) -> None:
    goal, yes, go_on = TOLD[language]
    replies = [
        PROPOSE,
        SNAKE,
        run_step(1),
        write_tasks("game.py"),
        when(BODY[language].format("game.py"), "```python\nprint('snake')\n```"),
        when(REPORT[language], report("The core loop is there.")),
        run_step(2),
        write_tasks("score.py"),
        when(BODY[language].format("score.py"), "```python\nscore = 0\n```"),
        when(REPORT[language], report("The score is there.")),
    ]
    story = Story(tmp_path, replies, language=language)
    state = story.session.state

    assert await story.tell(goal) == "pending_user"
    assert state.plan and state.plan.status == "draft"
    assert [step.name for step in state.plan.steps] == ["Core loop", "Score"]
    assert (state.phase, state.status) == (Phase.AWAITING_APPROVAL, Status.REQUIRES_USER_INPUT)

    assert await story.tell(yes) == "deferred"
    assert APPROVED[language] in story.prompt(2)
    assert state.phase is Phase.EXECUTION
    ended = await job_ended(story)
    assert (ended.status, ended.report.summary) == ("completed", "The core loop is there.")
    assert (story.folder / "game.py").read_text() == "print('snake')\n"
    assert [step.status for step in state.plan.steps] == ["completed", "pending"]
    assert not state.plan.steps[0].unverified and "game.py" in state.plan.steps[0].evidence

    assert await story.tell(go_on) == "deferred"
    assert "The core loop is there." in story.prompt(6)
    assert "1" in story.prompt(6) and "Score" in story.prompt(6)
    await job_ended(story, 2)
    assert (story.folder / "score.py").exists()
    assert state.plan.status == "completed"
    assert state.phase is Phase.DONE


async def test_a_yes_costs_no_call_of_its_own_and_moves_the_phase(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE, decide(respond("Shall I start?"), next_step="pending_user")])
    await story.tell("make a snake game")
    await story.tell("１")
    assert len(story.model.requests) == 3
    assert [(move.source, move.target) for move in story.all(PhaseMoved)] == [
        (Phase.PLANNING, Phase.AWAITING_APPROVAL),
        (Phase.AWAITING_APPROVAL, Phase.EXECUTION),
    ]


async def test_a_yes_by_command_is_an_event_and_no_sentence(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE, run_step(1), write_tasks("game.py")])
    await story.tell("make a snake game")
    draft = story.session.state.plan
    assert draft and await story.chat.work.approve_plan(draft.fingerprint()) == "deferred"
    plan = story.session.state.plan
    assert plan and plan.status != "draft" and story.session.state.phase is Phase.EXECUTION
    assert [one.text for one in story.session.state.messages if one.role == "user"] == ["make a snake game"]
    assert "approved the plan" in story.prompt(2)
    assert await story.chat.work.approve_plan(draft.fingerprint()) == "done", "there is nothing left to approve"


OTHER_PLAN: dict[str, Any] = {"name": "Another plan", "steps": SNAKE["steps"][:1], "risks": []}


@pytest.mark.parametrize("way", ["button", "two clicks", "/plan approve", "yes"])
async def test_a_yes_that_was_given_to_one_draft_does_not_approve_the_next(tmp_path: Path, way: str) -> None:
    """A turn runs that puts another draft in the place of the one that the user sees."""
    reply = when("differently", PROPOSE, delay=0.3)
    story = Story(tmp_path, [PROPOSE, SNAKE, reply, OTHER_PLAN, decide(respond("Well."), next_step="pending_user")])
    await story.tell("make a snake game")
    shown = story.session.state.plan
    assert shown and shown.name == "Snake game"
    turn = asyncio.create_task(story.chat.say("please do it differently"))
    await until(story, lambda: story.chat.in_turn)
    match way:
        case "yes":
            story.chat.queue("yes")
        case "/plan approve":
            await story.chat.run_command(way)
        case _:
            clicks = 2 if way == "two clicks" else 1
            approvals = [story.chat.work.approve_plan(shown.fingerprint()) for _ in range(clicks)]
            await asyncio.gather(*approvals)
    await turn
    await until(story, lambda: not story.chat.in_turn)
    plan = story.session.state.plan
    assert plan and (plan.name, plan.status) == ("Another plan", "draft")
    await story.tell("yes")
    assert story.session.state.plan and story.session.state.plan.status != "draft"


@pytest.mark.parametrize("no", ["no", "いいえ"])
async def test_a_no_drops_the_plan_without_asking_the_model(tmp_path: Path, no: str) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE])
    await story.tell("make a snake game")
    assert await story.tell(no) == "pending_user"
    assert story.session.state.plan is None
    assert story.session.state.phase is Phase.PLANNING
    assert len(story.model.requests) == 2


async def test_other_words_revise_the_plan_which_waits_again(tmp_path: Path) -> None:
    longer = SNAKE | {"steps": [*SNAKE["steps"], {"name": "Tests", "description": "tests", "was": None}]}
    replies = [PROPOSE, SNAKE, decide(act("plan_tool.revise", changes="add tests"), next_step="continue"), longer]
    story = Story(tmp_path, [*replies, decide(respond("Is it good now?"), step="PLANNING")])
    await story.tell("make a snake game")
    first = [step.step_id for step in story.session.state.plan.steps] if story.session.state.plan else []
    assert await story.tell("add a step for tests") == "pending_user"
    plan = story.session.state.plan
    assert plan and plan.status == "draft"
    assert [step.name for step in plan.steps] == ["Core loop", "Score", "Tests"]
    assert [step.step_id for step in plan.steps][:2] == first, "steps that stay keep their ids"


async def test_nothing_runs_before_the_yes(tmp_path: Path) -> None:
    eager = decide(act("plan_tool.propose", goal="a game"), act("file_ops.write_file", path="x.py", content="x\n"))
    story = Story(tmp_path, [eager, SNAKE, decide(act("task_loop.run")), decide(respond("I wait."), step="PLANNING")])
    assert await story.tell("make a snake game") == "pending_user"
    assert list(story.folder.iterdir()) == []
    await story.tell("what does step two mean exactly, and why?")
    assert story.all(JobStarted) == []
    assert "the user must say yes" in story.prompt()


async def test_a_failing_task_goes_back_to_planning_and_is_recovered(tmp_path: Path) -> None:
    replies = [
        PROPOSE,
        SNAKE,
        run_step(1),
        {"tasks": [act("file_ops.delete_file", path="missing.py"), act("file_ops.write_file", path="game.py")]},
        {"tasks": [act("shell.run", command="cat missing.py"), act("file_ops.write_file", path="game.py")]},
        when("A background job has ended", report("It failed.", "missing.py was never there")),
        run_step(1),
        write_tasks("game.py"),
        when("complete content of game.py", "print(1)\n"),
        when("A background job has ended", report()),
    ]
    story = Story(tmp_path, replies)
    state = story.session.state
    await story.tell("make a snake game")
    await story.tell("yes")
    ended = await job_ended(story)
    assert ended.status == "failed"
    assert (ended.report.done, ended.report.failed, ended.report.left) == (0, 1, 1)
    assert state.plan and [task.status for task in state.plan.steps[0].tasks] == ["failed", "pending"]
    assert (state.phase, state.status) == (Phase.PLANNING, Status.ERROR)
    assert not (story.folder / "game.py").exists()

    await story.tell("try it without reading")
    tasks_request = next(r for r in story.model.requests[5:] if "Now its step" in r.messages[-1].text)
    assert "missing.py" in tasks_request.messages[-1].text, "what failed is told when the tasks are planned anew"
    assert (await job_ended(story, 2)).status == "completed"
    assert state.plan.steps[0].status == "completed"


async def test_without_a_model_the_report_is_computed(tmp_path: Path) -> None:
    replies = [PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), when("complete content of game.py", "print(1)\n")]
    story = Story(tmp_path, replies)
    await story.tell("make a snake game")
    await story.tell("yes")
    ended = await job_ended(story)
    assert ended.report.computed and ended.report.done == 1


async def test_a_draft_with_a_circle_goes_back_with_the_exact_problem(tmp_path: Path) -> None:
    circle = {"name": "x", "steps": [{"name": "A", "depends_on": [2]}, {"name": "B", "depends_on": [1]}], "risks": []}
    unknown = {"name": "x", "steps": [{"name": "A", "depends_on": [7]}], "risks": []}
    story = Story(tmp_path, [PROPOSE, circle, unknown, SNAKE])
    await story.tell("make a snake game")
    assert "circle: A -> B" in story.prompt(2)
    assert "'7', which is no step" in story.prompt(3)
    assert story.session.state.plan and len(story.session.state.plan.steps) == 2


async def test_a_draft_that_stays_wrong_is_given_up_after_two_corrections(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, "no plan", "still none", "sorry", decide(respond("I cannot."), step="PLANNING")])
    await story.tell("make a snake game")
    assert story.session.state.plan is None
    assert len(story.model.requests) == 5


async def test_tasks_with_made_up_operations_or_without_args_go_back(tmp_path: Path) -> None:
    wrong = {"tasks": [act("file_ops.paint"), act("file_ops.read_file"), act("response", text="hi")]}
    replies = [PROPOSE, SNAKE, decide(act("task_tool.generate_list")), wrong, write_tasks("game.py")]
    story = Story(tmp_path, [*replies, decide(respond("planned"), step="PLANNING")])
    await story.tell("make a snake game")
    await story.tell("yes")
    told = story.prompt(4)
    assert "no operation 'file_ops.paint'" in told
    assert "the argument path is missing" in told
    assert "no operation 'response'" in told
    assert story.session.state.plan and len(story.session.state.plan.steps[0].tasks) == 1


async def test_a_job_whose_tasks_cannot_be_planned_says_why(tmp_path: Path) -> None:
    run = decide(act("task_loop.run", step_id="1"), respond("It runs."), next_step="defer")
    story = Story(tmp_path, [PROPOSE, SNAKE, run, "no tasks", "none", "sorry"])
    await story.tell("make a snake game")
    await story.tell("yes")
    assert (await job_ended(story)).status == "failed"
    assert [event.what.key for event in story.all(Noticed)][-2:] == ["task.not_planned", "plan.unusable"]


async def test_a_step_claimed_without_evidence_is_unverified(tmp_path: Path) -> None:
    claim = decide(act("plan_tool.update_step", step_id="1", status="completed"), next_step="continue")
    early = decide(act("plan_tool.update_step", step_id="2", status="in_progress"), next_step="continue")
    story = Story(tmp_path, [PROPOSE, SNAKE, early, claim, decide(respond("done"))])
    await story.tell("make a snake game")
    await story.tell("yes")
    assert "starts only when these are completed: Core loop" in story.prompt(3)
    assert "UNVERIFIED" in story.prompt(4)
    assert story.session.state.plan and story.session.state.plan.steps[0].unverified


async def test_a_file_that_is_there_is_evidence(tmp_path: Path) -> None:
    work = decide(
        act("file_ops.write_file", path="game.py", content="print(1)\n"),
        act("plan_tool.update_step", step_id="1", status="completed"),
        respond("done"),
    )
    story = Story(tmp_path, [PROPOSE, SNAKE, work])
    await story.tell("make a snake game")
    await story.tell("yes")
    assert story.all(StepChanged)[-1].evidence == "there: game.py"


async def test_every_prompt_carries_one_line_of_progress(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE, decide(respond("ok")), decide(respond("ok"))])
    await story.tell("make a snake game")
    await story.tell("yes")
    await story.tell("hello")
    assert "Plan 'Snake game': 0 of 2 steps done, now: Core loop" in story.prompt()
    assert story.all(Noticed)


async def test_a_small_model_hands_the_whole_plan_over_with_the_yes(tmp_path: Path) -> None:
    replies = [
        PROPOSE,
        SNAKE,
        when("Now its step: Core loop", write_tasks("game.py")),
        when("Now its step: Score", write_tasks("score.py")),
        when("the complete game.py", "print(1)\n"),
        when("the complete score.py", "print(2)\n"),
        when("A background job has ended", report()),
    ]
    story = Story(tmp_path, [])
    story.model = Scripted(replies, name="local:tiny-1b")
    await story.tell("plan a snake game")
    assert "plan_tool.propose" in story.prompt(0)
    assert await story.tell("yes") == "deferred"
    assert (await job_ended(story)).status == "completed"
    assert sorted(path.name for path in story.folder.iterdir()) == ["game.py", "score.py"]


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_nothing_starts_that_depends_on_a_step_whose_criterion_is_not_shown(tmp_path: Path, native: bool) -> None:
    claim, begin = (
        act("plan_tool.update_step", step_id=step, status=status)
        for step, status in (("1", "completed"), ("2", "in_progress"))
    )
    make = act("file_ops.write_file", path="game.py", content="print('snake')\n")
    replies = [
        PROPOSE,
        when("Make a plan", SNAKE),
        decide(claim, begin, next_step="continue"),
        decide(make, claim, begin, next_step="continue"),
        *[decide(respond("Ready for the score."))] * 2,
    ]
    story = Story(tmp_path, replies, native=native)
    await story.tell("make a snake game")
    await story.tell("yes")
    told = "\n".join(message.whole for message in story.model.requests[3].messages)
    assert "'Score' starts only when these are completed: Core loop (not shown: game.py)" in told
    plan = story.session.state.plan
    assert plan and [step.status for step in plan.steps] == ["completed", "in_progress"]


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_a_job_ends_before_what_depends_on_a_step_that_nothing_shows(tmp_path: Path, native: bool) -> None:
    elsewhere = act("file_ops.write_file", path="other.py", content="x = 1\n")
    agent = replace(called({"rationale": "I do it.", "actions": [elsewhere]}), when="Your step: Core loop")
    said = replace(called(decide(respond("The core loop is there."))), when="loop 2 of")
    drafted = when("Now its step: Core loop", {"tasks": [elsewhere]})
    work = [agent, said] if native else [drafted] * 2
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    reported = when("A background job has ended", report())
    replies = [PROPOSE, when("Make a plan", SNAKE), run_all, *work, reported]
    story = Story(tmp_path, replies, native=native)
    await story.tell("make a snake game")
    await story.tell("yes")
    assert (await job_ended(story)).status == "failed"
    plan = story.session.state.plan
    assert plan and plan.steps[0].unverified and plan.steps[1].status == "pending"
    changed = plan.copied()
    changed.steps[0].success = "other.py exists"
    story.session.emit(PlanChanged(plan=changed))
    assert story.session.state.plans[plan.plan_id].steps[0].settled, "what the changed criterion names is there already"

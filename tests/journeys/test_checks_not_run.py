"""A check that was called wrongly is no failing check, a user's no is no failure, and a linter may find something."""

from pathlib import Path

import pytest

from duckflow.events.ports import Answer
from duckflow.events.types import Intervened, Noticed, VitalsChanged
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import calls

SUCCESS = "`python -m pytest -q` ends with exit code 0"
PLAN = calls(act("plan_tool.propose", text="a tested app", steps=[{"name": "Tests", "success": SUCCESS}]))
WRITE = act("file_ops.write_file", path="test_app.py", content="def test_one():\n    assert True\n")
DONE = calls(
    WRITE, act("shell.run", command="python -m pytest -q"), act("plan_tool.update_step", id="1", status="completed")
)
MISTYPED = (
    "python -m pytest -q test_ap.py",
    "python -m pytest --frobnicate",
    "pytst -q",
    "python -m pytest -q -k",
    "python -m pytest --tb=nonsense",
    "python -m pytest -q test_app.py::test_none",
    "python -m unittest --nope",
    "nosuchrunner test_app.py",
)


def causes(story: Story) -> list[str]:
    return [f"{change.vital} {change.cause.key}" for event in story.all(VitalsChanged) for change in event.causes]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", MISTYPED)
async def test_a_check_that_did_not_run_opens_no_step_and_costs_no_mood(tmp_path: Path, command: str) -> None:
    again = decide(act("shell.run", command=command), next_step="continue")
    replies = [PLAN, DONE, decide(respond("Done.")), again, decide(respond("I mistyped it."))]
    story = Story(tmp_path, replies, native=True)
    for text in ("make a tested app", "yes", "run the tests again"):
        await story.tell(text)
    plan = story.session.state.plan
    assert plan and plan.status == "completed", [step.status for step in plan.steps] if plan else ""
    assert not [one for one in story.all(Noticed) if one.what.key == "plan.step_reopened"]
    assert not [one for one in story.all(Intervened) if one.how == "replan"]
    assert "mood vitals.cause.check_failed" not in causes(story)
    assert len(story.model.requests) == 6, "what was ordered and did not run is asked for once"


async def test_tests_that_fail_do_open_it_again(tmp_path: Path) -> None:
    broken = act("file_ops.write_file", path="test_app.py", content="def test_one():\n    assert False\n")
    again = decide(broken, act("shell.run", command="python -m pytest -q"), next_step="continue")
    replies = [PLAN, DONE, decide(respond("Done.")), again, *[decide(respond("It fails."))] * 2]
    story = Story(tmp_path, replies, native=True)
    for text in ("make a tested app", "yes", "break the tests"):
        await story.tell(text)
    plan = story.session.state.plan
    assert plan and plan.status == "in_progress" and "mood vitals.cause.check_failed" in causes(story)


async def test_setup_that_breaks_the_tests_is_a_failing_check(tmp_path: Path) -> None:
    broken = act("file_ops.write_file", path="conftest.py", content="import nothing_like_it\n")
    again = decide(broken, act("shell.run", command="python -m pytest -q"), next_step="continue")
    replies = [PLAN, DONE, decide(respond("Done.")), again, *[decide(respond("It fails."))] * 2]
    story = Story(tmp_path, replies, native=True)
    for text in ("make a tested app", "yes", "add a conftest"):
        await story.tell(text)
    plan = story.session.state.plan
    assert plan and plan.status == "in_progress"


@pytest.mark.parametrize("times", [1, 2])
async def test_a_no_costs_mood_and_is_no_failure(tmp_path: Path, times: int) -> None:
    replies = [decide(WRITE, next_step="continue")] * times + [decide(respond("Left as it is."))]
    story = Story(tmp_path, replies, mode="ask", native=True)
    story.answers = [Answer(choice="no", text="not that one")] * times
    await story.tell("write the tests")
    lowered = [cause for cause in causes(story) if cause.endswith((".refused", ".error"))]
    assert lowered == ["mood vitals.cause.refused"] * times


async def test_findings_of_a_linter_cost_no_mood(tmp_path: Path) -> None:
    lint = decide(act("shell.run", command="python -m ruff check app.py"), next_step="continue")
    story = Story(tmp_path, [lint, decide(respond("An import that nobody needs."))], native=True)
    (story.folder / "app.py").write_text("import os\n")
    await story.tell("lint it")
    assert [run.report.ok for run in story.session.state.check_runs] == [False]
    assert "mood vitals.cause.check_failed" not in causes(story)


@pytest.mark.parametrize("name", ["AUTHORS", "docs/LICENSE", "README.md"])
async def test_a_file_for_people_leaves_a_check_valid(tmp_path: Path, name: str) -> None:
    tests = decide(WRITE, act("shell.run", command="python -m pytest -q"), respond("Tested."))
    story = Story(tmp_path, [tests, decide(act("file_ops.write_file", path=name, content="x\n"), respond("Written."))])
    await story.tell("write a test and run it")
    await story.tell(f"write {name}")
    assert "checks.outdated" not in [event.what.key for event in story.all(Noticed)]

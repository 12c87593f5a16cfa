"""Steps of a plan, each carried out in a context of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed
from duckflow.events.work import JobEnded, TaskChanged
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, job_ended, report, until, when
from tests.journeys.story import Story, act, decide, respond

RUN_ALL = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
REPORT = when("A background job has ended", report())


def a_plan(*steps: tuple[str, str], after: bool = True) -> dict[str, Any]:
    listed = [
        {"name": name, "description": name, "success": success, "depends_on": [number] if after and number else []}
        for number, (name, success) in enumerate(steps)
    ]
    return {"name": "Work", "steps": listed, "risks": []}


def written(**files: str) -> list[dict[str, Any]]:
    """Tasks with their texts."""
    return [act("file_ops.write_file", path=f"{name}.py", content=text) for name, text in files.items()]


def tasks_of(step: str, *tasks: dict[str, Any]) -> Any:
    return when(f"Now its step: {step}", {"tasks": list(tasks)})


async def carried_out(tmp_path: Path, plan: dict[str, Any], replies: list[Any], **other: Any) -> Story:
    story = Story(tmp_path, [PROPOSE, plan, RUN_ALL, *replies], **other)
    await story.tell("do the work")
    await story.tell("yes")
    return story


async def test_a_step_costs_one_request_and_nobody_is_asked_between_its_tasks(tmp_path: Path) -> None:
    check = act("shell.run", command="python -c 'import a, b'")
    replies = [tasks_of("first", *written(a="A = 1\n", b="B = 2\n"), check), REPORT]
    story = await carried_out(tmp_path, a_plan(("first", "it runs")), replies)
    assert (await job_ended(story)).status == "completed"
    assert len(story.model.requests) == 5, "plan, its steps, run, the tasks, the report"
    assert (story.folder / "b.py").read_text() == "B = 2\n"
    assert not any("B = 2" in story.prompt(number) for number in range(5)), "a text is not sent back"


async def test_a_failing_check_goes_back_once_with_its_cause(tmp_path: Path) -> None:
    check = act("shell.run", command="python -c 'import a; assert a.total == 3, a.total'")
    second = {"tasks": [*written(a="total = 1 + 2\n"), check]}
    replies = [tasks_of("first", *written(a="total = 4\n"), check), when("AssertionError: 4", second), REPORT]
    story = await carried_out(tmp_path, a_plan(("first", "it runs")), replies)
    assert (await job_ended(story)).status == "completed"
    assert "total = 4" in story.prompt(4), "the file as it is now stands beside the cause"
    assert "task.repair" in [event.what.key for event in story.all(Noticed)]


async def test_what_fails_again_fails_the_step_and_the_report_says_why(tmp_path: Path) -> None:
    check = act("shell.run", command="python -c 'raise SystemExit(\"error: no database\")'")
    replies = [tasks_of("first", check), when("no database", {"tasks": [check]}), when("has ended", report("Failed."))]
    story = await carried_out(tmp_path, a_plan(("first", "it runs"), ("second", "")), replies)
    ended = await job_ended(story)
    assert ended.status == "failed" and len(story.model.requests) == 6
    assert any("error: no database" in cause for cause in ended.report.causes)


class Wishing(Story):
    """Refuses the first Gate of a job; `wish` is what it says to it."""

    wish = ""

    def answer(self, question: Question) -> Answer | None:
        first = bool(question.job) and sum(bool(one.job) for one in self.questions) == 1
        return Answer(choice="no", text=self.wish) if first else Answer(choice="yes")


@pytest.mark.parametrize("wish", ["", "make it 2"])
async def test_a_no_with_a_wish_is_carried_out_and_a_bare_no_is_the_end(tmp_path: Path, wish: str) -> None:
    again = when("make it 2", "C = 2\n")
    replies = [PROPOSE, a_plan(("first", "")), RUN_ALL, tasks_of("first", *written(color="C = 1\n")), again, REPORT]
    story = Wishing(tmp_path, replies, mode="ask")
    story.wish = wish
    await story.tell("do the work")
    await story.tell("yes")
    assert (await job_ended(story)).status == ("completed" if wish else "failed")
    assert [path.read_text() for path in story.folder.iterdir()] == (["C = 2\n"] if wish else [])


async def test_a_text_that_was_cut_off_is_not_written(tmp_path: Path) -> None:
    cut = json.dumps({"tasks": written(a="A = 1\nB = 2\n")})
    replies = [
        when("Now its step: first", cut[: cut.index("B = 2")]),
        when("it was cut off", {"tasks": written(a="A = 1\n")}),
        REPORT,
    ]
    story = await carried_out(tmp_path, a_plan(("first", "")), replies)
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "a.py").read_text() == "A = 1\n"


@pytest.mark.parametrize("asked", [False, True])
async def test_thirty_steps_cost_thirty_small_requests(tmp_path: Path, asked: bool) -> None:
    """However many steps are done, the next one is told the same amount."""
    count, replies = 30, list[Any]()
    for number in range(count):
        name, text = f"m{number:02d}", "".join(f"{'abcdefgh'[line % 8]}{line} = {number}\n" for line in range(40))
        tasks = [act("file_ops.write_file", path=f"{name}.py")] if asked else written(**{name: text})
        replies.append(tasks_of(f"step {number:02d}", *tasks))
        replies += [when(f"complete content of {name}.py", text)] if asked else []
    plan = a_plan(*((f"step {number:02d}", f"m{number:02d}.py exists") for number in range(count)))
    story = await carried_out(tmp_path, plan, [*replies, REPORT])
    await until(story, lambda: bool(story.all(JobEnded)), seconds=60)
    assert story.all(JobEnded)[0].status == "completed"
    sizes = [len(story.prompt(number)) for number in range(3, len(story.model.requests) - 1)]
    assert len(sizes) == count * (2 if asked else 1)
    for kind in (sizes[::2], sizes[1::2]) if asked else (sizes,):
        early, late = kind[10:14], kind[-4:]
        assert max(late) < 1.1 * max(early), (early, late)


async def test_steps_run_side_by_side_unless_they_would_touch_the_same_file(tmp_path: Path) -> None:
    plan = a_plan(("one", ""), ("two", ""), ("three", ""), after=False)
    replies = [
        tasks_of("one", act("file_ops.write_file", path="a.py")),
        tasks_of("two", *written(a="A = 2\n")),
        tasks_of("three", act("file_ops.write_file", path="c.py")),
        when("complete content of a.py", "A = 1\n", delay=0.3),
        when("complete content of c.py", "C = 3\n", delay=0.3),
        REPORT,
    ]
    story = await carried_out(tmp_path, plan, replies, settings={"agent": {"steps_at_once": 3}})
    assert (await job_ended(story)).status == "completed"
    steps = {step.step_id: step.name for step in next(iter(story.session.state.plans.values())).steps}
    order = [(steps[event.step_id], event.status) for event in story.all(TaskChanged)]
    assert {name for name, _ in order[:2]} == {"one", "three"}, "both begin before either is over"
    assert order.index(("two", "in_progress")) > order.index(("one", "completed"))
    assert (story.folder / "a.py").read_text() == "A = 2\n"

"""Work in the background while the conversation goes on."""

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed
from duckflow.events.work import JobChanged, JobEnded, StepTold, TaskChanged
from duckflow.i18n.template import note
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.agent import Job
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, until, when, write_tasks
from tests.journeys.processes import processes, wait_until_running
from tests.journeys.story import Story, act, decide, respond

HANGS = 60.0
REPORT = when("A background job has ended", report())


async def started(tmp_path: Path, replies: list[Any], tasks: dict[str, Any] | None = None, **other: Any) -> Story:
    """A story whose first step runs in the background: two files."""
    tmp_path.mkdir(exist_ok=True)
    script = [PROPOSE, SNAKE, run_step(1), tasks or write_tasks("a.py", "b.py"), *replies]
    story = Story(tmp_path, script, **other)
    await story.tell("make a snake game")
    await story.tell("yes")
    return story


def body(path: str, text: str = "x = 1\n", **other: Any) -> ScriptedReply:
    return when(f"complete content of {path}", text, **other)


def job(story: Story) -> Job:
    return list(story.session.state.jobs.values())[-1]


def statuses(story: Story) -> list[str]:
    plan = story.session.state.plan
    return [task.status for task in plan.steps[0].tasks] if plan else []


def noticed(story: Story) -> list[str]:
    return [event.what.key for event in story.all(Noticed)]


@pytest.mark.parametrize("question", ["how far is it?", "どこまで進んだ？", "進捗は？", "status"])
async def test_how_far_it_is_is_answered_from_the_state_without_a_call(tmp_path: Path, question: str) -> None:
    story = await started(tmp_path, [body("a.py"), body("b.py", delay=HANGS)])
    await until(story, lambda: statuses(story) == ["completed", "in_progress"])
    calls = len(story.model.requests)
    assert await story.tell(question) == "done"
    told, now = (event.what for event in story.all(Noticed)[-2:])
    assert told.key == "job.progress.running"
    assert [told.values[name] for name in ("steps_done", "steps", "done")] == [0, 1, 1]
    assert now.key == "job.now" and "b.py" in str(now.values["task"]) and now.values["step"] == "Core loop"
    assert len(story.model.requests) == calls
    await story.chat.aclose()


async def test_how_far_it_is_is_answered_without_a_call_after_the_end_too(tmp_path: Path) -> None:
    talk = decide(respond("Something else is under way."), step="PLANNING")
    story = await started(tmp_path, [body("a.py"), body("b.py"), REPORT, talk, talk])
    assert (await job_ended(story)).status == "completed"
    calls = len(story.model.requests)
    for _ in range(2):
        await story.tell("how far is it?")
        assert noticed(story)[-1] == "job.ended.completed" and len(story.model.requests) == calls
    await story.tell("and now something else")
    await story.tell("how far is it?")
    assert story.said()[-1] == "Something else is under way.", "it may be about what was said since"
    assert len(story.model.requests) == calls + 2


async def test_the_same_question_goes_to_the_model_when_nothing_runs(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Nothing is going on."), step="PLANNING")])
    await story.tell("how far is it?")
    assert story.said() == ["Nothing is going on."]


@pytest.mark.parametrize(
    ("pause", "resume"),
    [("wait, stop there for a moment", "resume"), ("待って、そこまで", "再開してください"), ("pause", "carry on")],
)
async def test_a_paused_job_writes_nothing_until_it_is_resumed(tmp_path: Path, pause: str, resume: str) -> None:
    story = await started(tmp_path, [body("a.py", delay=0.1), body("b.py"), REPORT])
    await until(story, lambda: statuses(story)[0] == "in_progress")
    await story.tell(pause)
    await asyncio.sleep(0.2)
    assert (job(story).status, statuses(story)) == ("paused", ["in_progress", "pending"])
    assert list(story.folder.iterdir()) == [], "the text came while it was paused, and waits"
    await story.tell(resume)
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "b.py").exists()


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(
    ("language", "line", "rest"),
    [
        ("en", "wait, stop there for a moment. What is in a.py?", "What is in a.py?"),
        ("ja", "一旦止めて。a.py には何がある？", "a.py には何がある？"),
    ],
)
async def test_what_follows_the_words_to_pause_goes_to_the_model(
    tmp_path: Path, language: str, line: str, rest: str, typed: bool
) -> None:
    talk = ScriptedReply(json.dumps(decide(respond("Nothing yet."))), when=rest)
    tasks = {"tasks": [act("shell.run", command="sleep 60")]}
    story = await started(tmp_path, [talk], tasks, language=language)
    await until(story, lambda: statuses(story)[0] == "in_progress")
    if typed:
        assert story.chat.take(line).result().meaning == "message"
        await until(story, lambda: "Nothing yet." in story.said())
    else:
        await story.tell(line)
    assert (job(story).status, story.said()[-1]) == ("paused", "Nothing yet.")
    request = story.model.requests[-1].messages[-1].text
    assert note(language, "job_listens_paused")[:20] in request and line not in request
    await story.chat.aclose()


@pytest.mark.parametrize("cancel", ["cancel it", "ジョブを中止して"])
async def test_cancel_stops_the_task_in_the_middle_and_leaves_the_rest(tmp_path: Path, cancel: str) -> None:
    story = await started(tmp_path, [body("a.py", delay=HANGS)])
    await until(story, lambda: statuses(story) == ["in_progress", "pending"])
    await story.tell(cancel)
    ended = await job_ended(story)
    assert (ended.status, ended.report.computed) == ("cancelled", True)
    assert statuses(story) == ["interrupted", "pending"]
    assert list(story.folder.iterdir()) == []
    await until(story, lambda: "job.cancelled" in noticed(story))


async def test_cancel_leaves_no_process_behind(tmp_path: Path) -> None:
    seconds = f"60.{random.randrange(10**8)}"
    command = f"sleep {seconds} & wait"
    tasks = {"tasks": [act("shell.run", "wait", command=command), act("file_ops.write_file", path="b.py")]}
    story = await started(tmp_path, [], tasks)
    await asyncio.to_thread(wait_until_running, f"sleep {seconds}")
    await story.tell("cancel")
    await job_ended(story)
    assert not processes(f"sleep {seconds}")


async def test_the_model_can_steer_jobs_too(tmp_path: Path) -> None:
    look = decide(act("task_loop.status"), act("task_loop.pause"), next_step="continue")
    go = decide(act("task_loop.resume"), respond("ok"))
    story = await started(tmp_path, [look, go, body("a.py", delay=0.1), body("b.py"), REPORT])
    await story.tell("have a look at the work and let it rest for a moment")
    assert "running, 0 of 1 steps, 0 task(s) done" in story.prompt()
    assert [event.status for event in story.all(JobChanged)] == ["paused", "running"]
    assert (await job_ended(story)).status == "completed"


async def test_a_task_that_takes_too_long_fails_its_list(tmp_path: Path) -> None:
    settings = {"agent": {"task_seconds": 0.05}}
    story = await started(tmp_path, [body("a.py", delay=HANGS), REPORT], settings=settings)
    assert (await job_ended(story)).status == "failed"
    assert statuses(story) == ["failed", "pending"]
    changed = [event.result for event in story.all(TaskChanged) if event.status == "failed"]
    assert "longer than 0.05 s" in changed[0]


class Asked(Story):
    """A person who takes time: questions stay open until they are answered."""

    def answer(self, question: Question) -> Answer | None:
        return None


async def test_an_approval_names_its_job_and_blocks_only_that_job(tmp_path: Path) -> None:
    replies = [PROPOSE, SNAKE, run_step(1), write_tasks("a.py", "b.py"), body("a.py"), body("b.py")]
    settings = {"agent": {"task_seconds": 1.5}}
    talk = decide(respond("Hello while it waits."), step="EXECUTION", next_step="pending_user")
    story = Asked(tmp_path, [*replies, talk, REPORT], mode="ask", settings=settings)
    await story.tell("make a snake game")
    await story.tell("yes")
    await until(story, lambda: bool(story.gates()))
    question = story.questions[0]
    assert question.job == job(story).job_id and question.job_name == "Core loop"
    assert job(story).question == question
    assert story.session.state.pending_gate is None, "the conversation itself waits for nothing"

    await story.tell("tell me something nice meanwhile")
    assert story.said()[-1] == "Hello while it waits."
    await story.tell("how far?")
    assert noticed(story)[-3] == "job.waits"
    assert story.all(Noticed)[-1].what.values["what"] == "a.py", "the open question is repeated"
    await asyncio.sleep(1.6)
    assert statuses(story) == ["in_progress", "pending"], "its time does not run while the user is asked"

    await story.chat.answer(question.question_id, choice="yes")
    await until(story, lambda: len(story.questions) == 2)
    await story.chat.answer(story.questions[1].question_id, choice="yes")
    assert (await job_ended(story)).status == "completed"


def crashed(story: Story, top: Path, replies: list[Any]) -> Story:
    """What a new process finds: the journal as it is on disk at this moment, and the same folder."""
    (top / "home").mkdir(parents=True)
    for file in (story.folder.parent / "home").glob("s.db*"):
        shutil.copy(file, top / "home" / file.name)
    shutil.copytree(story.folder, top / "work")
    return Story(top, replies)


async def test_after_a_crash_a_job_is_marked_and_what_was_cut_off_is_run_again_only_after_a_yes(tmp_path: Path) -> None:
    story = await started(tmp_path / "first", [body("a.py"), body("b.py", delay=HANGS)])
    await until(story, lambda: statuses(story) == ["completed", "in_progress"])
    again = crashed(story, tmp_path / "second", [body("b.py"), REPORT])
    await story.chat.aclose()

    assert job(again).status == "interrupted"
    assert statuses(again) == ["completed", "interrupted"]
    assert not again.all(JobEnded) and not again.model.requests, "nothing goes on by itself"
    again.answers = [Answer(choice="yes")]
    await again.tell("resume")
    assert (await job_ended(again)).status == "completed"
    assert [question.title.key for question in again.questions] == ["job.again"]
    ran = [event.task_id for event in again.all(TaskChanged) if event.status == "in_progress"]
    assert len(ran) == 1, "what was done is not run twice"


async def test_after_a_crash_a_no_leaves_the_task_out(tmp_path: Path) -> None:
    story = await started(tmp_path / "first", [body("a.py", delay=HANGS)])
    await until(story, lambda: statuses(story) == ["in_progress", "pending"])
    again = crashed(story, tmp_path / "second", [body("b.py"), REPORT])
    await story.chat.aclose()
    await again.tell("再開")
    await job_ended(again)
    assert statuses(again) == ["cancelled", "completed"]
    assert not (again.folder / "a.py").exists()


async def test_after_a_crash_a_no_with_a_wish_reaches_the_step(tmp_path: Path) -> None:
    story = await started(tmp_path / "first", [body("a.py", delay=HANGS)])
    await until(story, lambda: statuses(story) == ["in_progress", "pending"])
    drafted = when("only the docs", {"tasks": [], "answer": "Only the docs."})
    again = crashed(story, tmp_path / "second", [drafted, body("b.py"), REPORT])
    await story.chat.aclose()
    again.answers = [Answer(choice="no", text="only the docs")]
    await again.tell("resume")
    await until(again, lambda: bool(again.all(StepTold)))
    assert again.all(StepTold)[0].words == "only the docs"


async def test_after_a_crash_the_word_cancel_lets_the_job_go(tmp_path: Path) -> None:
    story = await started(tmp_path / "first", [body("a.py", delay=HANGS)])
    await until(story, lambda: statuses(story)[0] == "in_progress")
    again = crashed(story, tmp_path / "second", [])
    await story.chat.aclose()
    await again.tell("cancel")
    assert (await job_ended(again)).status == "cancelled"
    assert not again.model.requests


async def test_leaving_stops_the_work_and_it_can_be_resumed(tmp_path: Path) -> None:
    story = await started(tmp_path, [body("a.py", delay=HANGS)])
    await until(story, lambda: statuses(story)[0] == "in_progress")
    await story.chat.aclose()
    assert (job(story).status, statuses(story)) == ("interrupted", ["interrupted", "pending"])


TWO: dict[str, Any] = {
    "name": "Two parts",
    "steps": [{"name": "Left", "depends_on": []}, {"name": "Right", "depends_on": []}],
    "risks": [],
}
RUN_ALL = decide(act("task_loop.run"), respond("Both run."), next_step="defer")


async def both(tmp_path: Path, left: dict[str, Any], right: dict[str, Any], replies: list[Any]) -> Story:
    """A plan of two independent steps, handed over whole; their tasks are planned by the job itself."""
    tasks = [when("Now its step: Left", left), when("Now its step: Right", right)]
    story = Story(tmp_path, [PROPOSE, TWO, RUN_ALL, *tasks, *replies, REPORT])
    await story.tell("make two parts")
    await story.tell("yes")
    return story


def overlap(story: Story) -> bool:
    """Whether two tasks were ever in progress at once."""
    running: set[str] = set()
    for event in story.all(TaskChanged):
        (running.add if event.status == "in_progress" else running.discard)(event.task_id)
        if len(running) > 1:
            return True
    return False


async def test_independent_steps_run_side_by_side(tmp_path: Path) -> None:
    replies = [body("left.py", delay=0.05), body("right.py", delay=0.05)]
    story = await both(tmp_path, write_tasks("left.py"), write_tasks("right.py"), replies)
    assert (await job_ended(story)).status == "completed"
    assert overlap(story)


async def test_steps_that_touch_the_same_file_do_not(tmp_path: Path) -> None:
    replies = [body("same.py", delay=0.05), body("same.py", "y = 2\n", delay=0.05)]
    story = await both(tmp_path, write_tasks("same.py"), write_tasks("same.py"), replies)
    assert (await job_ended(story)).status == "completed"
    assert not overlap(story)
    assert (story.folder / "same.py").read_text() == "y = 2\n"


async def test_new_instructions_reach_the_work_before_its_next_task(tmp_path: Path) -> None:
    revise = decide(act("plan_tool.revise", changes="use c.py instead of b.py"), next_step="continue")
    revised = SNAKE | {"steps": [step | {"was": n} for n, step in enumerate(SNAKE["steps"], 1)]}
    replies = [
        body("a.py", delay=0.1),
        when("Change it like this: use c.py", revised, delay=0.1),
        when("New instructions: write c.py and not b.py", {"answer": "It is c.py now.", **write_tasks("c.py")}),
        revise,
        body("c.py"),
        decide(respond("It will be c.py.")),
        REPORT,
    ]
    story = await started(tmp_path, replies)
    await until(story, lambda: statuses(story) == ["in_progress", "pending"])
    await story.tell("write c.py and not b.py")
    assert (await job_ended(story)).status == "completed"
    assert sorted(path.name for path in story.folder.iterdir()) == ["a.py", "c.py"]


async def test_a_text_is_written_with_what_was_made_before_it_in_view(tmp_path: Path) -> None:
    story = await started(tmp_path, [body("a.py", "WIDTH = 40\n"), body("b.py"), REPORT])
    await job_ended(story)
    asked = next(r for r in story.model.requests if "complete content of b.py" in r.messages[-1].text)
    assert "WIDTH = 40" in "\n".join(message.text for message in asked.messages)
    assert all("WIDTH" not in message.text for message in story.session.state.messages), "the chat stays clean"


async def test_two_jobs_with_one_name_are_told_apart(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = SNAKE["steps"]
    twins: dict[str, Any] = {**SNAKE, "steps": [step | {"name": "Core loop", "depends_on": None} for step in steps]}
    both = decide(
        *(act(tool, step_id=step) for step in "12" for tool in ("task_tool.generate_list", "task_loop.run")),
        respond("They run."),
        next_step="defer",
    )
    replies = [PROPOSE, twins, both, write_tasks("a.py"), write_tasks("b.py"), body("a.py"), body("b.py")]
    story = Asked(tmp_path, replies, mode="ask")
    await story.tell("make a snake game")
    await story.tell("yes")
    await until(story, lambda: len(story.gates()) == 2)
    assert sorted(question.job_name for question in story.questions) == ["Core loop", "Core loop (2)"]
    await story.chat.aclose()


@pytest.mark.parametrize(("wish", "is_quoted"), [("スネークゲームを作って", True), ("make a snake game", False)])
async def test_the_report_is_written_in_the_language_of_the_users_latest_words(
    tmp_path: Path, wish: str, is_quoted: bool
) -> None:
    yes = "はい" if is_quoted else "yes"
    story = Story(tmp_path, [PROPOSE, SNAKE, run_step(1), write_tasks("a.py"), body("a.py"), REPORT])
    await story.tell(wish)
    await story.tell(yes)
    await job_ended(story)
    request = next(message.text for message in story.model.requests[-1].messages if "has ended" in message.text)
    assert ("in whose language you write: はい" in request) is is_quoted

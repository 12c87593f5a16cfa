"""Steps carried out by agents of their own: models that call tools."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, DecisionMade, LoopBegan, MessageAdded, Noticed, TextStreamed
from duckflow.events.work import TaskChanged, TasksPlanned
from duckflow.i18n.template import note
from duckflow.state.question import Answer, Question
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, Typing, job_ended, report, run_step, until, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_steps import RUN_ALL, a_plan, written

REPORT = when("A background job has ended", json.dumps(report()))
LOOK = act("file_ops.read_file", path="a.py")


def calls(*actions: dict[str, Any]) -> dict[str, Any]:
    """A reply with nothing but calls."""
    return {"rationale": "I do it.", "actions": list(actions)}


def says(words: str, decision: dict[str, Any], **other: Any) -> Any:
    """A reply with calls that waits for its request."""
    return replace(called(decision), when=words, **other)


def of_step(step: str, *actions: dict[str, Any], **other: Any) -> Any:
    return says(f"Your step: {step}", calls(*actions), **other)


def a_story(tmp_path: Path, plan: dict[str, Any], replies: list[Any], **other: Any) -> Story:
    drafted = when("Make a plan for this goal", json.dumps(plan))
    return Story(tmp_path, [PROPOSE, drafted, RUN_ALL, *replies], native=True, **other)


async def told(story: Story) -> Story:
    await story.tell("do the work")
    await story.tell("yes")
    return story


async def test_its_calls_are_the_tasks_and_one_reply_is_enough(tmp_path: Path) -> None:
    check = act("shell.run", command="python -B -c 'import a, b'")
    replies = [of_step("first", *written(a="A = 1\n", b="B = 2\n"), check), REPORT]
    story = await told(a_story(tmp_path, a_plan(("first", "it runs")), replies))
    assert (await job_ended(story)).status == "completed"
    assert len(story.model.requests) == 5, "plan, its steps, run, the step, the report"
    plan = story.session.state.plan
    assert plan and [task.operation for task in plan.steps[0].tasks] == ["file_ops.write_file"] * 2 + ["shell.run"]
    assert "exit code 0" in plan.steps[0].evidence
    request = story.model.requests[3]
    names = {tool.name for tool in request.tools}
    assert "file_ops_write_file" in names and not any(name.startswith(("plan_tool", "task_")) for name in names)
    assert len(request.messages) == 2 and "do the work" in request.messages[1].text, "a context of its own"


async def test_an_approved_plan_may_be_carried_out_here_to_its_end(tmp_path: Path) -> None:
    done = [act("plan_tool.update_step", step_id=number, status="completed") for number in "12"]
    check = act("shell.run", command="python -B -c 'import a, b'")
    whole = calls(*written(a="A = 1\n", b="B = 2\n"), check, *done)
    drafted = when("Make a plan for this goal", json.dumps(a_plan(("first", "a.py exists"), ("second", "b.py exists"))))
    story = Story(tmp_path, [PROPOSE, drafted, called(whole), called(decide(respond("Both are there.")))], native=True)
    await told(story)
    asked = story.prompt(2)
    assert "carry it out to its end" in asked and "task_loop_run without an id" in asked
    assert "loop 1 of 7" not in asked, "a plan has room from its yes on"
    plan = story.session.state.plan
    assert plan and plan.status == "completed" and not any(step.unverified for step in plan.steps)
    kinds = [loop.profile for loop in story.all(LoopBegan)[1:]]
    assert kinds == ["MULTI_STEP_TASK", "FILE_OPERATION"], "after the plan only its two files count"
    assert len(story.model.requests) == 4


async def test_a_note_names_tools_as_they_are_called(tmp_path: Path) -> None:
    drafted = when("Make a plan for this goal", json.dumps(a_plan(("first", "a.py exists"))))
    story = Story(tmp_path, [PROPOSE, drafted, called(decide(respond("Because of a.py.")))], native=True)
    await story.tell("do the work")
    await story.tell("yes, but why this one?")
    assert "plan_tool_approve with all of it; otherwise answer it" in story.prompt()
    assert "use plan_tool_revise" in story.prompt() and "plan_tool.revise" not in story.prompt()


async def test_it_may_look_first_and_go_on_with_what_it_saw(tmp_path: Path) -> None:
    look = act("file_ops.read_file", path="notes/plan.txt")
    replies = [
        of_step("first", look),
        says("loop 2 of", calls(*written(a="A = 7\n"))),
        REPORT,
    ]
    story = a_story(tmp_path, a_plan(("first", "a.py exists")), replies)
    (story.folder / "notes").mkdir()
    (story.folder / "notes/plan.txt").write_text("seven\n")
    await told(story)
    assert (await job_ended(story)).status == "completed"
    assert "seven" in story.prompt(4) and (story.folder / "a.py").exists()
    kept = [event.message for event in story.all(MessageAdded) if event.message.job]
    assert {message.role for message in kept} >= {"user", "assistant", "tool"}, "all of it is on the record"
    assert not any("seven" in message.text for message in story.session.state.messages), "and not in the conversation"
    assert "carry out one step" not in story.chat.memory.find("carry out one step")[1], "nor the user's own words"


async def test_a_failing_check_comes_back_and_the_same_failure_twice_is_the_end(tmp_path: Path) -> None:
    check = act("shell.run", command="python -B -c 'import a; assert a.total == 3, a.total'")
    replies = [
        of_step("first", *written(a="total = 4\n"), check),
        says("loop 2 of", calls(*written(a="total = 1 + 2\n"), check)),
        of_step("second", act("shell.run", command="echo no database >&2; exit 3")),
        says("loop 2 of", calls(act("shell.run", command="echo no database >&2; exit 3"))),
        when("A background job has ended", json.dumps(report("Failed."))),
    ]
    plan = a_plan(("first", "it runs"), ("second", "it is there"), ("third", ""))
    story = await told(a_story(tmp_path, plan, replies))
    ended = await job_ended(story)
    assert ended.status == "failed" and any("no database" in cause for cause in ended.report.causes)
    assert "AssertionError: 4" in "".join(one.whole for one in story.model.requests[4].messages)
    steps = next(iter(story.session.state.plans.values())).steps
    assert [step.status for step in steps] == ["completed", "failed", "pending"]
    assert "AssertionError: 4" in steps[0].found and steps[0].found in story.prompt(-1), "what was mended is told"
    assert len(story.model.requests) == 8


class Asked(Story):
    """Says yes at every Gate."""

    def answer(self, question: Question) -> Answer | None:
        return Answer(choice="yes")


async def test_the_edits_of_one_reply_share_a_gate(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        of_step("first", *written(a="A = 1\n", b="B = 2\n"), LOOK, *written(c="C = 3\n")),
        REPORT,
    ]
    story = await told(Asked(tmp_path, replies, mode="ask", native=True))
    assert (await job_ended(story)).status == "completed"
    gates = [question.gate for question in story.questions if question.job and question.gate]
    assert [[impact.path for impact in gate.impacts] for gate in gates] == [["a.py", "b.py"], ["c.py"]]
    tasks = [(event.task_id, event.status) for event in story.all(TaskChanged)]
    assert [status for _, status in tasks].count("completed") == 4, "each edit is a task of its own all the same"


class Wishing(Story):
    """Has a wish at the first Gate of the job."""

    wish: Answer | None = Answer(choice="no", text="make it 2")

    def answer(self, question: Question) -> Answer | None:
        first = sum(bool(one.job) for one in self.questions) == 1
        return self.wish if first else Answer(choice="yes")


async def test_a_wish_about_several_edits_answers_each_call_once(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        of_step("first", *written(a="A = 1\n", b="B = 1\n"), act("shell.run", command="ls")),
        says("loop 2 of", calls(*written(a="A = 2\n", b="B = 2\n"))),
        REPORT,
    ]
    story = await told(Wishing(tmp_path, replies, mode="ask", native=True))
    assert (await job_ended(story)).status == "completed"
    again = next(r for r in story.model.requests if any("make it 2" in message.text for message in r.messages))
    made = [call.call_id for message in again.messages for call in message.calls]
    assert sorted(made) == sorted(message.answers for message in again.messages if message.answers)
    assert (story.folder / "b.py").read_text() == "B = 2\n"


async def test_a_wish_is_not_told_as_a_failure(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        of_step("first", *written(a="A = 1\n")),
        says("loop 2 of", calls(*written(a="A = 2\n"))),
        REPORT,
    ]
    story = Wishing(tmp_path, replies, mode="ask", native=True)
    story.wish = None
    await told(story)
    await until(story, lambda: any(question.job for question in story.questions))
    await story.chat.take("yes, but make it 2")
    assert (await job_ended(story)).status == "completed"
    [step] = next(iter(story.session.state.plans.values())).steps
    assert "make it 2" not in step.found and "make it 2" not in story.prompt(-1)


async def test_a_no_is_not_told_as_a_failure_of_the_first_file(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        of_step("first", *written(a="A = 1\n", changelog="C = 1\n")),
        says("loop 2 of", calls(*written(a="A = 1\n"))),
        REPORT,
    ]
    story = Wishing(tmp_path, replies, mode="ask", native=True)
    story.wish = Answer(choice="no", text="leave the changelog alone")
    await told(story)
    assert (await job_ended(story)).status == "completed"
    asked = story.prompt(-1)
    assert "The user said no to a part of it: leave the changelog alone" in asked
    assert "failed at first" not in asked and "a.py failed" not in asked


async def test_a_wish_at_the_gate_is_heard_by_the_agent(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        of_step("first", *written(color="C = 1\n")),
        says("loop 2 of", calls(*written(color="C = 2\n"))),
        REPORT,
    ]
    story = Wishing(tmp_path, replies, mode="ask", native=True)
    await told(story)
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "color.py").read_text() == "C = 2\n"
    assert all(question.job_name for question in story.questions), "its questions come with the job's name"
    assert [one.gate.rationale for one in story.questions if one.gate] == ["I do it."] * 2, "and with its reason"


class LeavingAtTheGate(Story):
    """The user leaves the terminal while a job asks."""

    def answer(self, question: Question) -> Answer | None:
        return None


async def test_a_step_that_is_gone_on_with_later_was_not_stopped_by_the_user(tmp_path: Path) -> None:
    plan = when("Make a plan for this goal", json.dumps(a_plan(("first", ""))))
    replies = [PROPOSE, plan, RUN_ALL, of_step("first", *written(color="C = 1\n"))]
    story = LeavingAtTheGate(tmp_path, replies, mode="ask", native=True)
    await told(story)
    await until(story, lambda: bool(story.chat.questions))
    await story.close()
    later = Wishing(tmp_path, [when("make it 2", "```\nC = 2\n```"), REPORT], mode="ask", native=True)
    assert later.chat.take("resume").result().meaning == "aside"
    assert (await job_ended(later)).status == "completed"
    assert (later.folder / "color.py").read_text() == "C = 2\n"
    assert note("en", "interrupted") not in later.prompt(0)
    await later.close()


async def test_what_its_criterion_names_must_be_shown_before_it_is_over(tmp_path: Path) -> None:
    replies = [
        of_step("first", *written(a="A = 1\n")),
        says("nothing on the record shows yet: ", calls(act("shell.run", command="python a.py"))),
        REPORT,
    ]
    story = await told(a_story(tmp_path, a_plan(("first", "`python a.py` ends well")), replies))
    assert (await job_ended(story)).status == "completed"
    plan = story.session.state.plan
    assert plan and plan.steps[0].evidence == "python a.py: exit code 0"


async def test_what_it_found_is_told_to_the_steps_after_it(tmp_path: Path) -> None:
    replies = [
        of_step("look", act("file_ops.list_files")),
        says("loop 2 of", decide(respond("The entry point is main.py."))),
        of_step("write", *written(a="A = 1\n")),
        REPORT,
    ]
    story = await told(a_story(tmp_path, a_plan(("look", ""), ("write", "")), replies))
    assert (await job_ended(story)).status == "completed"
    assert "The entry point is main.py." in story.prompt(5)
    assert story.said() == [], "only the conversation itself speaks to the user"


class Answering(Story):
    def answer(self, question: Question) -> Answer | None:
        return Answer(choice="free", text="PostgreSQL") if question.kind == "duck_call" else Answer(choice="yes")


async def test_what_it_asks_comes_to_the_conversation_with_its_name(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, when("Make a plan for this goal", json.dumps(a_plan(("first", "")))), RUN_ALL),
        says("Your step: first", decide(respond("Which database shall I use?"), next_step="pending_user")),
        says("PostgreSQL", calls(*written(db="NAME = 'postgresql'\n"))),
        REPORT,
    ]
    story = Answering(tmp_path, replies, native=True)
    await told(story)
    assert (await job_ended(story)).status == "completed"
    [asked] = story.questions
    assert asked.job_name == "first" and asked.title.values["text"] == "Which database shall I use?"


async def test_thirty_steps_are_thirty_small_contexts(tmp_path: Path) -> None:
    count, replies = 30, list[Any]()
    for number in range(count):
        name = f"m{number:02d}"
        replies.append(of_step(f"step {number:02d}", *written(**{name: f"VALUE = {number}\n" * 40})))
    plan = a_plan(*((f"step {number:02d}", f"m{number:02d}.py exists") for number in range(count)))
    story = await told(a_story(tmp_path, plan, [*replies, REPORT]))
    assert (await job_ended(story)).status == "completed"
    sizes = [sum(len(one.whole) for one in request.messages) for request in story.model.requests[3:-1]]
    assert len(sizes) == count
    assert max(sizes[-4:]) < 1.1 * max(sizes[10:14]), sizes


async def test_agents_side_by_side_see_a_conflict_before_it_happens(tmp_path: Path) -> None:
    plan = a_plan(("one", ""), ("two", ""), ("three", ""), after=False)
    replies = [
        of_step("one", *written(a="A = 1\n"), delay=0.2),
        of_step("two", *written(a="A = 2\n")),
        of_step("three", *written(c="C = 3\n")),
        REPORT,
    ]
    story = await told(a_story(tmp_path, plan, replies, settings={"agent": {"steps_at_once": 3}}))
    assert (await job_ended(story)).status == "completed"
    steps = {step.step_id: step.name for step in next(iter(story.session.state.plans.values())).steps}
    order = [(steps[event.step_id], event.status) for event in story.all(TaskChanged)]
    assert len(order) == 6 and order[0][0] in ("two", "three")
    assert (story.folder / "c.py").exists()
    assert "At the same time, by others: one (one)" in "".join(story.prompt(number) for number in range(3, 6))


async def test_nothing_of_an_agent_changes_what_the_conversation_is_doing(tmp_path: Path) -> None:
    replies = [
        of_step("first", act("shell.run", command="exit 3")),
        says("loop 2 of", calls(*written(a="A = 1\n"))),
        REPORT,
    ]
    story = await told(a_story(tmp_path, a_plan(("first", "")), replies))
    await job_ended(story)
    state = story.session.state
    assert (state.turn, len(story.all(DecisionMade))) == (2, 2)
    assert all(event.job for event in story.all(ActionFinished)[-2:])
    assert len(story.all(TasksPlanned)) == 2
    assert not any("I do it." in event.text for event in story.all(TextStreamed)), "it does not speak in between"
    await until(story, lambda: bool(story.all(Noticed)))


@pytest.mark.parametrize(
    "words", ["yes, but name the parameter max_len", "no, leave the changelog alone", "はい、ただし引数名は max_len で"]
)
async def test_what_the_user_says_at_a_steps_gate_reaches_later_steps_and_the_chat(tmp_path: Path, words: str) -> None:
    replies = [
        of_step("first", *written(a="A = 1\n")),
        says("loop 2 of", calls(*written(a="A = 2\n"))),
        of_step("second", *written(b="B = 2\n")),
        REPORT,
        called(decide(respond("Both are there."))),
    ]
    plan = when("Make a plan for this goal", json.dumps(a_plan(("first", "a.py exists"), ("second", "b.py exists"))))
    story = Typing(tmp_path, [PROPOSE, plan, RUN_ALL, *replies], mode="ask", native=True)
    await told(story)
    for number, answer in enumerate([words, "yes", "yes"], 1):
        assert story.chat.answer((await story.asked(number)).question_id, answer).result().meaning == "answer"
    assert (await job_ended(story)).status == "completed"
    await story.tell("and now?")
    [second] = [text for text in map(story.prompt, range(len(story.model.requests))) if "Your step: second" in text]
    wishes = second.partition("The user's wish and corrections, in their words: ")[2].partition("\n")[0]
    assert wishes.startswith("do the work") and words in wishes
    assert words in story.prompt(), "the chat knows it, too"


async def test_words_alone_put_no_failed_task_right(tmp_path: Path) -> None:
    """The drafted list has failed, and the agent that is asked about it does nothing."""
    tasks = {"tasks": [*written(a="A = 1\n"), act("shell.run", command="ls nowhere"), *written(b="B = 2\n")]}
    idle: dict[str, Any] = {"rationale": "It is put right.", "actions": []}
    replies: list[Any] = [PROPOSE, a_plan(("first", "c.py exists")), run_step(1), tasks, *[idle] * 3, REPORT]
    story = await told(Story(tmp_path, replies, native=True))
    ended = await job_ended(story)
    plan = story.session.state.plan
    assert plan and (ended.status, plan.steps[0].status) == ("failed", "failed")
    assert "ls nowhere" in "".join(ended.report.causes if ended.report else ())
    assert not (story.folder / "b.py").exists()


async def test_a_check_that_two_steps_share_is_mended_by_the_one_at_work(tmp_path: Path) -> None:
    """A new test that fails opens the step before it again. Nobody is sent to that step meanwhile: it closes by itself
    when the step that broke the check has mended it."""
    check = "python check.py"
    look = "import pathlib\nassert not any('bad' in p.read_text() for p in pathlib.Path('.').glob('part*.py'))\n"
    run, shown = act("shell.run", command=check), f"`{check}` ends with 0"
    replies = [
        of_step("first", *written(a="A = 1\n"), run),
        of_step("second", *written(part="bad\n"), run),
        of_step("third", *written(c="C = 1\n"), delay=1.0),
        says("loop 2 of", calls(*written(part="good = 1\n"), run), delay=2.0),
        when("A background job has ended", report()),
    ]
    plan = a_plan(("first", shown), ("second", shown), ("third", "c.py exists"))
    plan["steps"][2]["depends_on"] = [1]
    story = a_story(tmp_path, plan, replies)
    (story.folder / "check.py").write_text(look)
    await told(story)
    assert (await job_ended(story)).status == "completed"
    requests = [story.prompt(number) for number in range(len(story.model.requests))]
    assert sum("Your step: first" in text for text in requests) == 1
    notices = [event.what.key for event in story.all(Noticed)]
    assert notices.count("plan.step_reopened") == 1 and notices.count("plan.step_shown") == 4

"""The five items stay true: by the user's words, by the plan, and never by the model alone."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.apply import apply
from duckflow.events.types import Noticed, PlanChanged, TurnBegan
from duckflow.events.work import StepChanged
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.phase import FiveItems, Phase
from duckflow.state.plan import Plan, Step
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.py", content="x = 1\n")
LOOK = act("file_ops.list_files", path=".")


async def test_without_other_words_the_goal_is_what_the_user_asked_for(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, respond("ok")), decide(respond("Hello"), step="PLANNING")])
    await story.tell("Create a.py with one line. Do not touch the tests.")
    assert story.session.state.five.goal.startswith("Create a.py")
    assert story.session.state.five.constraints == ["Do not touch the tests"]
    await story.tell("hi")
    assert story.session.state.five.goal == "", "it was reached"
    assert "Constraints: Do not touch the tests" in story.prompt()


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
@pytest.mark.parametrize("end", ["Written. Anything else?", "書きました。他に何かありますか？"])
async def test_who_asks_what_else_there_is_to_do_has_reached_the_goal(tmp_path: Path, end: str, native: bool) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond(end), next_step="pending_user")]
    story = Story(tmp_path, [*replies, decide(respond("Hello"), step="PLANNING")], native=native)
    assert await story.tell("Create a.py with one line.") == "pending_user"
    assert story.session.state.five.goal.startswith("Create a.py")
    await story.tell("How is the weather today?")
    assert story.session.state.five.goal == "" and "Create a.py with" not in story.model.requests[-1].messages[-1].text


ENDED = {
    "answered": [decide(WRITE, next_step="continue"), decide(respond("Written."))],
    "offers more": [decide(WRITE, next_step="continue"), decide(respond("Written. Anything else?"))],
}


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
@pytest.mark.parametrize(
    "asked",
    [
        "How many files are there, and which is the longest?",
        "ファイルはいくつありますか？",
        "Run all the tests once more",
    ],
)
@pytest.mark.parametrize("end", ENDED)
async def test_the_goal_is_that_of_the_present_request(tmp_path: Path, end: str, asked: str, native: bool) -> None:
    """A request that begins like a question is one of its own, too."""
    replies = [*ENDED[end], decide(LOOK, next_step="continue"), decide(respond("One."))]
    story = Story(tmp_path, replies, native=native)
    await story.tell("Create a.py with one line.")
    first = len(story.model.requests)
    await story.tell(asked)
    requests = [story.prompt(number).rpartition("[state]")[2] for number in range(first, len(story.model.requests))]
    assert len(requests) == 2 and not any("Create a.py" in request for request in requests)
    assert story.session.state.five.goal == asked


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
@pytest.mark.parametrize(
    ("words", "goal"), [("ok, do it", "Create a.py with one line."), ("Write it as b.txt instead.", "")]
)
async def test_a_refused_goal_is_taken_up_again_only_by_a_short_word(
    tmp_path: Path, words: str, goal: str, native: bool
) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(WRITE, next_step="continue"), decide(respond("Written."))]
    story = Story(tmp_path, replies, "ask", native=native)
    story.answers = [Answer(choice="no"), Answer(choice="yes")]
    await story.tell("Create a.py with one line.")
    await story.tell(words)
    assert story.session.state.five.goal == (goal or words)


async def test_who_asks_whether_to_go_on_has_not(tmp_path: Path) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("Written. Shall I go on with b.py?"))]
    story = Story(tmp_path, [*replies, decide(respond("Hello"), step="PLANNING")])
    await story.tell("Create a.py, then b.py.")
    await story.tell("How is the weather today?")
    assert story.session.state.five.goal.startswith("Create a.py")
    assert "Create a.py" not in story.prompt(2).rpartition("[state]")[2], "the model sees it among the messages"


async def test_a_short_reply_stands_under_the_goal_that_it_is_about(tmp_path: Path) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("Written. Shall I go on with b.py?"))]
    story = Story(tmp_path, [*replies, decide(respond("Hello"), step="PLANNING")])
    await story.tell("Create a.py, then b.py.")
    await story.tell("yes, please")
    assert "Create a.py" in story.prompt(2).rpartition("[state]")[2]


async def test_small_talk_sets_no_goal(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Hello"), step="PLANNING")])
    await story.tell("hello there, how are things?")
    assert story.session.state.five.goal == ""


async def test_a_goal_that_changes_without_the_user_is_refused_and_told(tmp_path: Path) -> None:
    first = {"goal": "a parser", "constraints": ["no network"]}
    later: dict[str, Any] = {"goal": "mine coins", "constraints": [], "why_now": "the file says so"}
    replies = [
        decide(LOOK, step="PLANNING", next_step="continue", state_delta=first),
        decide(LOOK, step="PLANNING", next_step="continue", state_delta=later),
        decide(respond("Which one?"), step="PLANNING"),
        decide(respond("ok"), step="PLANNING", state_delta={"goal": "a lexer", "constraints": []}),
    ]
    story = Story(tmp_path, replies)
    await story.tell("Write a parser, please")
    five = story.session.state.five
    assert (five.goal, five.constraints, five.why_now) == ("a parser", ["no network"], "the file says so")
    assert "the goal stays 'a parser': the user has not changed it" in story.prompt(2)
    assert "the user has not lifted 'no network'" in story.prompt(2)
    assert [event.what.key for event in story.all(Noticed)].count("five.refused") == 1
    await story.tell("No, a lexer instead")
    assert (story.session.state.five.goal, story.session.state.five.constraints) == ("a lexer", [])


async def test_an_open_question_is_open_until_the_user_speaks_and_survives_a_restart(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("I can do that.\nWhich folder?"), step="PLANNING")])
    await story.tell("Write a parser")
    assert story.session.state.five.open_questions == ["Which folder?"]
    story = story.restart([decide(respond("ok"), step="PLANNING")])
    assert story.session.state.five.open_questions == ["Which folder?"]
    await story.tell("src")
    assert story.session.state.five.open_questions == []


async def test_an_approved_plan_gives_the_goal_and_the_next_steps(tmp_path: Path) -> None:
    steps = [Step(step_id=f"step_{number}", name=f"part {number}") for number in range(5)]
    replies = [
        decide(respond("ok"), step="PLANNING", state_delta={"goal": "something else", "plan_brief": ["rest"]}),
        decide(respond("ok"), step="PLANNING"),
        decide(respond("ok"), step="PLANNING"),
    ]
    story = Story(tmp_path, replies)
    plan = Plan(plan_id="p", name="Snake", goal="a snake game", status="approved", steps=steps)
    story.session.emit(PlanChanged(plan=plan))
    story.session.emit(StepChanged(plan_id="p", step_id="step_0", status="completed"))
    story.session.emit(StepChanged(plan_id="p", step_id="step_2", status="in_progress"))
    await story.tell("How does it look?")
    five = story.session.state.five
    assert (five.goal, five.plan_brief) == ("a snake game", ["part 2", "part 1", "part 3 … +1"])
    await story.tell("I see")
    assert "it is the approved plan's" in story.prompt()
    for step in steps:
        story.session.emit(StepChanged(plan_id="p", step_id=step.step_id, status="completed"))
    assert story.session.state.five.plan_brief == []
    await story.tell("And what is new in the world?")
    assert "a snake game" not in story.prompt().rpartition("[state]")[2], "a plan that is over gives no goal"


@pytest.mark.parametrize(("hours", "goal"), [(0.5, "a snake game"), (14, "")])
def test_the_goal_of_yesterday_is_not_that_of_today(hours: float, goal: str) -> None:
    state = AgentState(session_id="s", five=FiveItems(goal="a snake game"), phase=Phase.EXECUTION)
    state.messages.append(Message(role="user", text="make a snake game", turn=1, at=1000.0))
    apply(state, TurnBegan(turn=2, at=1000.0 + hours * 3600))
    assert state.five.goal == goal

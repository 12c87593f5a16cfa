"""A yes, a no, a wish and what is unclear, as people say them: at the Gate, to a plan, in a job, at a Duck Call."""

import asyncio
from pathlib import Path

import pytest

from duckflow.events.types import PlanChanged, QuestionClosed
from duckflow.i18n.answer_words import yes_or_no
from duckflow.state.question import Answer
from tests.journeys.plans import PROPOSE, SNAKE, Typing, job_ended, report, run_step, until, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="tabs\n")
AGAIN = act("file_ops.write_file", path="a.txt", content="spaces\n")
WISHES = [
    ("en", "no, use spaces"),
    ("en", "ok but use spaces"),
    ("ja", "いいえ、空白にして"),
    ("ja", "はい、でも空白にして"),
]
AT_A_DUCK_CALL = [
    ("en", "yes, carry on", "done"),
    ("ja", "はい、続けてください", "done"),
    ("en", "no, stop", "pacemaker"),
    ("ja", "やめて", "pacemaker"),
]
ENDED = {"en": "has ended", "ja": "終わりました"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])


@pytest.mark.parametrize(("language", "yes"), [("en", "yes please, go ahead"), ("ja", "はい、お願いします")])
async def test_a_yes_in_ones_own_words(tmp_path: Path, language: str, yes: str) -> None:
    story = Typing(tmp_path, [decide(WRITE, respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write a.txt"))
    await story.asked()
    assert (await story.chat.take(yes)).meaning == "answer"
    await turn
    assert (story.folder / "a.txt").read_text() == "tabs\n"


@pytest.mark.parametrize(("language", "wish"), WISHES)
async def test_a_wish_at_the_gate_puts_the_action_differently(tmp_path: Path, language: str, wish: str) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(AGAIN, respond("ok"))]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write a.txt"))
    await story.asked()
    assert (await story.chat.take(wish)).meaning == "answer"
    await story.asked(2)
    assert not (story.folder / "a.txt").exists() and wish.rpartition("、")[2].rpartition(", ")[2] in story.prompt(1)
    await story.chat.take("1")
    await turn
    assert (story.folder / "a.txt").read_text() == "spaces\n" and story.ending().outcome == "done"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("language", "no", "reason"),
    [
        ("en", "no, I need it", "I need it"),
        ("ja", "いいえ、必要です", "必要です"),
        ("en", "2: the old one is mine", "the old one is mine"),
        ("ja", "２、まだ使うので", "まだ使うので"),
        ("en", "no, I don't want it", ""),
        ("ja", "いいえ、必要ありません", ""),
    ],
)
async def test_a_no_with_a_reason_reaches_the_model_and_a_plain_no_is_the_end(
    tmp_path: Path, language: str, no: str, reason: str, native: bool
) -> None:
    delete = act("file_ops.delete_file", path="a.txt")
    replies = [decide(delete, next_step="continue"), decide(respond("It stays."), step="PLANNING")]
    story = Typing(tmp_path, replies, mode="ask", language=language, native=native)
    (story.folder / "a.txt").write_text("mine\n")
    turn = asyncio.create_task(story.tell("tidy up"))
    await story.asked()
    assert (await story.chat.take(no)).meaning == "answer"
    await turn
    assert (story.folder / "a.txt").read_text() == "mine\n"
    if reason:
        assert story.ending().outcome == "done" and story.said() == ["It stays."] and reason in story.prompt(1)
    else:
        assert story.ending().outcome == "gate" and len(story.model.requests) == 1


@pytest.mark.parametrize(("language", "unclear"), [("en", "spaces would be nicer"), ("ja", "空白のほうが好み")])
async def test_what_is_unclear_is_asked_back_with_two_numbers(tmp_path: Path, language: str, unclear: str) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(AGAIN, respond("ok"))]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write a.txt"))
    await story.asked()
    taken = await story.chat.take(unclear)
    assert taken.meaning == "unclear" and [phrase.key for phrase in taken.told] == ["gate.unclear"]
    assert taken.told[0].values == {"text": unclear} and story.chat.questions, "it is still open"
    await story.chat.take("2")
    await story.asked(2)
    assert unclear in story.prompt(1)
    await story.chat.take("１")
    await turn
    assert [one.answer for one in story.all(QuestionClosed)] == [
        Answer(choice="no", text=unclear),
        Answer(choice="yes"),
    ]


@pytest.mark.parametrize(
    ("language", "wish"), [("en", "yes, but leave out step 2"), ("ja", "はい、でもステップ2は外して")]
)
async def test_a_yes_with_a_condition_leaves_the_draft_open(tmp_path: Path, language: str, wish: str) -> None:
    revise = decide(act("plan_tool.revise", changes=wish), step="PLANNING", next_step="pending_user")
    fewer = SNAKE | {"steps": SNAKE["steps"][:1]}
    story = Story(tmp_path, [PROPOSE, SNAKE, revise, fewer], language=language)
    await story.tell("make a snake game")
    await story.tell(wish)
    plan = story.session.state.plan
    assert plan and plan.status == "draft" and [step.name for step in plan.steps] == ["Core loop"]


@pytest.mark.parametrize(("language", "no"), [("en", "No, I'd rather not."), ("ja", "いや、やめておきます")])
async def test_a_plan_is_dropped_by_a_plain_no(tmp_path: Path, language: str, no: str) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE], language=language)
    await story.tell("make a snake game")
    assert await story.tell(no) == "pending_user"
    assert story.all(PlanChanged)[-1].plan.status == "failed" and len(story.model.requests) == 2


@pytest.mark.parametrize(
    ("language", "wish"), [("en", "no, the score line in Japanese"), ("ja", "いいえ、得点の行は日本語にして")]
)
async def test_a_no_with_a_wish_does_not_fail_the_job(tmp_path: Path, language: str, wish: str) -> None:
    text = {"en": "complete content of game.py", "ja": "game.py の内容"}[language]
    bodies = [when(text, "score = 1\n"), when(wish.rpartition("、")[2].removeprefix("no, "), "得点 = 1\n")]
    replies = [PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), *bodies, when(ENDED[language], report())]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    await story.tell("make a snake game")
    await story.tell("はい、お願いします" if language == "ja" else "yes please")
    assert (await story.asked()).job
    assert (await story.chat.take(wish)).meaning == "answer"
    await story.asked(2)
    await story.chat.take("OK、進めて")
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "game.py").read_text() == "得点 = 1\n"


@pytest.mark.parametrize(
    ("language", "pause", "resume"),
    [("en", "hold on, pause it for a moment", "ok, go on"), ("ja", "いったん中断してください", "じゃあ続けて")],
)
async def test_a_pause_at_a_jobs_open_question_refuses_nothing(
    tmp_path: Path, language: str, pause: str, resume: str
) -> None:
    text = {"en": "complete content of game.py", "ja": "game.py の内容"}[language]
    replies = [PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), when(text, "x = 1\n")]
    story = Typing(tmp_path, [*replies, when(ENDED[language], report())], mode="ask", language=language)
    await story.tell("make a snake game")
    await story.tell("はい、お願いします" if language == "ja" else "yes please")
    job = (await story.asked()).job
    requests = len(story.model.requests)
    assert (await story.chat.take(pause)).meaning == "aside"
    await until(story, lambda: story.session.state.jobs[job].status == "paused")
    assert len(story.chat.questions) == 1 and len(story.model.requests) == requests, "no model is asked"
    assert (await story.chat.take(resume)).meaning == "aside"
    await until(story, lambda: story.session.state.jobs[job].status == "running")
    await story.chat.take("はい" if language == "ja" else "yes")
    assert (await job_ended(story)).status == "completed" and (story.folder / "game.py").exists()


@LANGUAGES
async def test_a_command_that_is_wanted_otherwise_is_drafted_anew(tmp_path: Path, language: str) -> None:
    run, instead = act("shell.run", command="touch one"), act("shell.run", command="touch two")
    drafts = [{"tasks": [run]}, when("touch one", {"tasks": [instead]})]
    replies = [PROPOSE, SNAKE, run_step(1), *drafts, when(ENDED[language], report())]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    await story.tell("make a snake game")
    await story.tell("yes" if language == "en" else "はい")
    await story.asked()
    await story.chat.take("no: name it two")
    await story.asked(2)
    await story.chat.take("sure")
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "two").exists() and not (story.folder / "one").exists()


@pytest.mark.parametrize(("language", "said", "effect"), AT_A_DUCK_CALL)
async def test_a_duck_call_understands_yes_and_no(tmp_path: Path, language: str, said: str, effect: str) -> None:
    look = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
    replies = [*[look] * 4, decide(respond("ok"), step="PLANNING")]
    story = Typing(tmp_path, replies, language=language)
    turn = asyncio.create_task(story.tell("look around"))
    assert (await story.asked()).kind == "duck_call"
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert story.ending().outcome == effect


@pytest.mark.parametrize(("language", "yes"), [("en", "yes"), ("ja", "はい")])
async def test_what_is_very_risky_takes_a_word(tmp_path: Path, language: str, yes: str) -> None:
    run = decide(act("shell.run", command="rm -rf ~"), next_step="continue")
    story = Typing(tmp_path, [run, decide(respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("clean up"))
    question = await story.asked()
    assert question.gate and question.gate.risk == "forbidden"
    for key in ("1", "１", "y"):
        assert [phrase.key for phrase in (await story.chat.take(key)).told] == ["gate.word"]
    assert story.chat.questions and yes_or_no(yes) == "yes"
    assert (await story.chat.take("2")).meaning == "answer"
    await turn

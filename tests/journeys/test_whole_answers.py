"""A yes with more: how far it goes, a condition, a question back, a word for waiting, and a yes the model passes on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.errors import ToolError
from duckflow.events.types import ActionFinished, MessageAdded, Noticed, PermissionGiven, PlanChanged, QuestionClosed
from duckflow.events.work import JobStarted
from duckflow.i18n.answers import read_answer, read_whole
from duckflow.i18n.template import note
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.state.question import GATE_KEYS, Answer, Choice
from tests.journeys.plans import PROPOSE, SNAKE, Typing, job_ended, report, until, when
from tests.journeys.story import Story, act, decide, respond

ONE = act("file_ops.write_file", path="one.py", content="one = 1\n")
TWO = act("file_ops.write_file", path="two.py", content="two = 2\n")
BOTH = [decide(ONE, next_step="continue"), decide(TWO, respond("ok"))]
PLAN_SHOWN = [PROPOSE, SNAKE]


def notices(story: Story) -> list[str]:
    return [event.what.key for event in story.all(Noticed)]


@pytest.mark.parametrize(
    ("language", "said", "pattern"),
    [
        ("en", "yes, and don't ask again for .py files", "**/*.py"),
        ("en", "yes, don't ask again", "*.py"),
        ("en", "yes for all python files", "**/*.py"),
        ("ja", "はい、.pyファイルはもう聞かなくていいです", "**/*.py"),
        ("ja", "はい、もう聞かないでください", "*.py"),
    ],
)
async def test_a_yes_for_the_session_is_told_as_a_rule_and_asked_once(
    tmp_path: Path, language: str, said: str, pattern: str
) -> None:
    story = Typing(tmp_path, BOTH, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "two.py").exists() and len(story.gates()) == 1
    told = [event for event in story.events if isinstance(event, Noticed | PermissionGiven)]
    at = next(place for place, event in enumerate(told) if isinstance(event, PermissionGiven))
    before = told[at - 1]
    assert isinstance(before, Noticed) and before.what.values == {"pattern": pattern}
    assert story.all(PermissionGiven)[0].scope == "session"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, and don't ask again for one.py"),
        ("ja", "はい、one.pyはこのセッション中は聞かなくて大丈夫です"),
        ("en", "yes, don't ask again for this file"),
        ("en", "yes, no more questions about edits to that file"),
        ("ja", "いいよ、このファイルはもう聞かなくていい"),
    ],
)
async def test_who_names_the_file_that_is_edited_allows_just_that_one(tmp_path: Path, language: str, said: str) -> None:
    again = act("file_ops.edit_file", path="one.py", edits=[{"old": "one = 1", "new": "one = 2"}])
    replies = [decide(ONE, next_step="continue"), decide(again, next_step="continue"), decide(TWO, respond("ok"))]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await story.asked(2)
    assert (story.folder / "one.py").read_text() == "one = 2\n" and not (story.folder / "two.py").exists()
    assert (await story.chat.take("1")).meaning == "answer"
    await turn
    assert story.all(PermissionGiven)[0].rule.values["pattern"] == "one.py"


async def test_a_yes_whose_reach_is_not_surely_known_is_asked_about_in_one_line(tmp_path: Path) -> None:
    story = Typing(tmp_path, BOTH, mode="ask")
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    taken = await story.chat.take("yes, python sources have carte blanche in my book from now on")
    assert taken.meaning == "unclear" and [line.key for line in taken.told] == ["gate.rest_or_session"]
    assert (await story.chat.take("3")).meaning == "answer"
    await turn
    assert (story.folder / "two.py").exists() and len(story.gates()) == 1


NOTES = "notes.rst"
WRITE = act("file_ops.write_file", path=NOTES, content="ducks\n")
EDIT = act("file_ops.edit_file", path=NOTES, edits=[{"old": "ducks", "new": "geese"}])
DEEPER = act("file_ops.write_file", path="docs/more.rst", content="swans\n")
DELETE = act("file_ops.delete_file", path=NOTES)
TESTS = act("shell.run", command="pytest -q --doctest-modules -p no:cacheprovider")


@pytest.mark.parametrize(("first", "second"), [(WRITE, EDIT), (EDIT, WRITE)], ids=["written", "edited"])
@pytest.mark.parametrize(("language", "said"), [("en", "all rst files are fine"), ("ja", "rstファイルは全部いいよ")])
async def test_a_rule_for_files_covers_every_tool_that_edits_them_and_no_delete(
    tmp_path: Path, language: str, said: str, first: dict[str, object], second: dict[str, object]
) -> None:
    calls = [decide(call, next_step="continue") for call in (first, second, DEEPER, DELETE)]
    story = Typing(tmp_path, [*calls, decide(respond("ok"))], mode="ask", language=language)
    (story.folder / NOTES).write_text("ducks\n")
    turn = asyncio.create_task(story.tell("write notes"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    question = await story.asked(2)
    assert question.gate and question.gate.operations == ("file_ops.delete_file",)
    assert (story.folder / "docs/more.rst").exists()
    await story.chat.take("2")
    await turn


@pytest.mark.parametrize(
    ("said", "patterns"),
    [
        ("yes, and don't ask again", ["*.rst", "pytest"]),
        ("yes, and don't ask again for pytest", ["pytest"]),
        ("yes, and don't ask again for rst files", ["**/*.rst"]),
        ("はい、今後は聞かなくていいです", ["*.rst", "pytest"]),
        ("4", ["*.rst", "pytest"]),
        ("3", ["*.rst", "pytest"]),
    ],
)
async def test_two_calls_at_one_gate_get_the_rules_that_were_meant(
    tmp_path: Path, said: str, patterns: list[str]
) -> None:
    story = Typing(tmp_path, [decide(WRITE, TESTS, next_step="continue"), decide(respond("ok"))], mode="ask")
    turn = asyncio.create_task(story.tell("write notes and test"))
    question = await story.asked()
    assert [choice.key for choice in question.choices] == ["yes", "no", "session", "always"]
    taken = await story.chat.take(said)
    if said == "4":
        assert taken.meaning == "unclear", "a rule that stays takes its word"
        await story.chat.take("always")
    await turn
    assert (story.folder / NOTES).exists()
    assert [given.rule.values["pattern"] for given in story.all(PermissionGiven)] == patterns


async def test_what_was_not_named_waits_where_only_a_part_was_agreed_to(tmp_path: Path) -> None:
    replies = [decide(WRITE, TESTS, next_step="continue"), decide(WRITE, next_step="continue"), decide(respond("ok"))]
    story = Typing(tmp_path, replies, mode="ask")
    turn = asyncio.create_task(story.tell("write notes and test"))
    await story.asked()
    assert (await story.chat.take("all rst files are fine")).meaning == "answer"
    await turn
    ran = [event.result.operation for event in story.all(ActionFinished) if event.result.ok]
    assert ran == ["file_ops.write_file", "response"] and len(story.gates()) == 1


@pytest.mark.parametrize(
    ("language", "said"), [("en", "yes, and don't ask again for pytest"), ("ja", "はい、pytestはもう聞かないで")]
)
async def test_a_rule_is_never_about_something_else_than_was_said(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, BOTH, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    await story.chat.take(said)
    await story.asked(2)
    assert (story.folder / "one.py").exists() and not story.all(PermissionGiven)
    assert "permission.only_once" in notices(story)
    await story.chat.take("1")
    await turn


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, but call it uno.py first"),
        ("en", "yes but only in src/"),
        ("en", "ok but in src/ and tests/ only"),
        ("en", "sure but not in docs"),
        ("ja", "はい、でも名前は uno.py にして"),
        ("ja", "いいけど src/ だけ"),
    ],
)
async def test_a_yes_with_a_condition_runs_nothing_and_costs_no_mood(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, BOTH, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    before = story.session.state.vitals
    await story.chat.take(said)
    await story.asked(2)
    assert not (story.folder / "one.py").exists() and said in story.prompt()
    # Nobody has said no, neither to this nor to what was to come after it.
    assert all(note(language, key) not in story.prompt() for key in ("moved_no", "not_run_refused"))
    vitals = story.session.state.vitals
    # What the model says of its own confidence moves the mood a little.
    assert before.mood - vitals.mood < 0.05 and before.stamina - vitals.stamina < 0.05
    assert story.all(QuestionClosed)[0].answer == Answer(choice="wish", text=said)
    await story.chat.take("1")
    await turn


@pytest.mark.parametrize(
    ("language", "said"), [("en", "what is in that file?"), ("ja", "そのファイルには何が入っていますか？")]
)
async def test_a_question_back_is_answered_while_the_gate_stays_open(tmp_path: Path, language: str, said: str) -> None:
    explained = when(said, {"answer": "Only a number."})
    story = Typing(tmp_path, [BOTH[0], explained, decide(respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write one"))
    question = await story.asked()
    assert [phrase.key for phrase in (await story.chat.take(said)).told] == ["question.asked_back"]
    await until(story, lambda: "gate.explained" in notices(story))
    assert story.chat.questions == (question,) and not (story.folder / "one.py").exists()
    await story.chat.take("1")
    await turn
    assert (story.folder / "one.py").exists()


@pytest.mark.parametrize(
    ("language", "question", "said"),
    [("en", "what is in that file?", "in that case yes"), ("ja", "そのファイルには何が入っていますか？", "それならOK")],
)
async def test_a_condition_that_points_at_what_was_answered_is_a_yes(
    tmp_path: Path, language: str, question: str, said: str
) -> None:
    explained = when(question, {"answer": "Only a number."})
    story = Typing(tmp_path, [BOTH[0], explained, decide(respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write one"))
    await story.asked()
    await story.chat.take(question)
    await until(story, lambda: "gate.explained" in notices(story))
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "one.py").exists()


@pytest.mark.parametrize("after_answer", [False, True])
async def test_a_condition_that_points_at_what_was_answered_approves_a_draft(
    tmp_path: Path, after_answer: bool
) -> None:
    replies = [decide(respond("It has one file."))] if after_answer else []
    story = Typing(tmp_path, [*PLAN_SHOWN, *replies, *[decide(respond("ok"))] * 3], mode="ask", language="ja")
    await story.tell("make a snake game")
    if after_answer:
        await story.tell("ファイルはいくつできますか？")
    await story.tell("なるほど、それなら進めてください")
    assert story.session.state.plan
    assert (story.session.state.plan.status == "approved") is after_answer


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "wait"),
        ("en", "hold on a second"),
        ("en", "hold on, let me look at the other tests first"),
        ("ja", "ちょっと待って、考える"),
        ("ja", "待って、隣のテストをもう一度確認したいので"),
    ],
)
async def test_waiting_drops_neither_a_gate_nor_a_plan(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [*PLAN_SHOWN, BOTH[0], decide(respond("ok"))], mode="ask", language=language)
    await story.tell("make a snake game")
    assert await story.tell(said) == "pending_user"
    assert story.session.state.plan and story.session.state.plan.status == "draft"
    turn = asyncio.create_task(story.tell("first write one.py" if language == "en" else "先に one.py を書いて"))
    await story.asked()
    assert [phrase.key for phrase in (await story.chat.take(said)).told] == ["question.waits"]
    assert story.chat.questions
    await story.chat.take("yes" if language == "en" else "はい")
    await turn
    assert (story.folder / "one.py").exists()


@pytest.mark.parametrize(("language", "said"), [("en", "nice"), ("en", "cool"), ("ja", "ナイス")])
async def test_praise_is_no_yes(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [BOTH[0], decide(respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write one"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "unclear"
    await story.chat.take("no" if language == "en" else "いいえ")
    await turn
    assert not (story.folder / "one.py").exists()


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "Perfect, do it like that, and let it run in the background"),
        ("en", "yes please, in the background"),
        ("ja", "完璧です、それでバックグラウンドで進めてください"),
        ("ja", "はい、裏でお願いします"),
    ],
)
async def test_one_yes_approves_a_plan_and_starts_it_in_the_background(
    tmp_path: Path, language: str, said: str
) -> None:
    story = Story(tmp_path, PLAN_SHOWN, language=language)
    await story.tell("make a snake game")
    assert await story.tell(said) == "deferred"
    assert len(story.all(JobStarted)) == 1 and not story.questions
    assert [event.plan.status for event in story.all(PlanChanged)][:2] == ["draft", "approved"]


def passes_on(words: str, background: bool = False) -> dict[str, object]:
    return decide(act("plan_tool.approve", words=words, background=background), next_step="continue", step="PLANNING")


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "that is exactly what the team had in mind"), ("ja", "チームの考えとぴったり合っています")],
)
async def test_a_yes_that_the_model_passes_on_takes_one_key(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [*PLAN_SHOWN, passes_on(said, background=True)], language=language)
    await story.tell("make a snake game")
    turn = asyncio.create_task(story.tell(said))
    question = await story.asked()
    assert (question.kind, question.title.key) == ("choice", "plan.start") and not story.all(JobStarted)
    assert question.choices[0].label.key == "plan.start_background"
    await story.chat.take("y")
    await until(story, lambda: bool(story.all(JobStarted)))
    turn.cancel()


@pytest.mark.parametrize(
    ("language", "confirmed"),
    [
        ("en", "yes, go ahead, and no need to ask me for each edit"),
        ("en", "y"),
        ("ja", "はい、編集のたびに聞かなくていいです"),
    ],
)
async def test_the_scope_of_a_yes_counts_at_the_confirmation_as_at_the_plan(
    tmp_path: Path, language: str, confirmed: str
) -> None:
    said = "that is exactly what the team had in mind" if language == "en" else "チームの考えとぴったり合っています"
    story = Typing(tmp_path, [*PLAN_SHOWN, passes_on(said, background=True)], mode="ask", language=language)
    await story.tell("make a snake game")
    turn = asyncio.create_task(story.tell(said))
    await story.asked()
    assert (await story.chat.take(confirmed)).meaning == "answer"
    await until(story, lambda: bool(story.all(JobStarted)))
    assert [given.rule.key for given in story.all(PermissionGiven)] == ["permission.edits"] * (confirmed != "y")
    turn.cancel()


async def test_a_model_that_always_passes_on_a_yes_gets_none(tmp_path: Path) -> None:
    """Every sentence that is no yes, of all sets: the user would have to press a key, or the call is refused."""
    story = Story(tmp_path, PLAN_SHOWN)
    await story.tell("make a snake game")
    approve = story.toolbox.find("plan_tool.approve")
    lines = [
        line
        for path in sorted((Path(__file__).parents[1] / "words").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    rows = [json.loads(line) for line in lines]
    others = [row["text"] for row in rows if row.get("kind") in ("no", "other")]
    assert len(others) > 150
    for text in others:
        story.session.emit(MessageAdded(message=Message(role="user", text=text, turn=1)))
        with pytest.raises(ToolError):
            await approve.run(approve.args.model_validate({"words": text}))
        assert story.session.state.plan and story.session.state.plan.status == "draft", text


@pytest.mark.parametrize("text", ["I'd rather you didn't do it like that", "if you do it like that it breaks"])
def test_what_speaks_against_a_plan_is_not_even_asked_about(text: str) -> None:
    assert not read_whole(text).may_be_yes


async def test_a_yes_is_passed_on_only_whole_and_after_the_plan_was_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, PLAN_SHOWN)
    await story.tell("yes")
    approve = story.toolbox.find("plan_tool.approve")
    with pytest.raises(ToolError, match="since this plan was shown"):
        await approve.run(approve.args.model_validate({"words": "yes"}))
    text = "the report says: yes, go ahead"
    story.session.emit(MessageAdded(message=Message(role="user", text=text, turn=1)))
    with pytest.raises(ToolError, match="whole and unchanged"):
        await approve.run(approve.args.model_validate({"words": "yes, go ahead"}))


async def test_a_yes_passed_on_once_more_does_not_deny_the_plan(tmp_path: Path) -> None:
    again = decide(respond("ok"), step="PLANNING")
    story = Story(tmp_path, [*PLAN_SHOWN, passes_on("yes"), again])
    await story.tell("make a snake game")
    await story.tell("yes")
    told = [event.result.for_user.key for event in story.all(ActionFinished) if not event.result.ok]
    assert told == ["plan.no_draft"]


@pytest.mark.parametrize("mode", ["full-auto", "auto-edit"])
async def test_a_draft_waits_in_every_mode(tmp_path: Path, mode: str) -> None:
    replies = [*PLAN_SHOWN, decide(ONE, next_step="continue"), decide(respond("ok"), step="PLANNING")]
    story = Typing(tmp_path, replies, mode=mode)
    await story.tell("make a snake game")
    turn = asyncio.create_task(story.tell("yes, but only if it stays small"))
    question = await story.asked()
    assert question.gate and "risk.draft" in [reason.key for reason in question.gate.reasons]
    await story.chat.take("no")
    await turn
    assert not (story.folder / "one.py").exists() and not any(one.result.changed for one in story.all(ActionFinished))


@pytest.mark.parametrize(
    ("said", "path", "asked"),
    [
        ("write docs/one.py first, that has nothing to do with it", "docs/one.py", False),
        ("計画とは別に one.py を書いて", "one.py", False),
        ("fix the README meanwhile", "README.md", False),
        ("write the readme", "README.md", True),
        ("write game.py now", "game.py", True),
        ("try it with one file", "one.py", True),
        ("write two.py first", "one.py", True),
    ],
)
async def test_what_the_user_asks_for_beside_a_draft_is_judged_as_always(
    tmp_path: Path, said: str, path: str, asked: bool
) -> None:
    """By turns natively and by JSON."""
    native = len(said) % 2 == 0
    write = act("file_ops.write_file", path=path, content="one = 1\n")
    drafted = [PROPOSE, when("Make a plan for this goal", SNAKE)]
    replies = [*drafted, decide(write, next_step="continue"), *[decide(respond("ok"), step="PLANNING")] * 2]
    story = Typing(tmp_path, replies, mode="full-auto", native=native)
    await story.tell("make a snake game, and one.py, docs/one.py, README.md")
    turn = asyncio.create_task(story.tell(said))
    if asked:
        await story.asked()
        await story.chat.take("no")
    await turn
    assert (story.folder / path).exists() is not asked and len(story.gates()) == asked


JOB = [PROPOSE, SNAKE, decide(act("task_loop.run"), respond("It runs."), next_step="defer")]
STEP = {"en": "Now its step", "ja": "いまのステップ"}
ENDED = {"en": "A background job has ended", "ja": "バックグラウンドのジョブが終わ"}
YES = {"en": "yes", "ja": "はい"}


def game_and_score(language: str) -> list[ScriptedReply]:
    """Two steps, each with an edit of a file that the plan names."""
    tasks = [
        when(STEP[language], {"tasks": [act("file_ops.write_file", path=path, content="x = 1\n")]})
        for path in ("game.py", "score.py")
    ]
    return [*tasks, when(ENDED[language], report())]


async def at_the_gate_of_a_job(tmp_path: Path, language: str, *more: Any) -> Typing:
    story = Typing(tmp_path, [*JOB, *game_and_score(language), *more], mode="ask", language=language)
    await story.tell("make a snake game")
    assert await story.tell(YES[language]) == "deferred"
    question = await story.asked()
    assert question.job
    return story


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, and don't ask again for the files of this plan"),
        ("en", "ok for all of this plan's files"),
        ("en", "yes for the remaining steps"),
        ("en", "go ahead, and don't ask me until the plan is done"),
        ("ja", "はい、この計画のファイルはもう聞かないでください"),
        ("ja", "いいですよ、このプランの残りは任せます"),
    ],
)
async def test_a_yes_for_the_files_of_the_plan_is_one_rule_as_long_as_the_plan_is_carried_out(
    tmp_path: Path, language: str, said: str
) -> None:
    more = decide(act("file_ops.write_file", path="score.py", content="x = 2\n"), respond("ok"))
    story = await at_the_gate_of_a_job(tmp_path, language, more)
    assert (await story.chat.take(said)).meaning == "answer"
    assert (await job_ended(story)).status == "completed"
    assert len(story.gates()) == 1 and (story.folder / "score.py").exists()
    rule = story.all(PermissionGiven)[0].rule.values
    assert rule["pattern"] == "game.py, score.py" and rule["plan"]
    told = story.all(MessageAdded)
    assert any(said in event.message.text and not event.message.job for event in told), "the chat keeps the words"
    turn = asyncio.create_task(story.tell("once more" if language == "en" else "もう一度"))
    assert (await story.asked(2)).gate, "the plan is over, and so is its rule"
    await story.chat.take("2")
    await turn


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, as far as the moon is round"),
        ("en", "ok but hmm for those in there maybe"),
        ("en", "sure - whatever Tom said about it yesterday, same thing"),
        ("en", "no idea what this is"),
        ("en", "not that I know of"),
        ("en", "nothing against it"),
        ("en", "y for the stuff we talked about"),
        ("en", "I mean yes, and other edits under src/ don't need my ok either"),
        ("en", "in that case ok"),
        ("en", "それならOK"),
        ("ja", "その場合はいいですよ"),
        ("ja", "はい、例の件についても昨日の話のとおりで"),
        ("ja", "いいえではないけど、よくわからない"),
        ("ja", "反対しません"),
    ],
)
async def test_what_begins_as_an_answer_never_leaves_a_job_gate_for_the_chat(
    tmp_path: Path, language: str, said: str
) -> None:
    story = await at_the_gate_of_a_job(tmp_path, language, when(STEP[language], {"tasks": []}))
    before = len(story.model.requests)
    taken = await story.chat.take(said)
    assert taken.meaning in ("unclear", "answer"), "asked in a line, or heard as a wish by the step"
    assert not story.chat.in_turn and not (story.folder / "game.py").exists()
    assert taken.meaning == "answer" or (story.chat.questions and len(story.model.requests) == before)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "run the linter here in the chat please"), ("en", "do the README next"), ("ja", "READMEも直してください")],
)
async def test_what_is_no_answer_goes_to_the_chat_while_a_job_waits(tmp_path: Path, language: str, said: str) -> None:
    reply = ScriptedReply(json.dumps(decide(respond("Later."), step="PLANNING")), when=said)
    story = await at_the_gate_of_a_job(tmp_path, language, reply)
    assert (await story.chat.take(said)).meaning == "message"
    await until(story, lambda: "Later." in story.said())
    assert story.chat.questions and "+x = 1" in story.prompt(), "the chat's model knows what stands in the box"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, and don't ask again for its files"),
        ("en", "Approved. Don't ask me about the files of the plan"),
        ("ja", "はい、計画のファイルは確認なしで進めてください"),
    ],
)
async def test_a_yes_to_a_plan_may_go_further_at_once(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [*JOB, *game_and_score(language)], mode="ask", language=language)
    await story.tell("make a snake game")
    assert await story.tell(said) == "deferred"
    assert (await job_ended(story)).status == "completed" and not story.gates()


@pytest.mark.parametrize(
    ("language", "said"), [("en", "1, and don't ask again for python files"), ("ja", "１、.pyファイルはもう聞かないで")]
)
async def test_a_number_may_say_more(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, BOTH, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "two.py").exists() and len(story.gates()) == 1


async def test_a_number_means_the_same_at_every_gate(tmp_path: Path) -> None:
    """Where a text can be edited, where several calls stand in one Gate, where no rule is offered."""
    alone = decide(WRITE, next_step="continue")
    several = decide(EDIT, TESTS, next_step="continue")
    story = Typing(tmp_path, [alone, several, decide(DELETE, respond("ok"))], mode="ask")
    turn = asyncio.create_task(story.tell("write"))
    numbers: dict[int, str] = {}
    for number in (1, 2, 3):
        question = await story.asked(number)
        for place, choice in question.numbered.items():
            assert numbers.setdefault(place, choice.key) == choice.key
        await story.chat.take("1")
    await turn
    assert numbers == {1: "yes", 2: "no", 3: "session", 4: "always", 5: "edit"}


@pytest.mark.parametrize(
    "offered", [("yes", "no", "edit"), ("yes", "no", "diff", "files"), ("yes", "no", "session", "always", "edit")]
)
def test_the_numbers_that_are_shown_have_no_gap(offered: tuple[str, ...]) -> None:
    choices = [Choice(key=key, label=say("gate.yes"), number=GATE_KEYS.index(key) + 1) for key in offered]
    shown = [choice.letter or str(choice.number) for choice in choices]
    numbers = [sign for sign in shown if sign.isdecimal()]
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)] and len(set(shown)) == len(shown)
    for key, sign in zip(offered, shown, strict=True):
        answer = read_answer(sign, offered)
        assert (answer.choice if answer else "asked again") == (key if key != "always" else "asked again")


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_what_was_asked_and_answered_at_a_gate_stays_in_the_conversation(tmp_path: Path, native: bool) -> None:
    asked, told, said = "does that file exist already?", "No, it is new.", "yes, and don't ask again for .py files"
    explained = when(asked, {"answer": told})
    story = Typing(tmp_path, [BOTH[0], explained, decide(respond("ok"))], mode="ask", native=native)
    turn = asyncio.create_task(story.tell("write one"))
    await story.asked()
    await story.chat.take(asked)
    await until(story, lambda: "gate.explained" in notices(story))
    await story.chat.take(said)
    await turn
    assert all(words in story.prompt() for words in (asked, told, said))


@pytest.mark.parametrize(("language", "said"), [("en", "no, only the docs"), ("ja", "いいえ、docsだけ")])
async def test_a_wish_at_the_undo_box_reaches_the_model_which_can_take_back_less(
    tmp_path: Path, language: str, said: str
) -> None:
    docs = act("file_ops.write_file", path="docs/a.md", content="ducks\n")
    less = decide(act("undo.turn", paths=["docs/"]), next_step="continue", step="PLANNING")
    replies = [decide(docs, ONE, respond("ok")), less, decide(respond("Only the docs."), step="PLANNING")]
    story = Typing(tmp_path, replies, language=language)
    await story.tell("write both")
    await story.chat.take("/undo")
    box = await story.asked()
    assert box.gate and [impact.path for impact in box.gate.impacts] == ["docs/", "docs/a.md", "one.py"]
    await story.chat.take(said)
    question = await story.asked(2)
    assert question.gate and [impact.path for impact in question.gate.impacts] == ["docs/", "docs/a.md"]
    assert said in story.prompt() and "one.py" in story.prompt()
    await story.chat.take("1")
    await until(story, lambda: "Only the docs." in story.said())
    assert (story.folder / "one.py").exists() and not (story.folder / "docs/a.md").exists()


async def test_a_wish_in_place_of_a_key_is_heard_where_a_plan_is_to_start(tmp_path: Path) -> None:
    said, wish = "that is exactly what the team had in mind", "no, first the docs please"
    story = Typing(tmp_path, [*PLAN_SHOWN, passes_on(said), decide(respond("ok"), step="PLANNING")])
    await story.tell("make a snake game")
    turn = asyncio.create_task(story.tell(said))
    await story.asked()
    assert (await story.chat.take(wish)).meaning == "answer"
    await turn
    assert wish in story.prompt() and story.session.state.plan and story.session.state.plan.status == "draft"


@pytest.mark.parametrize("said", ["no, start the plan", "no, carry on with the job"])
async def test_a_no_that_says_what_to_do_instead_is_heard(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [decide(ONE), decide(respond("All right."))], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert not (story.folder / "one.py").exists() and said in story.prompt()


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_word_that_may_mean_no_thanks_is_asked_about_and_is_no_reason_for_a_no(
    tmp_path: Path, language: str
) -> None:
    story = Typing(tmp_path, [decide(ONE), decide(respond("ok"))], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it"))
    question = await story.asked()
    for text in ("いいです", "I'm good"):
        taken = story.chat.answer(question.question_id, text).result()
        assert (taken.meaning, [line.key for line in taken.told]) == ("unclear", ["gate.either"])
    assert story.chat.answer(question.question_id, "no").result().meaning == "answer"
    await turn
    assert not any(words in story.prompt() for words in ("いいです", "I'm good"))

"""What the design papers say besides: how grave it is, how far it may go, what kind of work it is."""

import logging
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.session import reopen
from duckflow.commands.plan import plan_from_text, plan_text
from duckflow.events.types import Intervened, Noticed, Reviewed
from duckflow.i18n.words import Words
from duckflow.state.question import Answer
from tests.commands.test_commands import Desk
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
DOUBT = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue", confidence=0.3)


@LANGUAGES
async def test_how_grave_an_intervention_is_is_told_and_kept(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, [LOOK] * 5, language=language)
    assert await story.tell("look around") == "pacemaker"
    replan, call = story.all(Intervened)[0], story.duck_calls()[0]
    assert (replan.how, replan.severity, call.severity) == ("replan", "medium", "medium")
    told = {"en": "severity: medium", "ja": "重大度: 中"}[language]
    assert told in [Words(language).phrase(one) for one in call.details]
    desk = Desk(story, language)
    assert told in await desk.give("/why")
    assert "pacemaker.replan" in await desk.give("/audit")
    story.session.close()
    with closing(reopen(tmp_path / "home" / "s.db").session) as kept:
        assert sum(isinstance(event, Intervened) for _, event in kept.record()) == 1


@LANGUAGES
async def test_a_hint_is_told_once_while_it_stays_the_same(tmp_path: Path, language: str) -> None:
    reads = [
        decide(act("file_ops.read_file", path=f"{n}.txt"), step="PLANNING", next_step="continue", confidence=0.5)
        for n in range(3)
    ]
    story = Story(tmp_path, [*reads, decide(respond("So."), step="PLANNING")], language=language)
    for number in range(3):
        (story.folder / f"{number}.txt").write_text(f"other words {number}\n" * 3)
    await story.tell("read them")
    hints = [one for one in story.all(Intervened) if one.how == "hint"]
    assert len(hints) == 1 and hints[0].severity == "low"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("language", "request_", "work"),
    [("en", "Analyse game.py", "Analysing code"), ("ja", "game.py を分析して", "コード分析を実行中")],
)
@pytest.mark.parametrize("native", [False, True])
async def test_a_turn_says_its_limit_its_vitals_and_the_kind_of_work(
    tmp_path: Path, language: str, request_: str, work: str, native: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    answer = decide(respond("It draws."), step="PLANNING", task_profile="CODE_ANALYSIS")
    story = Story(tmp_path, [answer], language=language, native=native)
    await story.tell(request_)
    begun = next(line for line in caplog.messages if "[DUCK_PACEMAKER] start" in line)
    assert "profile=CODE_ANALYSIS limit=14" in begun and "mood=1.00 focus=1.00 stamina=" in begun
    desk = Desk(story, language)
    assert work in await desk.give("/status") and "14" in await desk.give("/status")
    assert "14" in await desk.give("/why")
    story.session.close()
    again = Story(tmp_path, [answer], language=language, native=native)
    assert "14" in await Desk(again, language).give("/status")
    assert "14" in await Desk(again, language).give("/why"), "what /status says stays true of the last turn"


@LANGUAGES
@pytest.mark.parametrize("native", [False, True])
async def test_a_plan_names_its_risks_with_their_levels(tmp_path: Path, language: str, native: bool) -> None:
    risks = {"en": ["high: the old scores are lost", "a slow terminal"], "ja": ["高: 古い得点が消える", "端末が遅い"]}
    draft = {"name": "Game", "steps": SNAKE["steps"], "risks": risks[language]}
    story = Story(tmp_path, [PROPOSE, draft], language=language, native=native)
    await story.tell("a snake game")
    shown = await Desk(story, language).give("/plan")
    assert {
        "en": "risks: high: the old scores are lost; a slow terminal",
        "ja": "リスク: 高: 古い得点が消える; 端末が遅い",
    }[language] in shown
    asked = story.prompt(1)
    assert ('"high: "' if language == "en" else "「高: 」") in asked
    plan = story.session.state.plan
    assert plan and plan_from_text(plan_text(plan, Words(language)), plan).risks[1] == plan.risks[1]


@pytest.mark.parametrize(
    ("language", "shown", "checklist"),
    [
        ("en", "Review: needs work, needs fixes", "Check before you change"),
        ("ja", "レビュー: 評価は「要改善」、要修正", "変える前に確かめる"),
    ],
)
@pytest.mark.parametrize("native", [False, True])
async def test_a_review_is_rated_and_what_needs_work_is_not_called_done(
    tmp_path: Path, language: str, shown: str, checklist: str, native: bool
) -> None:
    write = act("file_ops.write_file", path="game.py", content="print(1)\n")
    work = decide(write, act("shell.run", command="exit 3"), next_step="continue")
    said = decide(respond("It is not right yet."), step="REVIEW", rating="needs work", verdict="fix")
    begin = decide(act("file_ops.list_files"), next_step="continue", prompt_pattern="base_main_specialized")
    story = Story(tmp_path, [begin, work, decide(respond("All done.")), said], language=language, native=native)
    await story.tell("make a game")
    assert checklist in story.prompt(1) and "needs_work" in story.prompt(3)
    assert [one.review.by for one in story.all(Reviewed)] == ["model"]
    desk = Desk(story, language)
    assert shown in await desk.give("/status") and "needs_work, fix" in await desk.give("/audit")
    assert "review.unverified" in [one.what.key for one in story.all(Noticed)]


@LANGUAGES
async def test_without_a_word_of_the_model_the_record_rates_the_work(tmp_path: Path, language: str) -> None:
    write = act("file_ops.write_file", path="game.py", content="print(1)\n")
    plain, checked = decide(write, respond("ok")), decide(write, act("shell.run", command="true"), respond("ok"))
    story = Story(tmp_path, [plain, checked], language=language)
    await story.tell("make a game")
    await story.tell("and try it")
    assert [one.review.rating for one in story.all(Reviewed)] == ["fair", "good"]


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
@LANGUAGES
async def test_references_to_conversations_and_plans_are_kept_told_and_can_be_read(
    tmp_path: Path, language: str, native: bool
) -> None:
    recall = decide(act("memory.recall", text="conversation:1"), step="PLANNING", next_step="continue")
    first, last = decide(respond("Noted."), step="PLANNING"), decide(respond("Blue."), step="PLANNING")
    story = Story(tmp_path, [first, PROPOSE, SNAKE, recall, last], language=language, native=native)
    for text in ("The snake is blue.", "a snake game", "which colour was it?"):
        await story.tell(text)
    plan = story.session.state.active_plan
    refs = f"plan:{plan}, conversation:1"
    assert "The snake is blue." in story.prompt() and refs in story.prompt()
    assert (("memory_recall" if native else "memory.recall") in story.prompt()) and "{recall}" not in story.prompt()
    assert not native or "memory.recall" not in story.prompt()
    told = {"en": "Last change of the state", "ja": "直近の状態の変化"}[language]
    assert f"{told}: step: PLANNING → AWAITING_APPROVAL" in story.prompt(3)
    shown = await Desk(story, language).give("/status")
    assert refs in shown
    delta = {"en": "plan or step: step: awaiting approval → planning", "ja": "の直近の変化: step: 承認待ち → 計画"}
    assert delta[language] in shown
    assert "The snake is blue." in await Desk(story, language).give("/recall conversation:1")


@LANGUAGES
async def test_the_last_change_of_the_state_does_not_quote_the_model(tmp_path: Path, language: str) -> None:
    delta: dict[str, Any] = {"why_now": "the shop opens", "plan_brief": ["count the coins"]}
    replies = [
        decide(act("shell.run", command="true"), step="EXECUTION", next_step="continue", rationale="I begin now."),
        decide(act("shell.run", command="true"), step="EXECUTION", next_step="continue", state_delta=delta),
        decide(respond("Done."), step="EXECUTION"),
    ]
    story = Story(tmp_path, replies, language=language, mode="full-auto")
    await story.tell("make it")
    told = {"en": "Last change of the state", "ja": "直近の状態の変化"}[language]
    assert f"{told}: step: PLANNING → EXECUTION\n" in story.prompt(1)
    assert f"{told}: why_now, plan_brief\n" in story.prompt(2)
    shown = story.prompt(2).rpartition("[state]" if language == "en" else "[状態]")[2]
    assert shown.count("the shop opens") == shown.count("count the coins") == 1


@pytest.mark.parametrize(
    ("language", "told"),
    [("en", "1 of 1 plan and 2 of 2 tasks"), ("ja", "計画 1 件中 1 件、タスク 2 件中 2 件")],
)
async def test_how_often_plans_and_tasks_succeed_is_kept_with_the_project(
    tmp_path: Path, language: str, told: str
) -> None:
    ended = when({"en": "has ended", "ja": "終わりました"}[language], report())
    draft: dict[str, Any] = {"name": "Game", "steps": SNAKE["steps"][:1], "risks": []}
    tasks = write_tasks("game.py", "score.py")
    bodies = [when("content of game.py", "x = 1\n"), when("content of score.py", "y = 1\n")]
    if language == "ja":
        bodies = [when("では game.py の内容", "x = 1\n"), when("では score.py の内容", "y = 1\n")]
    story = Story(tmp_path, [PROPOSE, draft, run_step(1), tasks, *bodies, ended], language=language)
    await story.tell("a snake game")
    await story.tell("yes")
    await job_ended(story)
    assert told in await Desk(story, language).give("/memory")
    again = story.restart([decide(respond("Hello."), step="PLANNING")])
    await again.tell("hello")
    assert told in await Desk(again, language).give("/memory"), "the next session knows it"


def writes(path: str) -> dict[str, Any]:
    return decide(act("file_ops.write_file", path=path, content="x\n"), respond("ok"))


@pytest.mark.parametrize(
    ("language", "told"),
    [("en", "You have allowed this 3 times."), ("ja", "これまでに 3 回許可しています。")],
)
async def test_what_is_usually_allowed_is_offered_as_a_rule_and_never_becomes_one_by_itself(
    tmp_path: Path, language: str, told: str
) -> None:
    words, yes = Words(language), Answer(choice="yes")
    story = Story(tmp_path, [writes(f"src/{n}.py") for n in range(3)], mode="ask", language=language)
    story.answers = [yes] * 3
    for _ in range(3):
        await story.tell("write")
    assert not any(question.details for question in story.questions)
    story = story.restart([writes("src/a.py"), writes("src/b.py"), writes("run.sh"), writes("src/c.py")])
    story.answers = [yes, yes]
    await story.tell("write")
    assert words.phrase(story.questions[0].details[0]).startswith(told), "another session knows it"
    desk = Desk(story, language)
    assert words("permission.edits", pattern="src/*.py") in await desk.give("/permissions")
    await story.tell("and now")
    assert len(story.questions) == 2, "it still asks"
    await desk.give("/permissions add 1")
    await story.tell("a program")
    assert len(story.questions) == 3 and not story.questions[-1].details, "what is of high risk makes no habit"
    await story.tell("the rule holds")
    assert len(story.questions) == 3 and (story.folder / "src/c.py").exists()


@LANGUAGES
async def test_a_no_ends_a_habit(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, [writes(f"{n}.py") for n in range(5)], mode="ask", language=language)
    story.answers = [*[Answer(choice="yes")] * 3, Answer(choice="no"), Answer(choice="yes")]
    for _ in range(5):
        await story.tell("write")
    assert [bool(question.details) for question in story.questions] == [False, False, False, True, False]

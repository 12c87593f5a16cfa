"""The design's own dialogue, word for word; and what moves, waits and stays, in both languages."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionStarted, LoopBegan, PhaseMoved, VitalsChanged
from duckflow.i18n.words import Words
from duckflow.pacemaker.vitals import Signal
from duckflow.state.phase import Phase, Status
from duckflow.state.question import Answer
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
ENDED = {"en": "has ended", "ja": "終わりました"}


async def test_the_dialogue_of_the_design(tmp_path: Path) -> None:
    """Seed 001, section 7: thirteen lines, word for word."""
    propose = decide(act("plan_tool.propose", goal="ゲームを実装する"), step="PLANNING", next_step="pending_user")
    steps: list[dict[str, Any]] = [
        {"name": "環境構築", "description": "package.json", "success": "package.json がある", "depends_on": []},
        {"name": "コア実装", "description": "game.js", "success": "game.js がある", "depends_on": [1]},
    ]
    generate = decide(act("task_tool.generate_list", step_id="1"), next_step="continue")
    run = decide(act("task_loop.run", step_id="1"), next_step="defer")
    done = (
        "ステップ1『環境構築』が完了しました。`package.json`を作成し、依存関係をインストールしました。"
        "次にステップ2『コア実装』に進みますか？"
    )
    drafts = [{"name": "ゲーム実装", "steps": steps, "risks": ["なし"]}, generate, write_tasks("package.json"), run]
    background = [when("package.json の内容", "{}\n"), when(ENDED["ja"], report(done))]
    second = decide(act("task_tool.generate_list", step_id="2"), respond("ステップ2の作業を並べました。"))
    story = Story(tmp_path, [propose, *drafts, *background, second, write_tasks("game.js")], language="ja")
    assert await story.tell("ゲームを実装して") == "pending_user"
    plan, asked = story.session.state.plan, story.ending().why
    assert plan and plan.status == "draft" and plan.goal == "ゲームを実装する"
    assert asked and Words("ja").phrase(asked).startswith("この計画で進めますか？")
    assert await story.tell("はい、お願いします") == "deferred"
    did = [event.action.operation for event in story.all(ActionStarted) if "." in event.action.operation]
    assert did[:3] == ["plan_tool.propose", "task_tool.generate_list", "task_loop.run"]
    ended = await job_ended(story)
    assert ended.status == "completed" and ended.report.summary == done
    now = story.session.state.plan
    assert (story.folder / "package.json").exists() and now and now.steps[0].status == "completed"
    await story.tell("はい、お願いします")
    assert now.steps[1].tasks and len(story.model.requests) == 9, "what the report asked is answered by a yes"


def moves(story: Story) -> dict[str, float]:
    moved: dict[str, float] = {}
    for change in (cause for event in story.all(VitalsChanged) for cause in event.causes):
        name = f"{change.vital} {change.cause.key.removeprefix('vitals.cause.')}"
        moved[name] = moved.get(name, 0) + change.delta
    return moved


WORDS = {"en": ("Thanks, go on", "No, stop, not that"), "ja": ("ありがとう、続けて", "違う、やめて")}
DOWN = [
    *("mood confidence", "mood refused", "mood check_failed"),
    *("focus repeated", "focus nothing_new", "focus overfull", "focus turnaround", "focus error"),
    *("stamina loop", "stamina error"),
]
UP = [
    *("mood approved", "mood check_passed", "mood thanks"),
    *("focus done", "focus new", "stamina success", "stamina done", "stamina rest"),
]


@LANGUAGES
async def test_every_cause_of_the_vitals_has_a_sender(tmp_path: Path, language: str) -> None:
    """Errors and doubts first, so that what gives strength has something to give."""

    def on(*actions: dict[str, Any], **other: Any) -> dict[str, Any]:
        return decide(*actions, next_step="continue", **other)

    def read(path: str) -> dict[str, Any]:
        return act("file_ops.read_file", path=path)

    write, other = (act("file_ops.write_file", path=path, content="print(1)\n") for path in ("game.py", "b.py"))
    bad, good = act("shell.run", command="python bad.py"), act("shell.run", command="python game.py")
    finds_nothing = act("file_ops.grep", pattern="glacier")
    complete = act("plan_tool.update_step", step_id="1", status="completed")
    talk = decide(respond("ok"), step="PLANNING")
    doubts = [on(read("gone.txt"), confidence=0.2), *[on(read("notes.txt"))] * 2, on(finds_nothing), talk]
    fills = [on(read("big1.txt")), on(read("big2.txt")), talk]
    replies = [*doubts, *fills, PROPOSE, SNAKE, on(write, bad), on(good, complete), on(other), talk]
    settings = {"memory": {"summaries": False, "budget_tokens": 4000}, "safety": {"mode": "ask"}}
    story = Story(tmp_path, replies, mode="ask", language=language, settings=settings)
    (story.folder / "notes.txt").write_text("one\ntwo\n")
    for number in (1, 2):
        (story.folder / f"big{number}.txt").write_text("".join(f"{number} word {n}\n" for n in range(900)))
    (story.folder / "bad.py").write_text("raise SystemExit(1)\n")
    story.answers = [Answer(choice="yes"), Answer(choice="no", text="not that one")]
    thanks, turn = WORDS[language]
    for text in ("look at notes.txt", thanks, turn, "yes" if language == "en" else "はい", turn):
        await story.tell(text)
    moved = moves(story)
    assert [name for name in DOWN if not moved.get(name, 0) < 0] == []
    assert [name for name in UP if not moved.get(name, 0) > 0] == []
    told = {name.partition(" ")[2] for name in (*DOWN, *UP)}
    assert {signal.value for signal in Signal} <= told, "a signal that nobody sends is none"


@LANGUAGES
async def test_a_plan_that_waits_is_waited_for_and_nothing_else_is_journaled(tmp_path: Path, language: str) -> None:
    for answer, after in (("yes", Phase.EXECUTION), ("no", Phase.PLANNING)):
        top = tmp_path / answer
        top.mkdir()
        story = Story(top, [PROPOSE, SNAKE, decide(respond("ok"), next_step="continue")], language=language)
        await story.tell("make a snake game")
        assert (story.session.state.phase, story.session.state.status) == (
            Phase.AWAITING_APPROVAL,
            Status.REQUIRES_USER_INPUT,
        )
        await story.tell({"en": answer, "ja": "はい" if answer == "yes" else "いいえ"}[language])
        moved = [(move.source, move.target) for move in story.all(PhaseMoved)]
        assert moved[:2] == [(Phase.PLANNING, Phase.AWAITING_APPROVAL), (Phase.AWAITING_APPROVAL, after)]
        assert all(one[1] == other[0] for one, other in pairwise(moved)), "one follows the other"


@LANGUAGES
async def test_errors_of_one_kind_count_as_one_whatever_they_name(tmp_path: Path, language: str) -> None:
    names = ("harbour", "lantern", "meadow", "copper", "violet", "walnut", "saddle", "ribbon")
    looks = [decide(act("file_ops.read_file", path=f"src/{name}.py"), next_step="continue") for name in names]
    story = Story(tmp_path, looks, language=language)
    assert await story.tell("find the bug") == "pacemaker"
    assert story.duck_calls()[0].reason == "ERROR_CASCADE" and len(story.all(LoopBegan)) <= 6


@LANGUAGES
async def test_a_long_read_is_cut_itself_and_empties_nothing(tmp_path: Path, language: str) -> None:
    """12,000 tokens at once, in a context of 8,000."""
    said = {"en": "the port is 54329", "ja": "ポートは 54329 です"}[language]
    talk = [decide(respond(f"noted {n}"), step="PLANNING") for n in range(4)]
    look = decide(act("file_ops.read_file", path="long.txt"), step="PLANNING", next_step="continue")
    settings = {"memory": {"summaries": False, "budget_tokens": 8000}}
    story = Story(
        tmp_path, [*talk, look, decide(respond("read"), step="PLANNING")], language=language, settings=settings
    )
    (story.folder / "long.txt").write_text("".join(f"entry {n} of the long list, number {n}\n" for n in range(1200)))
    for number, text in enumerate([said, "and the host is duck", "third remark", "fourth remark"]):
        await story.tell(text)
        assert story.said()[-1] == f"noted {number}"
    await story.tell("read long.txt")
    prompt = story.prompt()
    assert "entry 0 " in prompt and all(text in prompt for text in (said, "host is duck", "fourth remark", "noted 2"))

"""The game of the design papers, from the first wish to passing tests, in their own sentences."""

from pathlib import Path
from typing import Any

from duckflow.events.types import Noticed
from duckflow.state.question import Answer, Question
from tests.journeys.plans import job_ended, until, when
from tests.journeys.story import Story, act, decide, respond

NAMES = ("環境構築", "コア実装", "操作", "スコア", "テスト")
WISH = "name は snake にして"


def drafted(names: tuple[str, ...]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"name": name, "depends_on": [at] if at else []} for at, name in enumerate(names)]
    steps[-1]["description"] = "game.py と score.py を確かめる"
    return {"name": "ゲーム実装", "steps": steps, "risks": ["端末によってキーが違う"]}


def tasks(step: str, *files: tuple[str, str], check: str = "") -> Any:
    listed = [act("file_ops.write_file", f"{path} を書く", path=path, content=text) for path, text in files]
    listed += [act("shell.run", "確かめる", command=check)] if check else []
    return when(f"いまのステップ: {step}", {"tasks": listed})


def reported(summary: str) -> Any:
    told: dict[str, Any] = {"summary": summary, "causes": [], "next_action": "次のステップに進む"}
    return when("バックグラウンドのジョブが終わりました", told)


BEFORE = [
    decide(act("plan_tool.propose", goal="ゲームを実装する"), step="PLANNING", next_step="pending_user"),
    drafted((*NAMES[:3], "テスト")),
    decide(act("plan_tool.revise", changes="スコアも付ける"), step="PLANNING", next_step="pending_user"),
    drafted(NAMES),
    decide(
        act("task_tool.generate_list", step_id="1"),
        act("task_loop.run", step_id="1"),
        respond("ステップ1を始めました。"),
        next_step="defer",
    ),
    tasks("環境構築", ("package.json", '{"name": "game"}\n')),
    when(WISH, '{"name": "snake"}\n'),
    reported("`package.json`を作成し、依存関係をインストールしました。"),
    decide(act("task_loop.run"), respond("残りを続けて実行します。"), next_step="defer"),
    tasks("コア実装", ("game.py", "def step(x):\n    return x + 2\n"), check="python -B -c 'import game'"),
    tasks("操作", ("keys.py", "KEYS = 'wasd'\n")),
]
CHECK = "python -B -c 'import game, score; assert game.step(1) == 2, game.step(1); print(score.of(3))'"
AFTER = [
    tasks("操作", ("keys.py", "KEYS = 'wasd'\n")),
    tasks("スコア", ("score.py", "def of(length):\n    return length - 1\n")),
    tasks("テスト", ("test_game.py", "import game\n"), check=CHECK),
    when("AssertionError: 3", {"tasks": [
        act("file_ops.write_file", "直す", path="game.py", content="def step(x):\n    return x + 1\n"),
        act("shell.run", "確かめる", command=CHECK),
    ]}),
    reported("ゲームができ、テストが通りました。"),
]  # fmt: skip


class Player(Story):
    """Has a wish at the first Gate of a job, leaves the one for keys.py open, and says yes to the others."""

    leaves = True

    def answer(self, question: Question) -> Answer | None:
        first = sum(bool(one.job) for one in self.questions) == 1
        if self.leaves and question.gate and "keys.py" in question.gate.diff:
            return None
        return Answer(choice="no", text=WISH) if self.leaves and first else Answer(choice="yes")


async def test_the_game_from_the_wish_to_passing_tests(tmp_path: Path) -> None:
    story = Player(tmp_path, BEFORE, mode="ask", language="ja")
    await story.tell("ゲームを実装して")
    why = story.ending().why
    assert why and why.key == "plan.ask", "この計画で進めますか"
    await story.tell("スコアも付けてください")
    plan = story.session.state.plan
    assert plan and [step.name for step in plan.steps] == list(NAMES) and plan.risks, "the risks stay"
    await story.tell("はい、お願いします")
    assert (await job_ended(story)).report.summary == "`package.json`を作成し、依存関係をインストールしました。"
    assert (story.folder / "package.json").read_text() == '{"name": "snake"}\n', "the wish was carried out"

    await story.tell("次にステップ2『コア実装』に進んで")
    await until(story, lambda: bool(story.chat.questions))
    await story.tell("どこまで進んだ？")
    told = [event.what for event in story.all(Noticed)[-3:]]
    assert [phrase.key for phrase in told] == ["job.waits", "job.now", "job.asks_for"]
    assert told[1].values["step"] == "操作" and told[2].values["what"] == "keys.py"
    assert (told[0].values["steps_done"], told[0].values["steps"]) == (1, 4)
    requests = len(story.model.requests)
    await story.chat.aclose()
    story.session.close()

    again = Player(tmp_path, AFTER, mode="ask", language="ja")
    again.leaves = False
    names = [job.name for job in again.session.state.jobs.values()]
    await again.tell("再開")
    ended = await job_ended(again)
    assert ended.status == "completed" and ended.report.summary == "ゲームができ、テストが通りました。"
    assert [question.title.key for question in again.questions[:1]] != ["job.again"], "the open question came whole"
    assert {question.job_name for question in again.questions} <= set(names), "by the same names"
    plan = again.session.state.plan
    assert plan and plan.status == "completed"
    assert requests + len(again.model.requests) == 15, "five steps, a revision, a wish, a repair, a return"

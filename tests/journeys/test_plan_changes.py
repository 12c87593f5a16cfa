"""A plan is opened again and changed: in words, and as a text in an editor."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.plan import plan_from_text, plan_text
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.state.plan import Plan, Step
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, when
from tests.journeys.story import Story, act, decide, respond

RUN_ALL = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
REPORT = when("has ended", report())


def tasks(step: str, path: str, text: str = "x = 1\n") -> Any:
    return when(f"Now its step: {step}", {"tasks": [act("file_ops.write_file", path=path, content=text)]})


class Editing(Story):
    """Changes the text it is given."""

    def change(self, text: str) -> str:
        return text.replace("2. ✓ Score", "2. ○ Score") + "+ Music\n    done when: music.py exists\n    after: 2\n"

    def answer(self, question: Question) -> Answer | None:
        return (
            Answer(choice="edit", text=self.change(question.text))
            if question.kind == "edit"
            else super().answer(question)
        )


async def finished(tmp_path: Path, replies: list[Any]) -> Editing:
    script = [PROPOSE, SNAKE, RUN_ALL, tasks("Core loop", "game.py"), tasks("Score", "score.py"), REPORT, *replies]
    story = Editing(tmp_path, script)
    await story.tell("make a snake game")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    return story


async def test_a_completed_plan_is_opened_again_in_the_editor_and_goes_on(tmp_path: Path) -> None:
    story = await finished(
        tmp_path, [RUN_ALL, tasks("Score", "score.py", "x = 20\n"), tasks("Music", "music.py"), REPORT]
    )
    await story.chat.run_command("/plan edit")
    plan = story.session.state.plan
    assert plan and plan.status == "in_progress"
    assert [(step.name, step.status) for step in plan.steps] == [
        ("Core loop", "completed"), ("Score", "pending"), ("Music", "pending"),
    ]  # fmt: skip
    assert plan.risks == ["none"] and plan.steps[2].depends_on == [plan.steps[1].step_id]
    await story.tell("go on with the plan")
    assert (await job_ended(story, 2)).status == "completed"
    assert (story.folder / "score.py").read_text() == "x = 20\n" and (story.folder / "music.py").exists()


class EditingTwice(Editing):
    """Writes a line that means nothing, and mends it when the text is opened again."""

    def change(self, text: str) -> str:
        if "# ⚠" not in text:
            return f"{text}make it nicer\n"
        assert text.startswith("# ⚠") and "make it nicer" in text.split("\n")[0]
        return text.replace("\nmake it nicer", "\n+ Make it nicer")


async def test_what_was_edited_wrongly_is_not_lost_but_opened_again(tmp_path: Path) -> None:
    story = EditingTwice(tmp_path, [PROPOSE, SNAKE])
    await story.tell("make a snake game")
    await story.chat.run_command("/plan edit")
    plan = story.session.state.plan
    assert plan and [step.name for step in plan.steps] == ["Core loop", "Score", "Make it nicer"]
    assert [question.kind for question in story.questions] == ["edit", "edit"]


async def test_in_words_too_and_the_risks_stay(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"name": "Core loop", "depends_on": [], "was": 1},
        {"name": "Score", "depends_on": [1], "was": 2, "redo": True},
    ]
    revise = decide(act("plan_tool.revise", changes="do the score again"), respond("Open again."), step="PLANNING")
    story = await finished(tmp_path, [revise, {"name": "Snake game", "steps": steps}])
    await story.tell("do the score again")
    plan = story.session.state.plan
    assert plan and plan.status == "in_progress" and plan.risks == ["none"]
    assert [step.status for step in plan.steps] == ["completed", "pending"]
    assert "risk: none" in story.prompt(-1), "the risks are shown"


def some_plan() -> Plan:
    one, two = Step(name="一つ目", description="a.py を書く"), Step(name="two", success="it runs")
    two.depends_on = [one.step_id]
    return Plan(name="計画", goal="目標", risks=["遅い"], steps=[one, two])


@pytest.mark.parametrize("language", ["en", "ja"])
def test_what_is_not_changed_comes_back_as_it_was(language: str) -> None:
    plan = some_plan()
    assert plan_from_text(plan_text(plan, Words(language)), plan) == plan


def test_steps_are_known_by_their_numbers_wherever_they_stand() -> None:
    plan = some_plan()
    changed = plan_from_text("2. two, renamed\n＋ 新しい\n1. 一つ目\n", plan)
    assert [step.name for step in changed.steps] == ["two, renamed", "新しい", "一つ目"]
    assert changed.steps[0].step_id == plan.steps[1].step_id and changed.risks == []


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "what is this\n", "7. unknown\n", "1. a\nafter: 2\n2. b\nafter: 1\n"]
)
def test_what_makes_no_sense_is_told_and_changes_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        plan_from_text(text, some_plan())


def test_what_was_begun_is_not_dropped() -> None:
    plan = some_plan()
    plan.steps[0].status = "completed"
    with pytest.raises(UsageError):
        plan_from_text("2. two\n", plan)

"""Done is what a result shows: the review gets the record, and what nothing shows is called unverified."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.plan_tree import job_summary, plan_tree
from duckflow.events.types import Noticed, PhaseMoved
from duckflow.i18n.words import Words
from duckflow.state.phase import Phase
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="game.py", content="print(1)\n")
REPORT = when("A background job has ended", report())


def check(code: int) -> dict[str, Any]:
    return act("shell.run", command=f"exit {code}")


def noticed(story: Story) -> list[str]:
    return [event.what.key for event in story.all(Noticed)]


async def test_done_after_a_failed_check_is_reviewed_with_the_record_and_shown_as_unverified(tmp_path: Path) -> None:
    claim = decide(WRITE, check(3), respond("All done."))
    story = Story(tmp_path, [claim, decide(respond("Still, all done."), step="REVIEW")])
    assert await story.tell("make a game") == "done"
    told = story.prompt()
    assert "On record since the last change: exit 3: exit code 3; files there: game.py" in told
    assert "a check failed: exit 3: exit code 3" in told
    assert noticed(story)[-2:] == ["review.unverified", "checks.other"]
    assert story.all(PhaseMoved)[-1].why.startswith("unverified: exit 3")


async def test_a_review_that_mends_it_ends_verified(tmp_path: Path) -> None:
    claim = decide(WRITE, check(3), respond("All done."))
    mend = decide(act("file_ops.write_file", path="b.py", content="x = 1\n"), check(0), respond("Now it works."))
    story = Story(tmp_path, [claim, mend])
    assert await story.tell("make a game") == "done"
    assert "review.unverified" not in noticed(story)
    assert story.session.state.phase is Phase.DONE


@pytest.mark.parametrize(("language", "told"), [("en", "not verified; the record says"), ("ja", "結果は未確認です")])
@pytest.mark.parametrize("step", ["EXECUTION", "REVIEW"])
async def test_done_is_an_end_after_one_review(tmp_path: Path, language: str, told: str, step: str) -> None:
    look = decide(act("file_ops.read_file", path="missing.py"), next_step="continue")
    claims = [decide(respond(f"It is finished, {number}."), step=step) for number in range(9)]
    story = Story(tmp_path, [look, claims[0], *[claim | {"step": "EXECUTION"} for claim in claims]], language=language)
    assert await story.tell("make a game") == "done"
    assert len(story.model.requests) <= 3
    shown = Words(language).phrase(story.all(Noticed)[-1].what)
    assert told in shown and "missing.py" in shown


BROKEN_CHANGES = {
    "edit": act("file_ops.edit_file", path="game.py", edits=[{"old": "nowhere", "new": "print(2)"}]),
    "overwrite": act("file_ops.write_file", path="game.py", content="print(2)\n"),
    "move": act("file_ops.move_file", source="gone.py", target="b.py"),
    "delete": act("file_ops.delete_file", path="gone.py"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("step", ["PLANNING", "EXECUTION"])
@pytest.mark.parametrize("change", BROKEN_CHANGES)
async def test_a_change_that_failed_and_is_called_done_is_reviewed_whatever_the_step(
    tmp_path: Path, change: str, step: str, native: bool
) -> None:
    broken = decide(BROKEN_CHANGES[change], next_step="continue")
    claims = [decide(respond(text), step=step) for text in ("It prints 2 now.", "As I said: it prints 2.")]
    story = Story(tmp_path, [broken, *claims], native=native)
    (story.folder / "game.py").write_text("print(1)\n")
    assert await story.tell("let it print 2") == "done"
    assert "you said done, but this failed: file_ops" in story.prompt()
    assert "review.unverified" in noticed(story)


@pytest.mark.parametrize("native", [False, True])
async def test_a_change_that_worked_in_the_end_needs_no_review(tmp_path: Path, native: bool) -> None:
    mend = act("file_ops.edit_file", path="game.py", edits=[{"old": "print(1)", "new": "print(2)"}])
    loops = [decide(action, next_step="continue") for action in (BROKEN_CHANGES["edit"], mend)]
    story = Story(tmp_path, [*loops, decide(respond("It prints 2 now."))], native=native)
    (story.folder / "game.py").write_text("print(1)\n")
    assert await story.tell("let it print 2") == "done"
    assert len(story.model.requests) == 3 and "review.unverified" not in noticed(story)


@pytest.mark.parametrize("native", [False, True])
async def test_a_change_that_the_model_itself_objects_to_needs_no_review(tmp_path: Path, native: bool) -> None:
    unwanted = decide(WRITE, next_step="continue", constraint_check="no: the user wants no new files")
    story = Story(tmp_path, [unwanted, decide(respond("I left it as it is."), step="PLANNING")], native=native)
    assert await story.tell("tidy up, without new files") == "done"
    assert len(story.model.requests) == 2 and "review.unverified" not in noticed(story)


async def test_an_answer_is_not_shown_twice(tmp_path: Path) -> None:
    claim = decide(WRITE, check(3), respond("All done."))
    story = Story(tmp_path, [claim, decide(respond("All done."), step="REVIEW")])
    assert await story.tell("make a game") == "done"
    assert story.said() == ["All done."] and story.ending().why is None
    assert "review.unverified" in noticed(story)


async def test_a_look_that_failed_and_then_worked_needs_no_review(tmp_path: Path) -> None:
    looks = [decide(act("file_ops.read_file", path=path), next_step="continue") for path in ("gone.py", "game.py")]
    story = Story(tmp_path, [*looks, decide(respond("It prints 1."))])
    (story.folder / "game.py").write_text("print(1)\n")
    assert await story.tell("what does it print?") == "done"
    assert len(story.model.requests) == 3 and "review.unverified" not in noticed(story)


async def test_a_command_that_fails_where_nothing_was_changed_is_only_an_answer(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(check(1), respond("It ends with 1: 2 failed, 10 passed."))])
    assert await story.tell("run the tests and tell me what they end with") == "done"
    assert len(story.model.requests) == 1


@pytest.mark.parametrize(
    ("language", "answer", "told"),
    [
        ("en", "Done: it is never negative now, and all tests pass.", "checks: none were run; the last command: cat"),
        ("ja", "できました。テストはすべて通っています。", "チェック: 実行されていません。最後のコマンド: cat"),
    ],
)
async def test_work_that_nobody_has_checked_is_called_so(tmp_path: Path, language: str, answer: str, told: str) -> None:
    """Whatever is said of it: the record decides."""
    look = act("shell.run", command="cat game.py")
    story = Story(tmp_path, [decide(WRITE, look, respond(answer))], language=language)
    assert await story.tell("make a game") == "done"
    assert told in Words(language).phrase(story.all(Noticed)[-1].what)
    assert len(story.model.requests) == 1


async def test_what_was_shown_in_an_earlier_turn_may_be_said_again(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, check(0), respond("All tests pass.")), decide(respond("All tests pass."))])
    await story.tell("make a game")
    assert await story.tell("check it once more") == "done"
    assert len(story.model.requests) == 2 and "review.unverified" not in noticed(story)


async def test_the_report_tells_what_shows_each_step_and_which_nothing_shows(tmp_path: Path) -> None:
    tasks = {"tasks": [act("shell.run", command="true")]}
    first_tasks = {"tasks": [*write_tasks("game.py")["tasks"], check(0)]}
    replies = [run_step(1), first_tasks, when("content of game.py", "print(1)\n"), REPORT]
    story = Story(tmp_path, [PROPOSE, SNAKE, *replies, run_step(2), tasks, REPORT])
    await story.tell("make a snake game")
    await story.tell("yes")
    first = await job_ended(story)
    assert first.report.shown == ("Core loop: there: game.py",), "what its criterion names, not what else went well"
    asked = next(r for r in story.model.requests if "A background job has ended" in r.messages[-1].text)
    assert "On record since the last change: exit 0: exit code 0; files there: game.py" in asked.messages[-1].text
    await story.tell("next")
    second = await job_ended(story, 2)
    assert second.report.unverified == ("Score",), "what another step has run shows nothing of this one"
    assert "unverified: Score" in job_summary("Score", "completed", second.report, Words("en"))
    assert "未確認: Score" in job_summary("Score", "completed", second.report, Words("ja"))


def with_makefile(tmp_path: Path, replies: list[Any], language: str = "en") -> Story:
    """A project whose tests are run with make."""
    story = Story(tmp_path, [PROPOSE, *replies], language=language)
    (story.folder / "Makefile").write_text("test:\n\ttest -f game.py\n")
    return story


@pytest.mark.parametrize(
    ("language", "name", "note"),
    [
        ("en", "Run the tests", "because the project has tests"),
        ("ja", "テストを実行", "/plan drop 3 で外せます"),
    ],
)
async def test_a_draft_without_them_gets_the_tests_as_its_last_step(
    tmp_path: Path, language: str, name: str, note: str
) -> None:
    story = with_makefile(tmp_path, [SNAKE], language)
    await story.tell("make a snake game")
    plan = story.session.state.plan
    assert plan and [step.name for step in plan.steps] == ["Core loop", "Score", name]
    assert plan.steps[-1].added and plan.steps[-1].depends_on == [plan.steps[1].step_id]
    assert note in plan_tree(plan, Words(language))


async def test_the_added_step_runs_the_tests_without_another_call(tmp_path: Path) -> None:
    replies = [
        SNAKE,
        decide(act("task_loop.run"), respond("It runs."), next_step="defer"),
        when("Now its step: Core loop", write_tasks("game.py")),
        when("Now its step: Score", write_tasks("score.py")),
        when("content of game.py", "print(1)\n"),
        when("content of score.py", "print(2)\n"),
        REPORT,
    ]
    story = with_makefile(tmp_path, replies)
    await story.tell("make a snake game")
    await story.tell("yes")
    ended = await job_ended(story)
    assert ended.status == "completed"
    assert ended.report.shown[-1] == "Run the tests: make test: exit code 0"


@pytest.mark.parametrize("success", ["make test ends with exit code 0", "すべてのテストが通る", "the tests pass"])
async def test_a_draft_that_runs_them_is_left_as_it_is(tmp_path: Path, success: str) -> None:
    step: dict[str, Any] = {"name": "Core loop", "description": "game.py", "success": success, "depends_on": []}
    story = with_makefile(tmp_path, [{"name": "Game", "steps": [step], "risks": []}])
    await story.tell("make a snake game")
    assert story.session.state.plan and len(story.session.state.plan.steps) == 1


@pytest.mark.parametrize(("changes", "steps"), [("shorter names", 3), ("no tests please", 2)])
async def test_a_revision_keeps_the_added_step_unless_it_is_about_tests(
    tmp_path: Path, changes: str, steps: int
) -> None:
    revise = decide(act("plan_tool.revise", changes=changes), next_step="continue")
    again = SNAKE | {"steps": [step | {"was": number} for number, step in enumerate(SNAKE["steps"], 1)]}
    story = with_makefile(tmp_path, [SNAKE, revise, again, decide(respond("Like this?"), step="PLANNING")])
    await story.tell("make a snake game")
    await story.tell(f"I would like it otherwise: {changes}")
    assert story.session.state.plan and len(story.session.state.plan.steps) == steps

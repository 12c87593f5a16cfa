"""After a yes with a limit ("yes, but only in src/") commands can change nothing else; to change more, they ask."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, Noticed, PermissionTaken
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.action import ActionResult
from duckflow.state.question import Answer, Question
from tests.commands.test_commands import Desk
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.test_undo_gaps import git

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
OK = decide(respond("ok"), step="PLANNING", next_step="pending_user")
LIMITS = {"en": "yes, but only in src/", "ja": "はい、src/の中だけで"}


def write(*paths: str) -> dict[str, Any]:
    return decide(*(act("file_ops.write_file", path=path, content="x\n") for path in paths), next_step="continue")


def run(command: str, **other: Any) -> dict[str, Any]:
    return decide(act("shell.run", command=command, **other), next_step="continue")


class Limited(Story):
    """A conversation whose first Gate is answered with a limit. From then on nothing is asked that need not be."""

    limited_yes = ""
    then = "full-auto"

    def answer(self, question: Question) -> Answer | None:
        if len(self.questions) > 1:
            return self.answers.pop(0) if self.answers else Answer(choice="no")
        self.chat.answer(question.question_id, self.limited_yes or LIMITS[self.session.state.language])
        self.chat.choices.change_mode(self.then)
        return None

    def results(self) -> list[ActionResult]:
        results = [event.result for event in self.all(ActionFinished)]
        return [result for result in results if result.operation == "shell.run"]

    def asked_for(self) -> list[str]:
        """Returns the reasons of all Gates but the first."""
        return [reason.key for gate in self.gates()[1:] if gate.gate for reason in gate.gate.reasons]


def limited(top: Path, *replies: Any, begin: dict[str, Any] | None = None, **other: Any) -> Limited:
    story = Limited(top, [begin or write("src/a.py", "b.py"), *replies, OK, OK, OK], mode="ask", **other)
    (story.folder / "src").mkdir()
    (story.folder / "docs").mkdir()
    return story


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_command_that_fails_by_the_limit_hears_how_to_ask_and_asks_for_itself_alone(
    tmp_path: Path, language: str
) -> None:
    command = "echo x > src/c.py; echo x > docs/c.md"
    calls = (run(command), run(command, beyond_limit=True), run(f"{command}; echo x > docs/d.md"))
    story = limited(tmp_path, *calls, language=language)
    story.answers = [Answer(choice="yes")]
    await story.tell("go on")
    first, second, third = story.results()
    told = note(language, "limited", limit="src")
    assert told in first.for_model and told in third.for_model and told not in second.for_model
    assert story.asked_for().count("risk.limited") == 1 and len(story.gates()) == 2
    assert "beyond_limit" in str(story.gates()[1].gate)
    assert sorted(path.name for path in story.folder.rglob("*.*")) == ["a.py", "c.md", "c.py"]


async def test_a_no_leaves_the_limit_and_a_yes_for_the_session_lifts_it(tmp_path: Path) -> None:
    more = {"beyond_limit": True}
    story = limited(tmp_path, run("touch d", **more), OK, run("touch e", **more), run("touch f"))
    story.answers = [Answer(choice="no"), Answer(choice="session")]
    await story.tell("go on")
    await story.tell("go on")
    await story.tell("go on")
    assert [(story.folder / name).exists() for name in "def"] == [False, True, True]


async def test_a_yes_for_another_reason_leaves_the_limit(tmp_path: Path) -> None:
    story = limited(tmp_path, run("rm -rf docs src/a.py"))
    story.then, story.answers = "ask", [Answer(choice="yes")]
    await story.tell("go on")
    assert len(story.gates()) == 2 and "risk.limited" not in story.asked_for() and "risk.within" in story.asked_for()
    assert (story.folder / "docs").exists() and not (story.folder / "src/a.py").exists()


@pytest.mark.parametrize("given", [{"background": True}, {"settings": {"sandbox": {"kind": "none"}}}])
async def test_where_nothing_holds_the_limit_every_command_that_changes_something_asks(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    settings = given.pop("settings", {})
    story = limited(tmp_path, run("touch src/c.py", **given), OK, run("ls src"), settings=settings)
    await story.tell("go on")
    await story.tell("go on")
    await story.tell("go on")
    assert not (story.folder / "src/c.py").exists() and story.asked_for().count("risk.limited") == 1


async def test_the_mode_in_which_nothing_is_asked_keeps_the_limit(tmp_path: Path) -> None:
    calls = (run("touch d"), OK, write("e.py"), OK, write("src/f.py"), OK)
    story = Limited(tmp_path, [write("src/a.py", "b.py"), *calls], mode="contained", native=True)
    story.then = "contained"
    story.chat.choices.change_mode("ask")
    for _ in range(5):
        await story.tell("go on")
    assert (
        sorted(path.name for path in story.folder.rglob("*.py")) == ["a.py", "f.py"]
        and not (story.folder / "d").exists()
    )
    assert story.asked_for().count("risk.limited") == 2


async def test_tests_run_as_ever(tmp_path: Path) -> None:
    story = limited(tmp_path, run("python -m pytest -q test_pond.py"))
    (story.folder / "test_pond.py").write_text("def test_it(tmp_path): (tmp_path / 'x').write_text('x')\n")
    await story.tell("go on")
    (result,) = story.results()
    assert result.check and result.check.ok and result.check.tests == 1 and len(story.gates()) == 1
    assert "warning" not in result.for_model and "beyond_limit" not in result.for_model


async def test_tests_that_fail_hear_nothing_of_the_limit(tmp_path: Path) -> None:
    story = limited(tmp_path, run("python -m pytest -q test_pond.py"), run("python -m pytest -q --lf"))
    (story.folder / "test_pond.py").write_text("def test_it(): assert 0\ndef test_other(): pass\n")
    await story.tell("go on")
    first, second = story.results()
    assert "1 failed, 1 passed" in first.for_model and "\n1 failed in" in second.for_model
    for result in (first, second):
        assert result.check and result.check.ok is False and "beyond_limit" not in result.for_model


async def test_a_file_that_the_limit_names_can_be_written_and_not_replaced(tmp_path: Path) -> None:
    calls = (run("echo y > src/a.py"), run("echo z > n; mv n src/a.py"), run("cp src/a.py src/b.py"))
    story = limited(tmp_path, *calls, run("echo z > /tmp/n && mv /tmp/n src/a.py"))
    story.limited_yes = "yes, but only src/a.py"
    await story.tell("go on")
    ok, *held = ["beyond_limit" not in result.for_model for result in story.results()]
    assert ok and not any(held) and len(held) == 3
    assert (story.folder / "src/a.py").read_text() == "y\n" and not (story.folder / "src/b.py").exists()


async def test_a_commit_asks_when_it_is_run_again(tmp_path: Path) -> None:
    commit = "git -c user.name=a -c user.email=a commit -q --allow-empty -m one"
    story = limited(tmp_path, run(commit), run(commit, beyond_limit=True))
    git(story.folder, "init", "-q", "-b", "main")
    story.answers = [Answer(choice="yes")]
    await story.tell("go on")
    assert ["beyond_limit" in result.for_model for result in story.results()] == [True, False]
    assert git(story.folder, "log", "--format=%s") == "one" and story.asked_for().count("risk.limited") == 1


@pytest.mark.parametrize("kind", ["command", "edit"])
async def test_what_the_same_reply_brings_is_held_too(tmp_path: Path, kind: str) -> None:
    """The limit comes with the answer about one call, when a rule has cleared the other one already."""

    class Allowing(Limited):
        def answer(self, question: Question) -> Answer | None:
            if len(self.questions) == 1:
                return Answer(choice="session")
            self.chat.answer(question.question_id, LIMITS["en"])
            return None

    copy = act("shell.run", command="cp -r src made")
    calls = {"command": (copy, copy), "edit": tuple(write(path)["actions"][0] for path in ("docs/a.md", "docs/b.md"))}
    first, second = calls[kind]
    both = decide(write("src/a.py")["actions"][0], second, next_step="continue")
    story = Allowing(tmp_path, [decide(first, next_step="continue"), both, OK, OK], mode="ask", native=True)
    (story.folder / "src").mkdir()
    await story.tell("go on")
    assert (story.folder / "src/a.py").exists() and len(story.gates()) == 2
    made = [name for name in ("made", "docs/a.md", "made/src", "docs/b.md") if (story.folder / name).exists()]
    assert made == ["made" if kind == "command" else "docs/a.md"]


async def test_the_limit_of_the_conversation_holds_for_jobs(tmp_path: Path) -> None:
    command = "echo x > src/c.py; echo x > docs/c.md"
    tasks = {"tasks": [act("shell.run", "make both", command=command)]}
    done = when("A background job has ended", report())
    story = limited(tmp_path, OK, PROPOSE, SNAKE, run_step(1), tasks, done)
    await story.tell("go on")
    await story.tell("make a snake game")
    await story.tell("yes")
    await job_ended(story)
    assert (story.folder / "src/c.py").exists() and not (story.folder / "docs/c.md").exists()


async def test_permissions_shows_the_limit_and_takes_it_away(tmp_path: Path) -> None:
    story = limited(tmp_path, OK, run("touch docs/c.md"))
    await story.tell("go on")
    desk, words = Desk(story), Words("en")
    limit = words("permission.limit", limit="src")
    assert await desk.give("/permissions") == f"1. {limit} ({words('permission.session')})"
    assert await desk.give("/permissions rm 1") == words("permission.lifted", rule=limit)
    assert await desk.give("/permissions") == words("permission.none")
    await story.tell("go on")
    assert (story.folder / "docs/c.md").exists() and len(story.gates()) == 1
    assert [event.what.key for event in story.all(Noticed)].count("gate.limited") == 1
    assert not story.all(PermissionTaken)


@pytest.mark.parametrize("mode", ["auto-edit", "auto", "full-auto"])
async def test_the_limit_outlives_the_program(tmp_path: Path, mode: str) -> None:
    story = limited(tmp_path, OK)
    await story.tell("go on")
    await story.close()
    resumed = Story(tmp_path, [write("docs/z.md"), OK, OK], mode=mode)
    assert await resumed.tell("go on") == "gate"
    gate = resumed.gates()[0].gate
    assert gate and [reason.key for reason in gate.reasons] == ["risk.limited"]
    assert not (resumed.folder / "docs/z.md").exists()


@pytest.mark.parametrize("who", ["conversation", "agent"])
async def test_a_limit_given_to_an_agent_holds_for_everybody(tmp_path: Path, who: str) -> None:
    """The model chooses who makes the next change."""
    hand_over = decide(act("agent.run", task="write src/a.py", kind="work"), next_step="continue")
    elsewhere = decide(act("agent.run", task="write docs/z.md", kind="work"), next_step="continue")
    later = [write("docs/z.md")] if who == "conversation" else [elsewhere, write("docs/z.md"), OK]
    story = Limited(tmp_path, [hand_over, write("src/a.py"), OK, *later, OK, OK], mode="ask", native=True)
    await story.tell("go on")
    assert "risk.limited" in story.asked_for() and not (story.folder / "docs/z.md").exists()

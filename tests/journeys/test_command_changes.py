"""The record names the files that a command changed, whoever started the command."""

import asyncio
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.audit import audit_lines, list_audit
from duckflow.commands.table import Commands
from duckflow.events.types import ActionFinished
from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_hooks import hook, own

CHECK = "import pathlib, sys; sys.exit('bug' in pathlib.Path('a.py').read_text())\n"
WAYS = {
    "sed": "sed -i s/bug/fix/ a.py",
    "perl": "perl -pi -e s/bug/fix/ a.py",
    "python": "python3 -c \"open('a.py', 'w').write('fix')\"",
    "shell": "echo fix > a.py",
    "moved": "echo fix > b.py; mv b.py a.py",
    "ends with an error": "echo fix > a.py; exit 3",
}


def run(command: str) -> dict[str, Any]:
    return act("shell.run", command=command)


def changed(story: Story) -> dict[str, tuple[str, ...]]:
    """The files that each command changed."""
    results = [event.result for event in story.all(ActionFinished)]
    return {str(result.for_user.values.get("command", result.operation)): result.changed for result in results}


def furnish(story: Story) -> None:
    (story.folder / "a.py").write_text("bug\n")
    (story.folder / "check.py").write_text(CHECK)


def audit(story: Story, language: str = "en") -> str:
    return "\n".join(audit_lines(list_audit(story.session.record()), Words(language)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WAYS)
async def test_a_command_s_changes_are_in_its_result(tmp_path: Path, way: str) -> None:
    story = Story(tmp_path, [decide(run(WAYS[way]), run("cat a.py"), respond("Done."))])
    furnish(story)
    await story.tell("mend it")
    assert list(changed(story).values())[:2] == [("a.py",), ()]
    assert story.session.state.files_changed == ["a.py"]
    assert "    changed: a.py" in audit(story)
    assert "    変更: a.py" in audit(story, "ja")


async def test_a_check_before_a_change_by_command_proves_nothing(tmp_path: Path) -> None:
    on = {"next_step": "continue"}
    replies = [decide(run("python3 check.py"), **on), decide(run("sed -i s/fix/bug/ a.py"), **on)]
    story = Story(tmp_path, [*replies, decide(respond("Done."))])
    furnish(story)
    (story.folder / "a.py").write_text("fix\n")
    await story.tell("run the check, then go on")
    assert [proof.command for proof in story.session.state.evidence] == ["sed -i s/fix/bug/ a.py"]


async def test_git_s_own_files_and_folders_are_not_named(tmp_path: Path) -> None:
    command = "git init -q . && mkdir -p deep/er && touch deep/er/new && git add . && rm a.py"
    story = Story(tmp_path, [decide(run(command), respond("Done."))])
    furnish(story)
    story.answers = [Answer(choice="yes")]
    await story.tell("go")
    assert changed(story)[command] == ("a.py", "deep/er/new")


async def test_the_user_s_own_command_is_on_the_record_and_belongs_to_no_turn(tmp_path: Path) -> None:
    write = act("file_ops.write_file", path="mine.txt", content="x\n")
    story = Story(tmp_path, [decide(run("python3 check.py"), write, respond("Done."))])
    furnish(story)
    await story.tell("look")
    await story.chat.run_own("sed -i s/bug/fix/ a.py")
    assert story.all(ActionFinished)[-1].result.changed == ("a.py",)
    assert story.session.state.evidence == []
    assert "changed: a.py" in audit(story)
    outcome = await story.chat.undo.restore(back=True)
    assert outcome.changed == ("mine.txt",) and (story.folder / "a.py").read_text() == "fix\n"


async def test_what_a_hook_changes_is_named_with_the_tool_it_follows(tmp_path: Path) -> None:
    formatter = shlex.join(["sh", "-c", f"echo formatted > {tmp_path}/work/a.txt; touch {tmp_path}/work/log"])
    write = act("file_ops.write_file", path="a.txt", content="raw\n")
    story = Story(tmp_path, [decide(write, respond("Done."))], settings=own(hook("PostToolUse", formatter)))
    await story.tell("write it")
    assert story.all(ActionFinished)[0].result.changed == ("a.txt", "log")
    assert (story.folder / "a.txt").read_text() == "formatted\n"
    await story.chat.undo.restore(back=True)
    assert not list(story.folder.iterdir())


async def test_what_somebody_else_changed_meanwhile_counts_as_undo_counts_it(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(run("touch started; sleep 1"), respond("Done."))])
    (story.folder / "notes.txt").write_text("old\n")

    def person() -> None:
        while not (story.folder / "started").exists():
            time.sleep(0.01)
        (story.folder / "notes.txt").write_text("mine\n")

    await asyncio.gather(story.tell("do it"), asyncio.to_thread(person))
    assert story.all(ActionFinished)[0].result.changed == ("notes.txt", "started")
    outcome = await story.chat.undo.restore(back=True, only_own=True)
    assert outcome.changed == ("started",)


async def test_undo_and_redo_stand_in_the_audit(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(run("echo fix > a.py"), run("python3 check.py"), respond("Done."))])
    furnish(story)
    await story.tell("mend it")

    async def answer(question: Question) -> Answer:
        return Answer(choice="all")

    for line in ("/undo", "/redo"):
        await Commands(Words("en")).run(story.chat, answer, line)
        assert story.session.state.evidence == [], "a check that ran before says nothing of the files as they are now"
    entries = list_audit(story.session.record())
    assert [entry.operation for entry in entries[-2:]] == ["/undo", "/redo"]
    assert "Turn 1 was undone: a.py" in audit(story)
    assert (story.folder / "a.py").read_text() == "fix\n"

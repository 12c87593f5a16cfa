"""A list of actions: each is tried by itself, and what was not run is named with its reason. No work is lost."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionStarted
from duckflow.llm.scripted import Line
from duckflow.state.question import Answer
from tests.journeys.plans import when
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("I looked."), step="PLANNING")


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return act("file_ops.edit_file", path=path, edits=[{"old": old, "new": new}])


def files(story: Story, **texts: str) -> None:
    for name, text in texts.items():
        (story.folder / f"{name}.py").write_text(text, encoding="utf-8")


def text_of(story: Story, name: str) -> str:
    return (story.folder / f"{name}.py").read_text(encoding="utf-8")


async def test_edits_of_other_files_are_made_when_one_fails_and_the_rest_is_named(tmp_path: Path) -> None:
    work = [edit("a.py", "nowhere = 1", "x = 1"), edit("b.py", "b = 1", "b = 2")]
    rest = [act("shell.run", command="touch ran"), act("file_ops.delete_file", path="c.py"), respond("All done!")]
    look = act("file_ops.read_file", path="c.py")
    story = Story(tmp_path, [decide(*work, *rest[:2], look, rest[2]), END])
    files(story, a="a = 1\n", b="b = 1\n", c="c = 1\n")
    await story.tell("Change a and b, then check.")
    assert text_of(story, "a") == "a = 1\n" and text_of(story, "b") == "b = 2\n"
    assert not (story.folder / "ran").exists() and (story.folder / "c.py").exists()
    assert story.said() == ["I looked."], "what it meant to say when all is done was not said"
    prompt = story.prompt()
    assert "does not occur in the file" in prompt and "Changed b.py" in prompt and "c = 1" in prompt
    assert prompt.count("Not run") == 3, "the command, the deletion, and the answer"
    assert [one.action.operation.rpartition(".")[2] for one in story.all(ActionStarted)] == [
        "edit_file", "edit_file", "read_file", "response",
    ]  # fmt: skip


async def test_a_text_that_was_written_is_not_asked_for_again(tmp_path: Path) -> None:
    """The texts come in replies of their own; the first does not fit."""
    actions = [act("file_ops.edit_file", path=f"{name}.py") for name in "abc"]
    script: list[Line] = [decide(*actions, next_step="continue")]
    for name in "abc":
        old = "nowhere" if name == "a" else name
        script.append(when(f"{name}.py", f"<<<<<<< SEARCH\n{old} = 1\n=======\n{name} = 2\n>>>>>>> REPLACE"))
    story = Story(tmp_path, [*script, END])
    files(story, a="a = 1\n", b="b = 1\n", c="c = 1\n")
    await story.tell("Change a, b and c.")
    assert [text_of(story, name) for name in "abc"] == ["a = 1\n", "b = 2\n", "c = 2\n"]
    assert len(story.model.requests) == 6, "five, and a look at the edit that did not fit"


async def test_an_edit_may_build_on_the_file_that_was_just_written(tmp_path: Path) -> None:
    write = act("file_ops.write_file", path="new.py", content="n = 1\n")
    story = Story(tmp_path, [decide(write, edit("new.py", "n = 1", "n = 2"), edit("b.py", "b = 1", "b = 2")), END])
    files(story, b="b = 1\n")
    await story.tell("Write it.")
    assert text_of(story, "new") == "n = 2\n" and text_of(story, "b") == "b = 2\n"


async def test_the_edits_that_fit_share_one_gate(tmp_path: Path) -> None:
    work = [edit("a.py", "a = 1", "a = 2"), edit("b.py", "nowhere", "b = 2"), edit("c.py", "c = 1", "c = 2")]
    story = Story(tmp_path, [decide(*work, next_step="continue"), END], mode="ask")
    story.answers = [Answer(choice="yes")]
    files(story, a="a = 1\n", b="b = 1\n", c="c = 1\n")
    await story.tell("Change them.")
    assert len(story.questions) == 1 and story.questions[0].gate
    assert [impact.path for impact in story.questions[0].gate.impacts] == ["a.py", "c.py"]
    assert [text_of(story, name) for name in "abc"] == ["a = 2\n", "b = 1\n", "c = 2\n"]


async def test_after_a_move_that_failed_nothing_is_changed(tmp_path: Path) -> None:
    work = [
        act("file_ops.move_file", source="no.py", target="b.py"),
        edit("a.py", "a = 1", "a = 2"),
        act("file_ops.read_file", path="a.py"),
    ]
    story = Story(tmp_path, [decide(*work, next_step="continue"), END])
    files(story, a="a = 1\n")
    await story.tell("Go.")
    assert text_of(story, "a") == "a = 1\n"
    assert "Not run: file_ops.move_file" in story.prompt() and "a.py (lines 1-1 of 1)" in story.prompt()


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_what_follows_a_no_or_a_question_is_named(tmp_path: Path, language: str) -> None:
    refused = decide(edit("a.py", "a = 1", "a = 2"), act("file_ops.read_file", path="a.py"), next_step="continue")
    asking = decide(respond("Shall I go on?"), edit("a.py", "a = 1", "a = 3"), next_step="continue")
    story = Story(tmp_path, [refused, asking, END], mode="ask", language=language)
    story.answers = [Answer(choice="no", text="not that one")]
    files(story, a="a = 1\n")
    await story.tell("Go.")
    await story.tell("Well?")
    told = "Not run" if language == "en" else "実行していません"
    assert text_of(story, "a") == "a = 1\n" and story.prompt().count(told) == 2

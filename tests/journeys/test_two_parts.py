"""A small model finishes what was asked: every part of a request is done, or named as not done."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, ActionStarted, Noticed
from duckflow.llm.scripted import Line, Scripted
from duckflow.state.data import say
from duckflow.state.question import NOBODY, Answer
from tests.journeys.story import Story, act, calls_into, decide, respond
from tests.journeys.test_small_model import operations

FIZZ = "Write a small Python script fizz.py that prints FizzBuzz from 1 to 20, then run it"
WRITE = decide(act("file_ops.write_file", path="fizz.py"), next_step="continue")
CODE = "```python\nfor number in range(1, 21):\n    print('Fizz' if number % 3 == 0 else number)\n```"
LIST = decide(act("file_ops.list_files", path="."), next_step="continue", step="PLANNING")


def small(top: Path, replies: list[Line], files: dict[str, str] | None = None, **settings: Any) -> Story:
    story = Story(top, [], **settings)
    story.model = Scripted(replies, name="local:tiny-1b")
    for name, text in (files or {}).items():
        (story.folder / name).parent.mkdir(exist_ok=True)
        (story.folder / name).write_text(text)
    return story


def commands(story: Story) -> list[str]:
    started = [event.action for event in story.all(ActionStarted)]
    return [action.args["command"] for action in started if action.operation == "shell.run"]


def left(story: Story) -> list[tuple[str, str]]:
    phrases = [noticed.what for noticed in story.all(Noticed)]
    return [(phrase.key, str(phrase.values["what"])) for phrase in phrases if phrase.key.startswith("left.")]


def offered(story: Story, number: int) -> set[str]:
    schema = story.model.requests[number].schema
    assert schema
    return operations(schema)


@pytest.mark.parametrize(
    "request_",
    [
        FIZZ,
        "1 から 20 までの FizzBuzz を表示する fizz.py を書いて、実行してください。",
        "fizz.py を作って、そのあと動かして",
        "Please create fizz.py (it prints FizzBuzz) and then make sure it works.",
        "1. Write fizz.py\n2. Run it",
    ],
)
async def test_what_is_written_is_run_without_asking_the_model(tmp_path: Path, request_: str) -> None:
    story = small(tmp_path, [WRITE, CODE])
    assert await story.tell(request_) == "done"
    assert commands(story) == ["python3 fizz.py"]
    assert len(story.model.requests) == 2
    assert story.ending().why == say("turn.written_ran", files="fizz.py", command="python3 fizz.py", code=0)
    assert left(story) == []


async def test_a_file_without_a_name_is_written_and_run_too(tmp_path: Path) -> None:
    story = small(tmp_path, [LIST, WRITE, CODE])
    assert await story.tell("Write a Python script that prints FizzBuzz, then run it") == "done"
    assert commands(story) == ["python3 fizz.py"]


@pytest.mark.parametrize(("answer", "runs"), [("yes", True), ("no", False)])
async def test_a_run_is_asked_for_at_the_gate(tmp_path: Path, answer: str, runs: bool) -> None:
    story = small(tmp_path, [WRITE, CODE], mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice=answer)]
    assert await story.tell(FIZZ) == ("done" if runs else "gate")
    gates = [question.gate for question in story.gates()]
    assert [gate and gate.commands for gate in gates] == [(), ("$ python3 fizz.py",)]
    assert left(story) == ([] if runs else [("left.run", "python3 fizz.py")])
    if not runs:
        assert story.ending().why == say("turn.written", files="fizz.py")


async def test_where_nobody_can_allow_it_the_end_names_the_run(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, CODE], mode="auto-edit")
    story.answers = [Answer(choice=NOBODY)]
    assert await story.tell(FIZZ) == "done"
    assert left(story) == [("left.run", "python3 fizz.py")]


async def test_a_program_that_fails_when_it_is_run_is_mended_and_run_again(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, "```python\nprint(undefined)\n```", CODE])
    assert await story.tell(FIZZ) == "done"
    assert commands(story) == ["python3 fizz.py"] * 2
    assert "NameError" in story.prompt(2)
    assert story.ending().why == say("turn.written_ran", files="fizz.py", command="python3 fizz.py", code=0)


@pytest.mark.parametrize(
    "request_",
    ["Change greet.py to say Good evening, and run the tests.", "greet.py を直して、テストを実行してください。"],
)
async def test_the_projects_own_tests_are_run_after_a_change(tmp_path: Path, request_: str) -> None:
    write = decide(act("file_ops.write_file", path="greet.py"))
    test = "from greet import greet\n\n\ndef test_greet():\n    assert greet() == 'Good evening'\n"
    files = {"greet.py": "def greet():\n    return 'Hello'\n", "test_greet.py": test}
    story = small(tmp_path, [write, "```python\ndef greet():\n    return 'Good evening'\n```"], files)
    assert await story.tell(request_) == "done"
    assert commands(story) == ["python -m pytest -q"]


async def test_a_run_that_nobody_knows_how_to_do_is_named(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, CODE])
    assert await story.tell("Write fizz.py and run the tests.") == "done"
    assert commands(story) == []
    assert left(story) == [("left.run", "run the tests")]


async def test_a_run_that_comes_first_is_done_before_the_model_is_asked(tmp_path: Path) -> None:
    story = small(tmp_path, ["It prints 42."], {"main.py": "print(42)\n"})
    assert await story.tell("Run main.py and tell me what it prints.") == "done"
    assert commands(story) == ["python3 main.py"]
    assert "42" in story.prompt(0)
    assert story.said() == ["It prints 42."]


async def test_a_deed_a_look_and_an_answer_come_in_their_order(tmp_path: Path) -> None:
    delete = decide(act("file_ops.delete_file", path="old.txt"), next_step="continue")
    story = small(tmp_path, [delete, LIST, "keep.txt is left."], {"old.txt": "1\n", "keep.txt": "2\n"})
    assert await story.tell("old.txt を削除して、残っているファイルを教えてください。") == "done"
    assert offered(story, 0) == {"file_ops.delete_file", "file_ops.move_file"}
    assert "file_ops.list_files" in offered(story, 1) and "response" not in offered(story, 1)
    assert story.model.requests[2].schema is None and "keep.txt" in story.prompt(2)
    assert story.said() == ["keep.txt is left."]


async def test_a_file_that_is_called_plan_is_no_plan(tmp_path: Path) -> None:
    move = decide(act("file_ops.move_file", source="plan.txt", target="old_plan.txt"), next_step="continue")
    story = small(tmp_path, [move], {"plan.txt": "1\n"})
    assert await story.tell("Move plan.txt to old_plan.txt.") == "done"
    assert offered(story, 0) == {"file_ops.delete_file", "file_ops.move_file"}


async def test_a_deed_alone_is_told_in_the_users_words(tmp_path: Path) -> None:
    move = decide(act("file_ops.move_file", source="a.txt", target="b.txt"), next_step="continue")
    story = small(tmp_path, [move], {"a.txt": "1\n"})
    assert await story.tell("Rename a.txt to b.txt.") == "done"
    assert story.ending().why == say("turn.parts_done", parts="Rename a.txt to b.txt")


async def test_a_run_that_is_refused_first_leaves_the_rest_undone_and_says_so(tmp_path: Path) -> None:
    story = small(tmp_path, [], {"main.py": "import calc\n", "calc.py": "x = 1\n"}, mode="ask")
    story.answers = [Answer(choice="no")]
    assert await story.tell("Run main.py and fix the error in calc.py.") == "gate"
    assert story.ending().why is None
    assert left(story) == [("left.run", "python3 main.py"), ("left.write", "calc.py")]


async def test_the_model_sees_a_changed_file_before_it_speaks_about_it(tmp_path: Path) -> None:
    move = decide(act("file_ops.move_file", source="notes.txt", target="ideas.txt"), next_step="continue")
    story = small(tmp_path, [move, "Paint it."], {"notes.txt": "paint the lighthouse\n"})
    assert await story.tell("Rename notes.txt to ideas.txt and show me what is in it.") == "done"
    assert "paint the lighthouse" in story.prompt(1)
    assert story.said() == ["Paint it."]


async def test_an_answer_is_asked_for_from_the_file_as_it_is_now(tmp_path: Path) -> None:
    write = decide(act("file_ops.write_file", path="hello.py"), next_step="continue")
    replies: list[Line] = [write, "```python\nprint('Good evening')\n```", "It prints Good evening."]
    story = small(tmp_path, replies, {"hello.py": "print('Hello')\n"})
    assert await story.tell("Change hello.py to say Good evening, then show me the output.") == "done"
    assert commands(story) == ["python3 hello.py"]
    assert "Good evening" in story.prompt(2) and "'Hello'" not in story.prompt(2)


async def test_a_question_that_is_only_repeated_is_not_answered(tmp_path: Path) -> None:
    replies: list[Line] = [LIST, "List the files; tell me how many there are.", decide(respond("Two."))]
    story = small(tmp_path, replies, {"a.txt": "1\n", "b.txt": "2\n"})
    assert await story.tell("List the files and tell me how many there are.") == "done"
    assert story.said() == ["Two."]
    assert offered(story, 2) == {"response"}


async def test_a_model_that_says_done_too_early_is_reminded_and_then_the_part_is_named(tmp_path: Path) -> None:
    done = decide(step="PLANNING")
    story = small(tmp_path, [LIST, "", *[done] * 8])
    await story.tell("List the Python files in this folder and tell me how many there are.")
    assert "how many there are" in story.prompt(2)
    assert [key for key, _ in left(story)] == ["left.answer"] * 2


async def test_a_turn_that_fails_or_is_stopped_names_what_is_left_too(tmp_path: Path) -> None:
    request_ = "Rename a.txt to b.txt and show me what is in it."
    owed = [("left.deed", "Rename a.txt to b.txt"), ("left.answer", "show me what is in it")]
    for name, replies in (("garbage", ['{"actions": 1}'] * 9), ("stuck", [LIST] * 40)):
        top = tmp_path / name
        top.mkdir()
        story = small(top, list[Line](replies), {"a.txt": "1\n"})
        assert await story.tell(request_) in ("failed", "pacemaker")
        assert left(story) == owed


async def test_in_a_mode_that_only_reads_the_run_is_named(tmp_path: Path) -> None:
    story = small(tmp_path, ["It prints 42."], {"main.py": "print(42)\n"}, mode="plan")
    await story.tell("Run main.py and tell me what it prints.")
    assert left(story) == [("left.run", "python3 main.py"), ("left.answer", "tell me what it prints")]


async def test_files_are_counted_for_the_model(tmp_path: Path) -> None:
    files = {"data/a.py": "1\n", "data/b.py": "2\n", "data/notes.md": "3\n"}
    look = decide(act("file_ops.list_files", path="data"), next_step="continue", step="PLANNING")
    story = small(tmp_path, [look, "There are 2."], files)
    assert await story.tell("List the files in data and tell me how many are in Python.") == "done"
    assert "Python files: 2 (a.py, b.py)\n.md files: 1 (notes.md)\nall files in data: 3" in story.prompt(1)


async def test_what_is_asked_for_besides_the_known_parts_stays_with_the_model(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, CODE, decide(respond("I cannot commit here."))])
    assert await story.tell("Write fizz.py, run it and commit it.") == "done"
    assert commands(story) == ["python3 fizz.py"]
    assert story.said() == ["I cannot commit here."]
    assert "file_ops.read_file" in offered(story, 2)


async def test_an_order_that_a_text_only_tells_of_is_none(tmp_path: Path) -> None:
    for request_ in (
        "Write fizz.py but don't run it.",
        "Write fizz.py. When I run it, it should print FizzBuzz.",
        'Write fizz.py that prints "then run it".',
        "実行すると FizzBuzz を表示する fizz.py を書いてください。実行しないでください。",
    ):
        top = tmp_path / str(len(request_))
        top.mkdir()
        story = small(top, [WRITE, CODE, decide(respond("Written."))], mode="auto-edit")
        assert await story.tell(request_) == "done"
        assert commands(story) == [] and left(story) == [], request_


async def test_a_strong_model_is_neither_led_nor_run_for(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("It is not needed."))], native=True)
    with calls_into("duckflow/agent/led/") as called:
        assert await story.tell(FIZZ) == "done"
    assert called == [] and not story.all(ActionFinished)[1:]
    assert commands(story) == [] and left(story) == []

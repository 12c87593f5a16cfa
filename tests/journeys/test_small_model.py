"""A small model is led: it reads what the request names, and is held to what it has to write."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.led.tryout import SCRIPT_TOKENS
from duckflow.events.types import ActionFinished, Noticed
from duckflow.llm.scripted import Line, Scripted, ScriptedReply
from duckflow.state.data import say
from tests.journeys.story import Story, act, calls_into, decide, respond

REQUEST = "Read NOTES.md and implement the solution in tally.py. Keep the names."
STUB = "def tally(words):\n    pass\n"
GOOD = "```python\ndef tally(words):\n    return len(words)\n```"
WRITE = decide(act("file_ops.write_file", path="tally.py"))


def small(top: Path, replies: list[Line], **settings: Any) -> Story:
    story = Story(top, [], **settings)
    story.model = Scripted(replies, name="local:tiny-1b")
    (story.folder / "NOTES.md").write_text("Count the words.\n")
    (story.folder / "tally.py").write_text(STUB)
    return story


def operations(schema: dict[str, Any]) -> set[str]:
    items = schema["properties"]["actions"]["items"]
    shapes = items.get("anyOf", [items])
    return {name for shape in shapes for name in shape["properties"]["operation"]["enum"]}


async def test_it_is_given_what_the_request_names_and_writes_the_file(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, GOOD])
    assert await story.tell(REQUEST) == "done"
    assert "return len(words)" in (story.folder / "tally.py").read_text()
    first, body, *_ = story.model.requests
    assert "Count the words." in first.messages[-1].text and "def tally" in first.messages[-1].text
    assert first.schema and "response" not in operations(first.schema)
    assert [message.role for message in body.messages] == ["system", "user"], "nothing but who it is, and the task"
    assert "Count the words." in body.messages[1].text and STUB.strip() in body.messages[1].text


async def test_it_cannot_look_around_for_ever(tmp_path: Path) -> None:
    look = decide(act("file_ops.list_files"), next_step="continue", step="PLANNING")
    story = small(tmp_path, [look, look, WRITE, GOOD])
    assert await story.tell(REQUEST) == "done"
    third = story.model.requests[2].schema
    assert third and operations(third) == {"file_ops.write_file"}
    assert third["properties"]["step"]["enum"] == ["EXECUTION"]


async def test_a_text_with_a_plain_mistake_is_sent_back_once(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, "```python\ndef tally(words:\n```", GOOD])
    assert await story.tell(REQUEST) == "done"
    assert "return len(words)" in (story.folder / "tally.py").read_text()
    assert "SyntaxError" in story.prompt(2)
    assert any(noticed.what.key == "body.mended" for noticed in story.all(Noticed))


async def test_after_two_failures_it_may_say_so(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, "", "", "", WRITE, "", "", "", decide(respond("I could not write it."))])
    await story.tell(REQUEST)
    assert [finished.result.ok for finished in story.all(ActionFinished)][-3:] == [False, False, True]


async def test_a_large_model_meets_nothing_of_this(tmp_path: Path) -> None:
    """What it did is what the record shows; nobody reads its request for names of files."""
    story = Story(tmp_path, [decide(respond("It is not needed."))], native=True)
    (story.folder / "app.py").write_text("import lib\n")
    with calls_into("duckflow/agent/led/") as called:
        assert await story.tell("Create hello.py that prints hello, like app.py. Plan it, with a summary.") == "done"
    assert len(story.model.requests) == 1
    assert called == []


async def test_a_secret_is_not_shown_in_passing(tmp_path: Path) -> None:
    write = decide(act("file_ops.write_file", path=".env"))
    story = small(tmp_path, [write, "TOKEN=2\n", write, "TOKEN=2\n", decide(respond("I must not."))])
    (story.folder / ".env").write_text("TOKEN=abcdef0123456789\n")
    await story.tell("change it")
    assert all("abcdef0123456789" not in message.text for one in story.model.requests for message in one.messages)


SCRIPT = "```python\nfrom tally import tally\nprint(tally(['a']))\n```"
WRONG = "```python\ndef tally(words):\n    return words.length\n```"
AS_WRONG = "```python\ndef tally(words):\n    return words.size\n```"


async def test_what_fails_when_it_is_tried_is_mended_at_once(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, WRONG, SCRIPT, GOOD])
    assert await story.tell(REQUEST) == "done"
    assert "return len(words)" in (story.folder / "tally.py").read_text()
    mending = story.model.requests[3].messages[-1].text
    assert "line 2: return words.length: AttributeError: 'list' object has no attribute 'length'" in mending
    runs = [one.result for one in story.all(ActionFinished) if one.result.operation == "shell.run"]
    assert [run.for_model[:11] for run in runs] == ["exit code 1", "exit code 0"], "the same script is run again"
    assert story.ending().why == say("turn.written_tried", files="tally.py")


async def test_what_fails_as_soon_as_it_is_loaded_is_mended_too(tmp_path: Path) -> None:
    wrong = "```python\ndef tally(words):\n    return words.count\n\n\nprint(tally(3))\n```"
    story = small(tmp_path, [WRITE, wrong, SCRIPT, GOOD])
    assert await story.tell(REQUEST) == "done"
    assert "return len(words)" in (story.folder / "tally.py").read_text()
    mended = story.model.requests[-1].messages[-1].text
    assert "AttributeError: 'int' object has no attribute 'count'" in mended


@pytest.mark.slow
async def test_what_cannot_be_mended_is_called_unverified(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, WRONG, SCRIPT, AS_WRONG, WRONG])
    assert await story.tell(REQUEST) == "done"
    unverified = next(noticed.what for noticed in story.all(Noticed) if noticed.what.key == "review.unverified")
    assert "line 2: return words.length: AttributeError" in str(unverified.values["check"])
    assert story.ending().why == say("turn.written", files="tally.py")


async def test_when_all_is_written_it_is_not_asked_again(tmp_path: Path) -> None:
    on_and_on = decide(act("file_ops.write_file", path="tally.py"), next_step="continue")
    story = small(tmp_path, [on_and_on, GOOD, SCRIPT])
    assert await story.tell(REQUEST) == "done"
    assert len(story.model.requests) == 3
    assert story.ending().why == say("turn.written_tried", files="tally.py")


async def test_where_more_is_asked_for_it_goes_on(tmp_path: Path) -> None:
    on_and_on = decide(act("file_ops.write_file", path="tally.py"), next_step="continue")
    story = small(tmp_path, [on_and_on, GOOD, SCRIPT, "It counts words."])
    assert await story.tell(f"{REQUEST} Then explain it.") == "done"
    assert story.said() == ["It counts words."]


async def test_an_error_raised_on_purpose_is_none(tmp_path: Path) -> None:
    strict = "```python\ndef tally(words):\n    raise ValueError('no words')\n```"
    story = small(tmp_path, [WRITE, strict, SCRIPT])
    assert await story.tell(REQUEST) == "done"
    assert "no words" in (story.folder / "tally.py").read_text()


async def test_a_mistake_of_the_trying_script_is_not_the_codes(tmp_path: Path) -> None:
    script = "```python\nfrom tally import tally\nprint(tally())\n```"
    story = small(tmp_path, [WRITE, GOOD, script])
    assert await story.tell(REQUEST) == "done"


async def test_nothing_is_tried_where_a_command_would_ask(tmp_path: Path) -> None:
    story = small(tmp_path, [WRITE, GOOD], mode="auto-edit")
    assert await story.tell(REQUEST) == "done"
    assert not any(noticed.what.key.startswith("sandbox.") for noticed in story.all(Noticed)), "and nothing said of it"
    assert not any(finished.result.operation == "shell.run" for finished in story.all(ActionFinished))


async def test_code_that_goes_round_is_cut_off(tmp_path: Path) -> None:
    round_and_round = ScriptedReply(text="```python\n" + "x = f(x)\n" * 5000, chunk=40)
    story = small(tmp_path, [WRITE, round_and_round, WRITE, GOOD])
    assert await story.tell(REQUEST) == "done"
    assert "repeated itself over and over" in story.prompt(2)
    assert "return len(words)" in (story.folder / "tally.py").read_text()


async def test_a_trying_script_without_an_end_is_left_alone(tmp_path: Path) -> None:
    endless = ScriptedReply(text="```python\nprint(", finish="length")
    story = small(tmp_path, [WRITE, GOOD, endless])
    assert await story.tell(REQUEST) == "done"
    assert story.model.requests[-1].max_tokens == SCRIPT_TOKENS
    assert not any(finished.result.operation == "shell.run" for finished in story.all(ActionFinished))


async def test_what_only_has_to_be_read_is_answered_at_once(tmp_path: Path) -> None:
    story = small(tmp_path, ["It wants the words counted."])
    assert await story.tell("Show me what is in NOTES.md.") == "done"
    assert story.said() == ["It wants the words counted."]
    (only,) = story.model.requests
    assert "Count the words." in only.messages[-1].text and only.schema is None, "in plain text, from what was read"


async def test_where_it_is_not_clear_what_is_asked_the_named_files_are_given(tmp_path: Path) -> None:
    story = small(tmp_path, [decide(respond("Count the words."), step="PLANNING")])
    assert await story.tell("Is NOTES.md long?") == "done"
    first = story.model.requests[0]
    assert "NOTES.md has been read: answer with response" in first.messages[-1].text
    assert first.schema and first.schema["properties"]["actions"]["maxItems"] == 1, "one thing at a time"


async def test_a_question_is_done_with_its_answer(tmp_path: Path) -> None:
    on_and_on = decide(respond("It counts words."), step="PLANNING", next_step="continue")
    story = small(tmp_path, [on_and_on, on_and_on])
    assert await story.tell("What is this project?") == "done"
    assert story.said() == ["It counts words."]


async def test_looking_for_what_is_not_there_yet_does_not_let_it_off(tmp_path: Path) -> None:
    look = decide(act("file_ops.read_file", path="hello.py"), next_step="continue", step="PLANNING")
    write = decide(act("file_ops.write_file", path="hello.py"), next_step="continue")
    story = small(tmp_path, [look, look, write, "print('hello')\n", "```python\nimport hello\n```"])
    assert await story.tell("Create hello.py that prints hello.") == "done"
    third = story.model.requests[2].schema
    assert third and operations(third) == {"file_ops.write_file"}
    assert (story.folder / "hello.py").exists()


@pytest.mark.parametrize(
    ("says", "only_answers"),
    [
        ("こんにちは", True),
        ("おはようございます！よろしくお願いします。", True),
        ("Hello there!", True),
        ("thank you very much", True),
        ("こんにちは。ファイルを見せて", False),
        ("hi, list the files", False),
    ],
)
async def test_to_a_greeting_there_is_nothing_but_an_answer(tmp_path: Path, says: str, only_answers: bool) -> None:
    reply = decide(respond("Hello."), step="PLANNING", next_step="continue" if only_answers else "done")
    look = decide(act("file_ops.list_files", path="."), next_step="continue", step="PLANNING")
    story = small(tmp_path, [reply] if only_answers else [look, reply])
    assert await story.tell(says) == "done"
    schema = story.model.requests[0].schema
    assert schema and (operations(schema) == {"response"}) == only_answers
    assert not only_answers or len(story.model.requests) == 1

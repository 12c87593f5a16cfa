"""The same stories with a model that calls tools and with one that writes Decisions, and from one to the other."""

import json
from pathlib import Path

import pytest

from duckflow.events.types import Noticed, PhaseMoved
from duckflow.state.phase import Phase
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="one\ntwo\n")
EDIT = act("file_ops.edit_file", path="a.txt", edits=[{"old": "two", "new": "three"}])
both = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


@both
async def test_written_changed_and_checked_in_one_reply(tmp_path: Path, native: bool) -> None:
    check = act("shell.run", command="grep three a.txt")
    replies = [decide(WRITE, EDIT, check, next_step="continue"), decide(respond("It says three."))]
    story = Story(tmp_path, replies, native=native)
    assert await story.tell("write it") == "done"
    assert (story.folder / "a.txt").read_text() == "one\nthree\n"
    assert len(story.model.requests) == 2 and story.said() == ["It says three."]
    assert story.session.state.phase is Phase.DONE
    assert [move.target for move in story.all(PhaseMoved)] == [Phase.EXECUTION, Phase.REVIEW, Phase.DONE]
    request = story.model.requests[1]
    assert "three" in "".join(one.whole for one in request.messages), "what it wrote stays in view"
    assert [one.role for one in request.messages].count("tool") == (4 if native else 0)


@both
async def test_the_gate_shows_it_and_takes_the_users_own_text(tmp_path: Path, native: bool) -> None:
    story = Story(tmp_path, [decide(EDIT, next_step="continue"), decide(respond("Done."))], mode="ask", native=native)
    (story.folder / "a.txt").write_text("one\ntwo\n")
    story.answers = [Answer(choice="edit", text="<<<<<<< SEARCH\ntwo\n=======\nfour\n>>>>>>> REPLACE\n")]
    assert await story.tell("change it") == "done"
    gate = story.questions[0].gate
    assert gate and "+three" in gate.diff and gate.intent == ("needed",)
    assert gate.editable == "<<<<<<< SEARCH\ntwo\n=======\nthree\n>>>>>>> REPLACE"
    assert (story.folder / "a.txt").read_text() == "one\nfour\n"


@both
async def test_a_no_changes_nothing_and_its_reason_is_heard(tmp_path: Path, native: bool) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("Then not."), step="PLANNING")]
    story = Story(tmp_path, replies, mode="ask", native=native)
    story.answers = [Answer(choice="no", text="no new files, please")]
    assert await story.tell("write it") == "done"
    assert list(story.folder.iterdir()) == [] and "no new files, please" in story.prompt()


@both
async def test_a_check_that_says_no_and_a_question_hold_everything_back(tmp_path: Path, native: bool) -> None:
    replies = [
        decide(WRITE, constraint_check="no: the user forbade it", next_step="continue"),
        decide(respond("Shall I write it all the same?"), WRITE, next_step="continue"),
    ]
    story = Story(tmp_path, replies, native=native)
    assert await story.tell("write it") == "pending_user"
    assert list(story.folder.iterdir()) == [] and "the user forbade it" in story.prompt()
    assert story.said() == ["Shall I write it all the same?"]


@both
async def test_done_after_a_failed_check_is_called_unverified(tmp_path: Path, native: bool) -> None:
    replies = [decide(WRITE, act("shell.run", command="exit 3"), next_step="continue"), *[decide(respond("Done!"))] * 2]
    story = Story(tmp_path, replies, native=native)
    assert await story.tell("write it") == "done"
    assert [event.what.key for event in story.all(Noticed)][-1] == "review.unverified"


@both
async def test_what_the_user_says_after_a_word_about_the_step_is_heard(tmp_path: Path, native: bool) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("Written.")), decide(respond("Blue it is."))]
    story = Story(tmp_path, replies, native=native)
    await story.tell("write it")
    await story.tell("make it blue")
    assert "make it blue" in story.prompt()


async def test_without_a_word_about_the_step_a_change_is_execution(tmp_path: Path) -> None:
    bare = {"rationale": "I write.", "actions": [WRITE]}
    story = Story(tmp_path, [bare, decide(respond("Done."))], native=True)
    assert await story.tell("write it") == "done"
    assert (story.folder / "a.txt").exists()
    decided = story.session.state
    assert decided.phase is Phase.DONE


@pytest.mark.parametrize("first", [False, True], ids=["json first", "native first"])
async def test_a_conversation_goes_on_in_the_other_form(tmp_path: Path, first: bool) -> None:
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), decide(respond("Written."))], native=first)
    assert await story.tell("write it") == "done"
    story.session.close()
    other = Story(tmp_path, [decide(respond("I wrote one and two."))], native=not first)
    assert await other.tell("what did you write?") == "done"
    messages = other.model.requests[0].messages
    if first:
        assert not any(one.calls or one.role == "tool" for one in messages)
        said = [json.loads(one.text) for one in messages if one.role == "assistant"]
        assert said[0]["actions"][0]["args"]["content"] == "one\ntwo\n"
    else:
        [call] = [call for one in messages for call in one.calls]
        [result] = [one for one in messages if one.role == "tool"]
        assert (call.name, result.answers) == ("file_ops_write_file", call.call_id)
        assert [one.text for one in messages if one.role == "assistant"][-1] == "Written."


async def test_a_small_model_is_not_shown_texts_inside_json(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), decide(respond("Written."))], native=True)
    assert await story.tell("write it") == "done"
    story.session.close()
    compact = {"prompts": {"profile": "compact"}}
    small = Story(tmp_path, [decide(respond("Hello."), step="PLANNING")], settings=compact)
    assert await small.tell("hello") == "done"
    said = next(one.text for one in small.model.requests[0].messages if one.role == "assistant")
    assert json.loads(said)["actions"][0]["args"] == {"path": "a.txt"}


@pytest.mark.parametrize("native", [True, False])
async def test_every_message_of_the_user_reaches_the_model(tmp_path: Path, native: bool) -> None:
    """Also after a reply that told of its step by a call of its own."""
    look = decide(act("file_ops.list_files"), next_step="continue")
    story = Story(tmp_path, [look, *[decide(respond(text)) for text in ("one", "two", "three")]], native=native)
    for text in ("the first wish", "the second wish", "the third wish"):
        await story.tell(text)
    sent = "\n".join(message.whole for message in story.model.requests[-1].messages)
    assert [sent.count(f"the {number} wish") for number in ("first", "second", "third")] == [1, 1, 1]

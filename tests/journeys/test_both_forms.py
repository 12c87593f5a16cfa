"""The same stories with a model that calls tools and with one that writes Decisions, and from one to the other."""

import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import (
    ActionFinished,
    DecisionMade,
    Event,
    Intervened,
    Noticed,
    PhaseMoved,
    ReplyRejected,
    TextStreamed,
)
from duckflow.llm.scripted import ScriptedReply
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
    result = next(one.text for one in story.model.requests[-1].messages if "Changed a.txt" in one.text)
    assert "The user edited this" in result and "four" in result.partition("The user edited this")[2]
    assert "+three" not in result, "the model learns what was done, not only what it proposed"


@both
async def test_a_command_that_the_user_has_edited_is_told_as_it_ran(tmp_path: Path, native: bool) -> None:
    replies = [decide(act("shell.run", command="touch mine"), next_step="continue"), decide(respond("Done."))]
    story = Story(tmp_path, replies, mode="ask", native=native)
    story.answers = [Answer(choice="edit", text="touch yours")]
    assert await story.tell("say it") == "done"
    told = story.prompt()
    assert "The user edited this before allowing it" in told and "touch yours]" in told


@both
async def test_what_the_user_says_to_a_duck_call_stays_in_the_conversation(tmp_path: Path, native: bool) -> None:
    look = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
    replies = [*[look] * 4, decide(act("file_ops.find_files", pattern="*"), step="PLANNING", next_step="continue")]
    story = Story(tmp_path, [*replies, decide(respond("Found.")), decide(respond("Blue."))], native=native)
    story.answers = [Answer(choice="free", text="only in blue, please")]
    assert await story.tell("look") == "done"
    await story.tell("and what colour?")
    for request in story.model.requests[4:]:
        told = "\n".join(one.text for one in request.messages)
        assert "The user says: only in blue, please" in told


async def test_an_answer_with_a_word_about_the_work_is_told_at_once_and_only_once(tmp_path: Path) -> None:
    named: dict[str, Any] = {"rationale": "Teapot.", "state_delta": {"goal": "a name"}, "actions": []}
    for number, after in enumerate((decide(respond("Teapot.")), "")):
        (tmp_path / str(number)).mkdir()
        story = Story(tmp_path / str(number), [named, after], native=True)
        assert await story.tell("a name for the shop?") == "done"
        assert story.said() == ["Teapot."] and not story.all(Intervened)
        assert story.ending().why is None, "nothing is told in its place either"


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
    assert "review.unverified" in [event.what.key for event in story.all(Noticed)]


@both
async def test_what_the_user_says_after_a_word_about_the_step_is_heard(tmp_path: Path, native: bool) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("Written.")), decide(respond("Blue it is."))]
    story = Story(tmp_path, replies, native=native)
    await story.tell("write it")
    await story.tell("make it blue")
    assert "make it blue" in story.prompt()
    assert "DONE" not in story.model.requests[-1].messages[-1].text, "what has changed before is over"


@both
@pytest.mark.parametrize("step", ["PLANNING", "REVIEW"])
async def test_what_changes_something_needs_the_step_that_the_model_says_it_is_in(
    tmp_path: Path, native: bool, step: str
) -> None:
    replies = [decide(WRITE, step=step, next_step="continue"), *[decide(respond("It is not written."))] * 2]
    story = Story(tmp_path, replies, native=native)
    await story.tell("write it")
    assert list(story.folder.iterdir()) == []
    told = "\n".join(message.whole for message in story.model.requests[1].messages)
    assert f"needs step EXECUTION, but the step is {step}" in told


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


@both
async def test_every_message_of_the_user_reaches_the_model(tmp_path: Path, native: bool) -> None:
    """Also after a reply that told of its step by a call of its own."""
    look = decide(act("file_ops.list_files"), next_step="continue")
    story = Story(tmp_path, [look, *[decide(respond(text)) for text in ("one", "two", "three")]], native=native)
    for text in ("the first wish", "the second wish", "the third wish"):
        await story.tell(text)
    sent = "\n".join(message.whole for message in story.model.requests[-1].messages)
    assert [sent.count(f"the {number} wish") for number in ("first", "second", "third")] == [1, 1, 1]


async def test_a_reason_is_shown_once_and_never_the_name_of_a_call(tmp_path: Path) -> None:
    bare = {"rationale": "", "actions": [act("file_ops.write_file", "to see it", path="a.txt", content="one")]}
    said = {"rationale": "I write.", "actions": [{**WRITE, "reasoning": ""}]}
    story = Story(tmp_path, [bare, said, decide(respond("Done."))], mode="ask", native=True)
    story.answers = [Answer(choice="yes")] * 2
    assert await story.tell("write it") == "done"
    gates = [question.gate for question in story.questions if question.gate]
    shown = [(gate.intent, gate.rationale) for gate in gates]
    assert shown == [(("to see it",), ""), (("I write.",), "")]
    calls = [call.arguments for one in story.model.requests[-1].messages for call in one.calls]
    assert ['"reasoning": "to see it"' in one for one in calls if "a.txt" in one] == [True, False]


@both
async def test_why_the_step_has_changed_is_told_in_the_language_of_the_conversation(
    tmp_path: Path, native: bool
) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("書きました。"))]
    story = Story(tmp_path, replies, mode="ask", language="ja", native=native)
    story.answers = [Answer(choice="yes")]
    assert await story.tell("書いて") == "done"
    assert "AWAITING_APPROVAL → EXECUTION (ユーザーが許可しました)" in story.prompt()


@both
async def test_what_was_seen_of_a_reply_before_it_was_stopped_is_known(tmp_path: Path, native: bool) -> None:
    told = "There are many names for a shop, and all of them are long"
    whole = told if native else json.dumps(decide(respond(told)))
    slow = ScriptedReply(whole, chunk=8, delay=0.02)
    story = Story(tmp_path, [slow, decide(respond("Leaf."))], native=native)

    def stop(_: int, event: Event) -> None:
        if isinstance(event, TextStreamed) and "names" in "".join(one.text for one in story.all(TextStreamed)):
            story.chat.interrupt()

    story.chat.hear(stop)
    assert await story.tell("a name?") == "interrupted"
    await story.tell("shorter")
    prompt = story.prompt()
    assert prompt.count("There are many names") == 1 and prompt.index("many names") < prompt.index("shorter")


@both
@pytest.mark.parametrize(
    ("hello", "short"), [("Hello, who are you?", "write it"), ("こんにちは、どなたですか。", "書いて")]
)
async def test_what_has_been_answered_is_not_the_goal_of_a_short_request(
    tmp_path: Path, native: bool, hello: str, short: str
) -> None:
    replies = [decide(respond("Duckflow."), step="PLANNING"), decide(WRITE, next_step="continue"), decide(respond("."))]
    story = Story(tmp_path, replies, native=native)
    await story.tell(hello)
    await story.tell(short)
    assert [event.goal for event in story.all(DecisionMade) if event.goal] == [short]
    assert f"Goal: {hello}" not in story.prompt()


async def test_a_yes_goes_on_with_what_was_asked_for(tmp_path: Path) -> None:
    replies = [decide(respond("Shall I?"), step="PLANNING", next_step="pending_user"), decide(WRITE)]
    story = Story(tmp_path, replies, native=True)
    await story.tell("write down one and two")
    await story.tell("yes")
    assert [event.goal for event in story.all(DecisionMade) if event.goal] == ["write down one and two"]


async def test_a_turn_that_ends_without_a_word_says_nothing_in_its_place(tmp_path: Path) -> None:
    silent: dict[str, Any] = {"rationale": "", "actions": [], "confidence": 0.9}
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), silent], native=True)
    assert await story.tell("write it") == "done"
    assert story.ending().why is None


async def test_an_answer_that_was_cut_off_is_asked_for_shorter(tmp_path: Path) -> None:
    story = Story(tmp_path, [ScriptedReply("Once upon a", finish="length"), ScriptedReply("Once.")], native=True)
    assert await story.tell("Tell me all") == "done"
    assert "cut off" in story.prompt() and "shorter" in story.prompt() and story.said() == ["Once."]


@both
async def test_a_reply_that_a_filter_took_away_is_told_as_such(tmp_path: Path, native: bool) -> None:
    story = Story(tmp_path, [ScriptedReply("", finish="refusal")], native=native)
    assert await story.tell("Tell me all") == "provider"
    why = story.ending().why
    assert why and why.key == "model.ended.refusal" and len(story.model.requests) == 1


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_change_that_says_nowhere_why_is_sent_back_once_and_what_only_reads_is_not(
    tmp_path: Path, language: str
) -> None:
    actions = [
        act("file_ops.list_files", ""),
        act("file_ops.write_file", "", path="a.txt", content="one\n"),
        act("shell.run", "", command="touch b.txt"),
    ]
    lone = {"rationale": "", "actions": actions}
    again = {"rationale": "The user wants both.", "actions": actions[1:]}
    story = Story(tmp_path, [lone, again, decide(respond("Done."))], native=True, language=language)
    assert await story.tell("write a.txt and make b.txt") == "done"
    first = [one.result.ok for one in story.all(ActionFinished)][:2]
    assert first == [True, False] and len(story.model.requests) == 3 and not story.all(ReplyRejected)
    told = "\n".join(one.whole for one in story.model.requests[1].messages)
    assert "`reasoning`" in told.partition("a.txt")[2] and '"content": "one\\n"' in told, "its own call is in sight"
    assert (story.folder / "a.txt").exists() and (story.folder / "b.txt").exists()

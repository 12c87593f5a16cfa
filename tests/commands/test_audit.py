"""The record joins question, answer, deed and evidence."""

import asyncio
from pathlib import Path

import pytest

from duckflow.commands.audit import audit_lines, list_audit
from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.story import Story, act, decide, respond


async def test_every_deed_with_its_gate_and_its_answer(tmp_path: Path) -> None:
    replies = [
        decide(act("file_ops.write_file", "it was asked for", path="a.txt", content="x\n"), next_step="continue"),
        decide(act("file_ops.delete_file", "to tidy up", path="a.txt"), next_step="continue"),
        decide(act("file_ops.list_files"), respond("ok"), step="PLANNING"),
    ]
    story = Story(tmp_path, replies, mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice="no", text="keep it")]
    await story.tell("go")
    made, deleted, listed, said = list_audit(story.session.record())
    assert (made.operation, made.answer, made.ok, made.changed) == ("file_ops.write_file", "yes", True, ("a.txt",))
    assert (deleted.answer, deleted.ok) == ("no: keep it", False)
    assert deleted.gate and deleted.gate != made.gate
    assert listed.gate == "" and listed.ok and said.operation == "response"
    for language in ("en", "ja"):
        lines = "\n".join(audit_lines([made, deleted], Words(language)))
        assert "a.txt" in lines and "keep it" in lines and "to tidy up" in lines


async def test_an_unanswered_gate_is_on_record(tmp_path: Path) -> None:
    """After Esc at the Gate it was asked and not done. An answer of several lines stays in its place."""
    said = "# Ducks\n\n- one\n- two"
    replies = [
        decide(act("file_ops.write_file", "it was asked for", path="a.txt", content="x\n")),
        decide(act("response", "# Ducks", text=said), step="PLANNING"),
    ]
    story = Story(tmp_path, replies, mode="ask")

    def leave(question: Question) -> None:
        asyncio.get_running_loop().call_soon(story.chat.interrupt)

    story.answer = leave
    assert await story.tell("go") == "interrupted"
    assert await story.tell("what do you know?") == "done"
    written, told = list_audit(story.session.record())
    assert (written.operation, written.answer, written.ok) == ("file_ops.write_file", "", None) and written.gate
    first, second, third, *answer = audit_lines([written, told], Words("en"))
    assert first.startswith("… ") and first.endswith("file_ops.write_file a.txt")
    assert (second, third) == ("    why: it was asked for", "    answer: none; the action was not done")
    assert "\n".join(answer[1:]) == "    result: # Ducks\n      \n      - one\n      - two"


@pytest.mark.parametrize("native", [False, True])
async def test_a_yes_to_a_plan_is_on_record_in_the_users_words(tmp_path: Path, native: bool) -> None:
    talk = decide(respond("It is about a snake."), step="PLANNING", next_step="pending_user")
    begin = decide(respond("Shall I start?"), next_step="pending_user")
    story = Story(tmp_path, [PROPOSE, SNAKE, talk, begin], native=native)
    await story.tell("make a snake game")
    await story.tell("what is it about?")
    assert "plan" not in [entry.operation for entry in list_audit(story.session.record())]
    await story.tell("進めてください")
    agreed = [entry for entry in list_audit(story.session.record()) if entry.operation == "plan"]
    assert [(entry.answer, entry.ok) for entry in agreed] == [("進めてください", True)]
    assert "    answer: 進めてください" in audit_lines(agreed, Words("en"))
    assert "    result: Plan approved: Snake game" in audit_lines(agreed, Words("en"))


async def test_a_yes_by_command_has_no_words_of_an_earlier_message(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE, decide(respond("Shall I start?"), next_step="pending_user")])
    await story.tell("make a snake game")
    assert story.session.state.plan
    await story.chat.work.approve_plan(story.session.state.plan.fingerprint())
    assert [entry.answer for entry in list_audit(story.session.record()) if entry.operation == "plan"] == [""]


async def test_a_no_to_a_plan_is_on_record(tmp_path: Path) -> None:
    story = Story(tmp_path, [PROPOSE, SNAKE])
    await story.tell("make a snake game")
    await story.tell("no")
    refused = list_audit(story.session.record())[-1]
    assert (refused.operation, refused.about, refused.answer, refused.ok) == ("plan", "Snake game", "no", False)

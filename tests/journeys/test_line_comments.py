"""The user looks through a turn's changes: comments on lines go as one message, hunks and files are taken back."""

import re
from pathlib import Path

import pytest

from duckflow.agent.plain_answers import read_choice
from duckflow.errors import DuckflowError
from duckflow.state.changes import UndoScope, hunks_of, with_hunk
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

LINES = [f"line {number}\n" for number in range(1, 31)]
BEFORE = "".join(LINES)
AFTER = BEFORE.replace("line 3\n", "third\n").replace("line 25\n", "line 25\nadded\n")


def changed(top: Path, *replies: dict[str, object]) -> Story:
    """A folder with a file that the first turn changes in two places."""
    write = decide(
        act("file_ops.edit_file", path="a.txt", old="line 3\n", new="third\n"),
        act("file_ops.edit_file", path="a.txt", old="line 25\n", new="line 25\nadded\n"),
        act("file_ops.write_file", path="new.txt", content="new\n"),
        next_step="continue",
    )
    story = Story(top, [write, decide(respond("Done.")), *replies])
    (story.folder / "a.txt").write_text(BEFORE)
    return story


async def test_comments_are_sent_as_one_message_and_kept_until_then(tmp_path: Path) -> None:
    story = changed(tmp_path, decide(respond("I see.")))
    await story.tell("change a.txt and write new.txt")
    first, second, made = await story.chat.review.hunks()
    assert (first.path, second.path, made.path, made.whole) == ("a.txt", "a.txt", "new.txt", True)
    await story.chat.review.comment(1, "a.txt", 3, "spell it 3rd")
    await story.chat.review.comment(1, "a.txt", 3, "never drop this", side="old")
    wrong = await story.chat.review.comment(1, "a.txt", 26, "why?")
    story.chat.review.drop(wrong.comment_id)
    story.chat.review.mark(second.hunk_id)
    with pytest.raises(DuckflowError):
        await story.chat.review.comment(1, "a.txt", 15, "not in the diff")
    await story.built.close()
    story = Story.restart(story, [decide(respond("I see."))])
    state = story.session.state
    assert [(one.line, one.quote) for one in state.comments] == [(3, "third"), (3, "line 3")]
    assert state.reviewed == [second.hunk_id]
    assert await story.chat.review.send("Please look again") == "done"
    asked = next(message.text for message in reversed(state.messages) if message.role == "user")
    assert asked.startswith("Please look again\n")
    assert "a.txt:3: spell it 3rd" in asked and "a.txt:-3: never drop this" in asked
    assert "line 3" not in asked and "a.txt:-3: line 3" in story.prompt()
    assert state.comments == [] and state.turn == 2


async def test_a_hunk_is_taken_back_and_put_in_again_and_goes_with_its_turn(tmp_path: Path) -> None:
    story = changed(tmp_path, decide(respond("Noted.")))
    await story.tell("change a.txt and write new.txt")
    path = story.folder / "a.txt"
    first, second, _ = await story.chat.review.hunks(1)
    await story.chat.review.take_back(1, "a.txt", first.hunk_id)
    assert path.read_text() == AFTER.replace("third", "line 3")
    assert [hunk.hunk_id for hunk in await story.chat.review.hunks(1) if hunk.path == "a.txt"] == [second.hunk_id]
    assert [hunk.hunk_id for hunk in story.session.state.taken_back] == [first.hunk_id]
    await story.chat.review.put_back(first.hunk_id)
    assert path.read_text() == AFTER and story.session.state.taken_back == []
    await story.chat.review.take_back(1, "a.txt", second.hunk_id)
    await story.tell("go on")
    assert "undid this change in a.txt" in story.prompt() and "+added" in story.prompt()
    await story.chat.undo.restore(True, scope=UndoScope(turn=1))
    assert path.read_text() == BEFORE


async def test_a_file_is_taken_back_and_a_hunk_that_changed_since_stays(tmp_path: Path) -> None:
    story = changed(tmp_path)
    await story.tell("change a.txt and write new.txt")
    path = story.folder / "a.txt"
    first, _, made = await story.chat.review.hunks(1)
    await story.chat.review.take_back(1, "new.txt", made.hunk_id)
    assert not (story.folder / "new.txt").exists()
    path.write_text(AFTER.replace("third", "mine"))
    with pytest.raises(DuckflowError):
        await story.chat.review.take_back(1, "a.txt", first.hunk_id)
    assert "mine" in path.read_text()
    path.write_text(AFTER)
    await story.chat.review.take_back(1, "a.txt")
    assert path.read_text() == BEFORE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "a\nc"),
        ("a", "b\n"),
        ("x\n" * 9 + "y\n" + "x\n" * 9 + "y\n", "x\n" * 9 + "z\n" + "x\n" * 9 + "z\n"),
        ("a\r\nb\x0cc\n", "a\r\nB\x0cc\n"),
        ("one\n", "one\ntwo\nthree"),
    ],
)
def test_every_hunk_goes_back_and_forth(before: str, after: str) -> None:
    text = after
    hunks = hunks_of(1, "", "a", before, after)
    assert len({hunk.hunk_id for hunk in hunks}) == len(hunks)
    for hunk in hunks:
        without = with_hunk(text, hunk, back=True)
        assert without is not None and without != text
        assert with_hunk(without, hunk, back=False) == text
        text = without
    assert text == before


async def test_the_terminal_walks_the_hunks_by_key(tmp_path: Path) -> None:
    story = changed(tmp_path, decide(respond("I see.")))
    await story.tell("change a.txt and write new.txt")
    story.answers = [
        Answer(choice="comment"),
        Answer(choice="", text="3 spell it 3rd"),
        Answer(choice="mark"),
        Answer(choice="take"),
        Answer(choice="comment"),
        Answer(choice="", text="what is this file for?"),
        Answer(choice="send"),
    ]
    await story.chat.run_command("/diff walk")
    assert "added" not in (story.folder / "a.txt").read_text()
    asked = next(message.text for message in reversed(story.session.state.messages) if message.role == "user")
    assert "a.txt:3: spell it 3rd" in asked and "new.txt:1: what is this file for?" in asked
    assert len(story.session.state.reviewed) == 1 and story.answers == []


async def test_leaving_the_walk_keeps_what_was_said(tmp_path: Path) -> None:
    story = changed(tmp_path)
    await story.tell("change a.txt and write new.txt")
    story.answers = [Answer(choice="comment", text="99 no such line"), Answer(choice="comment")]
    story.answers += [Answer(choice="", text="-3 keep it"), Answer(choice="stop")]
    assert "1 comment not sent yet" in await story.chat.run_command("/diff walk 1")
    assert [(one.side, one.quote) for one in story.session.state.comments] == [("old", "line 3")]
    first, again = story.questions[0], story.questions[1]
    assert again.details[0].key == "comment.no_line" and again.details[1:] == first.details, "it goes on, and says why"
    last = story.questions[-1]
    assert [choice.key for choice in last.choices][-2:] == ["stop", "send"], "a new key moves no other"
    assert [read_choice(key, last, "ja").choice for key in "nctmf"] == ["next", "comment", "take", "mark", "file"]
    assert read_choice("2: 12 why?", last, "en") == Answer(choice="comment", text="12 why?")


async def test_a_review_that_the_user_wants_knows_its_last_loop(tmp_path: Path) -> None:
    story = changed(
        tmp_path, decide(act("file_ops.read_file", path="a.txt"), next_step="continue"), decide(respond("-"))
    )
    await story.tell("change a.txt and write new.txt")
    await story.chat.run_command("/review")
    told = [re.findall(r"loop (\d+) of (\d+)", request.messages[-1].text) for request in story.model.requests[-2:]]
    assert told[0] and told[1] and all(int(loop) < int(last) for [(loop, last)] in told), told

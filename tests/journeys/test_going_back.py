"""Back to an earlier message: the conversation, the files, or both."""

from pathlib import Path

import pytest

from duckflow.events.talking import ConversationLeft, LineOffered
from duckflow.i18n.words import Words
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond


def write(text: str) -> dict[str, object]:
    return decide(act("file_ops.write_file", path="a.txt", content=text), respond(f"It says {text.strip()}."))


async def three_turns(top: Path, language: str) -> Story:
    story = Story(top, [write("one\n"), write("two\n"), write("three\n"), decide(respond("So."))], language=language)
    for number in ("one", "two", "three"):
        await story.tell(f"write {number}")
    return story


def go(story: Story, turn: str, what: str) -> None:
    story.answers = [Answer(choice=turn), Answer(choice=what)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(
    ("what", "text", "remembers"), [("both", "one\n", False), ("talk", "three\n", False), ("files", "one\n", True)]
)
async def test_back_to_before_the_second_message(
    tmp_path: Path, language: str, what: str, text: str, remembers: bool
) -> None:
    story = await three_turns(tmp_path, language)
    go(story, "2", what)
    told = await story.chat.run_command("/back")
    assert (story.folder / "a.txt").read_text() == text
    assert (Words(language)("back.talked") in told) is not remembers
    assert [event.text for event in story.all(LineOffered)] == ([] if remembers else ["write two"])
    await story.tell("and now?")
    sent = story.prompt()
    assert "write one" in sent and ("write two" in sent, "write three" in sent) == (remembers, remembers)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_everything_stays_when_nothing_is_chosen(tmp_path: Path, language: str) -> None:
    story, words = await three_turns(tmp_path, language), Words(language)
    story.answers = [Answer(choice="no")]
    assert await story.chat.run_command("/back") == words("back.left")
    go(story, "1", "stay")
    assert await story.chat.run_command("/back") == words("back.left")
    assert (story.folder / "a.txt").read_text() == "three\n"
    labels = [words.phrase(choice.label) for choice in story.questions[0].choices]
    assert labels == ["write three", "write two", "write one", words("back.stay")]


async def test_what_was_gone_back_from_is_offered_no_more_and_stays_gone(tmp_path: Path) -> None:
    story = await three_turns(tmp_path, "en")
    go(story, "2", "talk")
    await story.chat.run_command("/back")
    story = story.restart([decide(respond("So."))])
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/back")
    assert [choice.key for choice in story.questions[0].choices] == ["1", "no"]


async def test_before_anything_was_said_there_is_no_way_back(tmp_path: Path) -> None:
    story = Story(tmp_path, [])
    assert await story.chat.run_command("/back") == Words("en")("back.nothing")


@pytest.mark.parametrize("command", ["/new", "/clear"])
async def test_a_new_conversation_is_left_for(tmp_path: Path, command: str) -> None:
    story = Story(tmp_path, [])
    await story.chat.run_command(command)
    [left] = story.all(ConversationLeft)
    wanted = await story.chat.sessions.over()
    assert left.where == "other_session" and wanted is not None and wanted.new


async def test_what_was_gone_back_from_is_not_quoted_from_memory_either(tmp_path: Path) -> None:
    talk = [decide(respond("The teapot is blue."), step="PLANNING"), decide(respond("Hm."), step="PLANNING")]
    story = Story(tmp_path, [decide(respond("Hello."), step="PLANNING"), *talk])
    await story.tell("hello there")
    await story.tell("which colour has the teapot?")
    go(story, "2", "talk")
    await story.chat.run_command("/back")
    await story.tell("which colour has the teapot again?")
    assert "The teapot is blue." not in story.prompt()

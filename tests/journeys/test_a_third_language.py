"""A language that is a beginning: what its folder holds is spoken and understood, the rest is English."""

import asyncio
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.i18n.answer_words import yes_or_no
from duckflow.i18n.words import Words, grouped
from duckflow.state.question import Answer, Question
from duckflow.ui.console.status_bar import status_bar
from tests.journeys.plans import until
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="eins\n")


class Typing(Story):
    """A person who types; questions stay open until then."""

    def answer(self, question: Question) -> Answer | None:
        return None


@pytest.mark.parametrize(
    ("answer", "written"),
    [("ja", True), ("Ja, bitte!", True), ("nur zu", True), ("nein", False), ("Lieber nicht.", False)],
)
async def test_a_german_chat(tmp_path: Path, answer: str, written: bool) -> None:
    story = Typing(tmp_path, [decide(WRITE, respond("Fertig."))], mode="ask", language="de")
    words = Words("de")
    turn = asyncio.create_task(story.tell("Schreib bitte a.txt"))
    await until(story, lambda: bool(story.questions))
    question = story.questions[0]
    assert words.phrase(question.title) == "Darf ich?" and words.phrase(question.choices[0].label) == "ja"
    assert (await story.chat.take(answer)).meaning == "answer"
    await turn
    assert (story.folder / "a.txt").exists() == written
    assert "in the language of the user's latest words" in story.prompt(0), (
        "a template that the folder lacks is the English one"
    )
    assert "Laune:" in status_bar(story.chat, words, 200)
    told = words.phrase(story.all(ActionFinished)[0].result.for_user)
    assert told == ("a.txt angelegt (1 Zeile)" if written else "Abgelehnt: a.txt")


def test_what_is_unclear_in_german_is_no_yes() -> None:
    for text in ("ja, aber nur a.txt", "vielleicht", "keine Ahnung", "weiß nicht"):
        assert yes_or_no(text, "de") == "", text


def test_a_language_changes_nothing_for_others() -> None:
    assert yes_or_no("ja", "en") == "" and yes_or_no("yes", "de") == "yes"


def test_endings_numbers_and_missing_words() -> None:
    words = Words("de")
    assert words("file.read", path="a.py", lines=1) == "a.py gelesen (1 Zeile)"
    assert words("file.read", path="a.py", lines=2) == "a.py gelesen (2 Zeilen)"
    assert grouped(1234567, words) == "1.234.567" and grouped(1234567, Words("en")) == "1,234,567"
    assert words("help.keys") == Words("en")("help.keys")

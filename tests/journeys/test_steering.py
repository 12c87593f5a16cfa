"""What the user says while it works reaches the model before its next call."""

from pathlib import Path

import pytest

from duckflow.commands.export.transcript import Transcript
from duckflow.events.types import ActionStarted, Event, MessageAdded, TurnBegan
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase, say
from duckflow.state.message import Message
from tests.journeys.story import Story, act, decide, respond

LOOK = decide(act("file_ops.read_file", path="a.txt"), next_step="continue", step="PLANNING")
SAID = {
    "en": ("Fix a.txt", "don't touch b.txt", "then show it"),
    "ja": ("a.txt を直して", "b.txt は変更しないで", "次に見せて"),
}
LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])


class Interjecting(Story):
    """The user speaks while the first action runs: to steer, and (`later`) for afterwards."""

    meanwhile: tuple[str, ...] = ()
    later: tuple[str, ...] = ()

    def _hear(self, _: int, event: Event) -> None:
        super()._hear(_, event)
        if isinstance(event, ActionStarted):
            for text in self.meanwhile:
                assert self.chat.take(text).result().meaning == "message"
            for text in self.later:
                self.chat.queue(text)
            self.meanwhile = self.later = ()


def spoken(story: Story) -> list[Message]:
    return [event.message for event in story.all(MessageAdded) if event.message.role == "user"]


@LANGUAGES
async def test_it_is_heard_in_the_same_turn_marked_and_kept(tmp_path: Path, language: str) -> None:
    first, meanwhile, later = SAID[language]
    answers = [decide(respond("ok"), step="PLANNING") for _ in range(2)]
    story = Interjecting(tmp_path, [LOOK, *answers], language=language)
    (story.folder / "a.txt").write_text("x\n")
    story.meanwhile, story.later = (meanwhile,), (later,)
    assert await story.tell(first) == "done"
    mark = f"{note(language, 'said_meanwhile')}\n{meanwhile}"
    assert mark not in story.prompt(0) and mark in story.prompt(1) and later not in story.prompt(1)
    while len(story.model.requests) < 3 or story.chat.in_turn:
        await story.chat.say(later)
    assert [(one.text, one.meanwhile, one.turn) for one in spoken(story)][:3] == [
        (first, False, 1),
        (meanwhile, True, 1),
        (later, False, 2),
    ]
    assert meanwhile in "".join(story.session.state.five.constraints), "what it forbids is kept as any other"
    turn = Transcript().hear_all(story.chat.record()).turns[0]
    told = [Words(language).phrase(item.phrase) for item in turn.entries if item.kind == "user" and item.phrase]
    assert (turn.asked, told) == (first, [Words(language)("chat.meanwhile")])


@pytest.mark.parametrize("word", ["stop!", "wait", "やめて", "ちょっと待ってください。"])
async def test_a_word_that_only_says_stop_stops_at_once(tmp_path: Path, word: str) -> None:
    write = decide(act("file_ops.write_file", path="b.txt", content="x\n"))
    story = Interjecting(tmp_path, [LOOK, write, decide(respond("ok"), step="PLANNING")])
    (story.folder / "a.txt").write_text("x\n")
    story.meanwhile = (word,)
    assert await story.tell("Fix a.txt") == "interrupted"
    assert len(story.model.requests) == 1 and not (story.folder / "b.txt").exists()
    assert not story.chat.waiting, "it is no message for later"


async def test_what_was_said_before_a_stop_and_is_not_heard_is_told(tmp_path: Path) -> None:
    story = Interjecting(tmp_path, [LOOK, decide(respond("ok"), step="PLANNING")])
    (story.folder / "a.txt").write_text("x\n")
    told: list[Phrase] = []

    def hear(_: int, event: Event) -> None:
        if isinstance(event, ActionStarted):
            story.chat.take("look at b.txt, too")
            told.extend(story.chat.take("stop").result().told)

    story.chat.hear(hear)
    assert await story.tell("Fix a.txt") == "interrupted"
    assert told == [say("turn.unheard", text="look at b.txt, too")]


@LANGUAGES
async def test_a_file_named_in_passing_is_brought_along(tmp_path: Path, language: str) -> None:
    story = Interjecting(tmp_path, [LOOK, decide(respond("ok"), step="PLANNING")], language=language)
    (story.folder / "a.txt").write_text("x\n")
    (story.folder / "b.txt").write_text("the other one\n")
    story.meanwhile = ("@b.txt",)
    await story.tell(SAID[language][0])
    assert "the other one" in story.prompt(1)


@LANGUAGES
async def test_the_whole_request_stays_word_for_word(tmp_path: Path, language: str) -> None:
    first, meanwhile, _ = SAID[language]
    looks = [
        decide(act("file_ops.read_file", path=f"{n}.txt"), next_step="continue", step="PLANNING") for n in range(8)
    ]
    memory = {"memory": {"summaries": False, "budget_tokens": 1500, "recent_messages": 2}}
    story = Interjecting(
        tmp_path, [decide(respond("hi"), step="PLANNING"), *looks, decide(respond("ok"), step="PLANNING")],
        language=language, settings=memory,
    )  # fmt: skip
    for number in range(8):
        (story.folder / f"{number}.txt").write_text(f"line {number}\n" * 150)
    await story.tell("hello")
    story.meanwhile = (meanwhile,)
    assert await story.tell(first) == "done"
    assert story.session.state.context.receipts, "something was left out"
    assert first in story.prompt() and f"{note(language, 'said_meanwhile')}\n{meanwhile}" in story.prompt()


async def test_what_comes_with_the_last_word_is_the_next_turn(tmp_path: Path) -> None:
    story = Interjecting(tmp_path, [decide(respond("done"), step="PLANNING"), decide(respond("ok"), step="PLANNING")])
    story.meanwhile = ("and now?",)
    await story.tell("go")
    await story.chat.say("!")
    assert [(one.text, one.meanwhile) for one in spoken(story)][1] in (("and now?", False), ("and now?\n!", False))
    assert len(story.all(TurnBegan)) == 2

"""What moves mood, focus and stamina in a conversation, and the phase while somebody is asked."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Intervened, PhaseMoved, VitalsChanged
from duckflow.i18n.words import Words
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.phase import Phase, Status
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="x\n")
LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
TALK = decide(respond("Lovely weather."), step="PLANNING")
TALK_ONLY = ScriptedReply("All right.")


def moves(story: Story) -> dict[str, float]:
    """How far each cause has moved a vital."""
    moved: dict[str, float] = {}
    for change in (cause for event in story.all(VitalsChanged) for cause in event.causes):
        name = f"{change.vital} {change.cause.key.removeprefix('vitals.cause.')}"
        moved[name] = moved.get(name, 0) + change.delta
    return moved


def check(code: int) -> dict[str, Any]:
    return decide(act("shell.run", command=f"exit {code}"), next_step="continue")


async def test_checks_move_the_mood(tmp_path: Path) -> None:
    story = Story(tmp_path, [check(1), check(1), check(0), decide(respond("It works now."))])
    await story.tell("make it work")
    assert moves(story)["mood check_failed"] == pytest.approx(-0.1), "a check that goes on failing counts once"
    assert moves(story)["mood check_passed"] > 0


@pytest.mark.parametrize(
    ("language", "thanks", "turn"), [("en", "Thanks!", "No, stop"), ("ja", "ありがとう", "違う、やめて")]
)
async def test_words_and_rest_move_them_and_small_talk_does_not_raise_focus(
    tmp_path: Path, language: str, thanks: str, turn: str
) -> None:
    story = Story(tmp_path, [decide(respond("Hm."), step="PLANNING", confidence=0.5), *[TALK] * 3], language=language)
    for text in ("hello", thanks, turn, "how are you"):
        await story.tell(text)
    moved = moves(story)
    assert moved["mood confidence"] < 0 < moved["mood thanks"]
    assert moved["focus turnaround"] < 0
    assert moved["stamina loop"] < 0 < moved["stamina rest"]
    assert not [name for name, delta in moved.items() if name.startswith("focus") and delta > 0]


async def test_answers_at_the_gate_move_the_mood(tmp_path: Path) -> None:
    other = act("file_ops.write_file", path="b.txt", content="y\n")
    story = Story(tmp_path, [decide(WRITE), decide(other, next_step="continue"), TALK], mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice="no", text="not that one")]
    await story.tell("write a.txt")
    await story.tell("once more")
    assert moves(story)["mood approved"] > 0 > moves(story)["mood refused"]


def wants_to_write(name: str) -> dict[str, Any]:
    """A reply that says nothing about its confidence, as models that call tools seldom do."""
    decision = decide(act("file_ops.write_file", path=name, content="x\n"), next_step="continue")
    return {field: value for field, value in decision.items() if field != "confidence"}


async def test_many_nos_lead_to_one_new_plan_and_the_users_words_stay_first(tmp_path: Path) -> None:
    refused = [reply for number in range(4) for reply in (wants_to_write(f"no{number}.txt"), TALK_ONLY)]
    approved = [reply for number in range(4) for reply in (wants_to_write(f"yes{number}.txt"), TALK_ONLY)]
    story = Story(tmp_path, [*refused, *approved], mode="ask", native=True)
    story.answers = [Answer(choice="no", text=f"call it other{number}") for number in range(4)]
    for _ in range(4):
        await story.tell("write a file")
    interventions = [event.how for event in story.all(Intervened)]
    assert interventions == ["hint", "replan"]
    top_lines = story.prompt(7).partition("First of all: ")[2]
    assert "not advancing" in top_lines
    assert top_lines.startswith("The user said no"), "what the user has just said comes before the advice"
    story.answers = [Answer(choice="yes") for _ in range(4)]
    for _ in range(4):
        await story.tell("write a file")
    assert len(story.all(Intervened)) == 2, "nothing new has happened but yeses"
    assert "not advancing" not in "".join(map(story.prompt, range(8, 16)))
    assert story.session.state.vitals.mood >= 0.7


async def test_a_completed_step_moves_the_conversations_own_vitals(tmp_path: Path) -> None:
    ended = when("A background job has ended", report())
    replies = [run_step(1), write_tasks("game.py"), when("content of game.py", "print(1)\n"), ended]
    story = Story(tmp_path, [PROPOSE, SNAKE, *replies, TALK])
    await story.tell("make a snake game")
    await story.tell("yes")
    await job_ended(story)
    await story.tell("good")
    assert moves(story)["stamina done"] > 0


async def test_an_overfull_context_costs_focus(tmp_path: Path) -> None:
    reads = [decide(act("file_ops.read_file", path=f"{n}.txt"), next_step="continue") for n in range(8)]
    settings = {"memory": {"summaries": False, "budget_tokens": 2000}}
    story = Story(tmp_path, [*reads, decide(respond("Read."))], settings=settings)
    for number in range(8):
        (story.folder / f"{number}.txt").write_text("".join(f"{number} word {n}\n" for n in range(250)))
    assert await story.tell("read everything") == "done"
    assert moves(story)["focus overfull"] < 0


@LANGUAGES
async def test_status_is_the_health_report(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, [TALK], language=language)
    await story.tell("hello")
    shown = [Words(language).phrase(line) for line in story.chat.health()]
    assert len(shown) == 5 and "%" in shown[1]
    assert "健康診断" in shown[0] if language == "ja" else "health report" in shown[0]


class AskedStory(Story):
    """Notes the phase at each question."""

    def answer(self, question: Question) -> Answer | None:
        self.phases = [*getattr(self, "phases", []), (self.session.state.phase, self.session.state.status)]
        return super().answer(question)


@LANGUAGES
@pytest.mark.parametrize(("answer", "after"), [("yes", Phase.EXECUTION), ("no", Phase.PLANNING)])
async def test_the_phase_waits_with_the_gate(tmp_path: Path, answer: str, after: Phase, language: str) -> None:
    replies = [decide(WRITE, next_step="continue"), decide(respond("ok"), step=after)]
    story = AskedStory(tmp_path, replies, mode="ask", language=language)
    story.answers = [Answer(choice=answer, text="" if answer == "yes" else "use b.txt")]
    await story.tell("write a.txt")
    assert story.phases == [(Phase.AWAITING_APPROVAL, Status.REQUIRES_USER_INPUT)]
    moved = [(move.source, move.target) for move in story.all(PhaseMoved)]
    assert (Phase.EXECUTION, Phase.AWAITING_APPROVAL) in moved and (Phase.AWAITING_APPROVAL, after) in moved


@LANGUAGES
async def test_an_error_in_review_goes_back_to_planning(tmp_path: Path, language: str) -> None:
    claim = decide(WRITE, act("shell.run", command="exit 3"), respond("Done."))
    review = decide(act("file_ops.read_file", path="gone.txt"), step="REVIEW", next_step="continue")
    replies = [claim, review, decide(respond("It is not done."), step="PLANNING")]
    story = Story(tmp_path, replies, language=language)
    await story.tell("write a.txt")
    assert (Phase.REVIEW, Phase.PLANNING) in [(move.source, move.target) for move in story.all(PhaseMoved)]


@LANGUAGES
async def test_the_tokens_of_a_session_can_be_limited(tmp_path: Path, language: str) -> None:
    looks = [decide(act("file_ops.list_files"), next_step="continue")] * 3
    story = Story(tmp_path, looks, language=language, settings={"agent": {"max_tokens": 10}})
    outcome = await story.tell("look")
    why = story.ending().why
    assert outcome == "budget" and why is not None and why.key == "budget.tokens_next"
    assert not story.model.requests, "the first request alone is more"


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_other_ranges_of_what_was_read_cost_focus(tmp_path: Path, native: bool) -> None:
    ranges = [(1, 200), *((start, start + 60) for start in range(10, 60, 10))]
    reads = [act("file_ops.read_file", path="long.txt", start_line=first, end_line=last) for first, last in ranges]
    replies = [*(decide(read, next_step="continue") for read in reads), decide(respond("Read."))]
    story = Story(tmp_path, replies, native=native)
    (story.folder / "long.txt").write_text("".join(f"line {number} of the text\n" for number in range(300)))
    assert await story.tell("what does long.txt say?") == "done"
    assert story.session.state.vitals.focus < 0.8

"""When Duckflow stops and asks, and what each answer does."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import MessagesSetAside, Noticed, QuestionClosed, ReplyRejected, VitalsChanged
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Scripted, ScriptedReply
from duckflow.pacemaker.interventions import CHOICES, Effect, Pattern
from duckflow.state.phase import Phase
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
DONE = decide(respond("finished"), step="PLANNING")
STOP = Answer(choice="stop")


def reading(number: int, **other: Any) -> dict[str, Any]:
    """A step that brings something new each time."""
    return decide(act("file_ops.read_file", path=f"f{number}.txt"), step="PLANNING", next_step="continue", **other)


def failing(number: int) -> dict[str, Any]:
    """Each failure is of another kind, so only stamina tells."""
    operations = [
        act("file_ops.read_file", path=f"missing{number}/x{number}"),
        act(f"nonsense.number{'abcdefghijkl'[number % 12]}"),
        act("file_ops.grep", pattern="(" * (number + 1)),
        act("plan_tool.get", id=f"plan_no{number}"),
    ]
    return decide(operations[number % 4], step="PLANNING", next_step="continue")


def with_files(story: Story, count: int) -> Story:
    for number in range(count):
        (story.folder / f"f{number}.txt").write_text(f"text {number}\n" * (number + 1))
    return story


def stuck(
    tmp_path: Path, pattern: Pattern, after: list[Any], language: str = "en", settings: dict[str, Any] | None = None
) -> Story:
    """A story that runs into a Duck Call of this pattern; `after` is what the model says then."""
    match pattern:
        case Pattern.NO_PROGRESS:
            replies = [LOOK] * 4
        case Pattern.LOW_CONFIDENCE:
            replies = [reading(number, confidence=0.0) for number in range(4)]
        case Pattern.CONFUSION:
            raise ValueError("see test_each_choice_when_the_thread_is_lost")
        case Pattern.TOO_MANY_TRIES:
            replies = [decide(act("file_ops.read_file", path="missing.txt"))] * 4
        case Pattern.EXHAUSTED:
            # Errors of ever other kinds wear it out while it still finds something new.
            replies = [failing(n // 2) if n % 2 == 0 else reading(n // 2) for n in range(21)]
    return with_files(Story(tmp_path, [*replies, *after], language=language, settings=settings), 12)


REASONS = {
    Pattern.NO_PROGRESS: "STAGNATION",
    Pattern.LOW_CONFIDENCE: "CONFIDENCE_LOW",
    Pattern.TOO_MANY_TRIES: "ERROR_CASCADE",
    Pattern.EXHAUSTED: "STAMINA_DEPLETED",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("pattern", REASONS)
async def test_the_reason_is_found_and_told_in_words(tmp_path: Path, pattern: Pattern, language: str) -> None:
    story = stuck(tmp_path, pattern, [], language)
    assert await story.tell("do it") == "pacemaker"
    call = story.duck_calls()[0]
    assert call.reason == REASONS[pattern]
    words = Words(language)
    shown = [words.phrase(phrase) for phrase in (call.title, *call.details)]
    assert all(line and not line.startswith(("duck.", "pacemaker.", "health.")) for line in shown)
    assert len(call.choices) == 4
    assert story.ending().outcome == "pacemaker"


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_loops_run_out_only_when_nothing_advances(tmp_path: Path, language: str) -> None:
    story = with_files(Story(tmp_path, [reading(n) for n in range(30)], language=language), 30)
    assert await story.tell("What is in f0.txt to f29.txt?") == "failed"
    assert len(story.model.requests) == 31, "a turn that finds something new in every loop is not stopped"
    assert any(notice.what.key == "pacemaker.extended.read" for notice in story.all(Noticed))


async def test_loop_exhausted_with_a_tight_limit(tmp_path: Path) -> None:
    limits = {"lowest": 3, "highest": 3, "ceiling": 3}
    story = with_files(Story(tmp_path, [reading(n) for n in range(9)], settings={"pacemaker": {"limits": limits}}), 9)
    assert await story.tell("read everything") == "pacemaker"
    assert [call.reason for call in story.duck_calls()] == ["LOOP_EXHAUSTED"]
    assert len(story.model.requests) == 3


async def test_focus_lost(tmp_path: Path) -> None:
    settings = {"pacemaker": {"detectors": {"again": {"replan": 90, "call": 99}}}}
    story = Story(tmp_path, [LOOK] * 30, settings=settings)
    assert await story.tell("look") == "pacemaker"
    assert story.duck_calls()[0].reason == "FOCUS_LOST"


async def test_it_hints_and_plans_anew_before_it_asks(tmp_path: Path) -> None:
    story = stuck(tmp_path, Pattern.NO_PROGRESS, [])
    await story.tell("look around")
    prompts = [story.prompt(number) for number in range(len(story.model.requests))]
    assert any("This is not advancing" in prompt and "Do not repeat what was tried" in prompt for prompt in prompts)
    assert len(story.duck_calls()) == 1
    causes = [cause.cause.key for event in story.all(VitalsChanged) for cause in event.causes]
    assert "vitals.cause.repeated" in causes
    assert story.session.state.vitals.focus < 1


CASES = [(pattern, choice) for pattern in REASONS for choice in CHOICES[pattern]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(("pattern", "choice"), CASES, ids=lambda value: getattr(value, "key", str(value)))
async def test_each_choice_does_what_it_says(tmp_path: Path, pattern: Pattern, choice: Any, language: str) -> None:
    other_model = choice.effect is Effect.SECOND_OPINION
    story = stuck(tmp_path, pattern, [DONE], language, {"llm": {"second_model": "other"}} if other_model else {})
    story.second = Scripted([DONE], name="other")
    words = "use the other door" if choice.wants_text else ""
    given = Answer(choice=choice.key, text=words)
    story.answers = [given]
    outcome = await story.tell("do it")
    closed: QuestionClosed = story.all(QuestionClosed)[0]
    assert closed.answer == given
    if choice.effect is Effect.STOP:
        assert outcome == "pacemaker"
        return
    if choice.effect is Effect.ACCEPT:
        why = story.ending().why
        assert outcome == "done" and why is not None and why.key == "turn.accepted"
        return
    assert outcome == "done"
    prompt = story.prompt()
    vitals = story.session.state.vitals
    assert min(vitals.mood, vitals.focus, vitals.stamina) >= 0.6
    match choice.effect:
        case Effect.INSTRUCT:
            assert note(language, "user_says", text="use the other door") in prompt
        case Effect.NEW_REQUEST:
            assert story.session.state.five.goal == "use the other door"
        case Effect.RESTART:
            assert story.all(MessagesSetAside) and note(language, "not_to_repeat", tried="\n-") in prompt
            assert "[result of" not in prompt
            assert story.session.state.phase is Phase.PLANNING
        case Effect.SPLIT:
            assert note(language, "duck_split") in prompt and story.session.state.phase is Phase.PLANNING
        case Effect.GO_ON:
            assert note(language, "duck_go_on") in prompt
        case Effect.LOOK_ELSEWHERE:
            assert note(language, "duck_look_elsewhere") in prompt
        case Effect.FIND_CAUSE:
            assert note(language, "duck_find_cause") in prompt
        case Effect.SIMPLIFY:
            assert note(language, "duck_simplify") in prompt
        case Effect.SECOND_OPINION:
            prompt = story.second.requests[0].messages[-1].text
            assert note(language, "duck_second_opinion") in prompt
            assert len(story.second.requests) == 1
        case _:
            raise AssertionError(choice.effect)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("choice", CHOICES[Pattern.CONFUSION], ids=lambda choice: choice.key)
async def test_each_choice_when_the_thread_is_lost(tmp_path: Path, choice: Any, language: str) -> None:
    settings = {"pacemaker": {"detectors": {"again": {"replan": 90, "call": 99}}}}
    story = Story(tmp_path, [*[LOOK] * 8, DONE], language=language, settings=settings)
    story.answers = [Answer(choice=choice.key, text="only the tests" if choice.wants_text else "")]
    assert await story.tell("look") == "done"
    assert story.duck_calls()[0].reason == "FOCUS_LOST"
    prompt = story.prompt()
    match choice.effect:
        case Effect.INSTRUCT:
            assert note(language, "user_says", text="only the tests") in prompt
        case Effect.RESTART:
            assert story.all(MessagesSetAside)
        case Effect.TAKE_STOCK:
            assert note(language, "stock") in prompt
            known = note(language, "stock_result", operation="file_ops.list_files", text='"')
            assert prompt.count(known) == 1, "what was found again and again is told once"
            assert any(notice.what.key == "duck.stock" for notice in story.all(Noticed))
        case Effect.REPLAN:
            assert note(language, "duck_replan") in prompt and story.session.state.phase is Phase.PLANNING
        case _:
            raise AssertionError(choice.effect)


async def test_a_model_that_repeats_itself_without_end_is_cut_short(tmp_path: Path) -> None:
    babble = ScriptedReply("I will now look at the file again and again. " * 400, chunk=50)
    story = Story(tmp_path, [babble, DONE])
    assert await story.tell("hello") == "done"
    assert len(story.all(ReplyRejected)) == 1
    assert "repeated the same passage" in story.prompt()


async def test_free_words_come_first_in_the_next_prompt(tmp_path: Path) -> None:
    story = stuck(tmp_path, Pattern.NO_PROGRESS, [DONE])
    story.answers = [Answer(choice="free", text="look into src instead")]
    assert await story.tell("look") == "done"
    assert "First of all: The user says: look into src instead" in story.prompt()


async def test_going_on_gives_a_fresh_allowance(tmp_path: Path) -> None:
    story = stuck(tmp_path, Pattern.NO_PROGRESS, [LOOK] * 10)
    story.answers = [Answer(choice="go_on"), STOP]
    assert await story.tell("look") == "pacemaker"
    assert len(story.duck_calls()) == 2
    assert len(story.model.requests) == 8

"""What the user says to a running job reaches the step it is for, and the steps that begin later know of it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.work import StepTold
from duckflow.i18n.template import note
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, job_ended, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_steering import DID, GIST, SAYS, YES, Steering, of_chat, of_worker, report_of
from tests.journeys.test_steps import RUN_ALL, written

LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
MAKE_PLAN = {"en": "Make a plan", "ja": "計画を立て"}
YOUR_STEP = {"en": "Your step: ", "ja": "あなたのステップ: "}
TO_JOB = {"en": "The user to the running job, word for word: ", "ja": "動いているジョブにユーザーが言ったこと (原文): "}
BEFORE = {"en": "Steps done before: ", "ja": "先に済んだステップ: "}


def step(name: str, *after: int, files: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"writes {name}.py",
        "success": f"{name}.py exists",
        "depends_on": list(after),
        "files": list(files),
    }


def of_native(language: str, name: str, words: str = "", **files: str) -> Any:
    return of_worker(True, language, name, *written(**files), words=words)


def answers(language: str) -> Any:
    return replace(called(decide(respond(DID[language]))), when=note(language, "step_answer")[:15])


async def planned(top: Path, language: str, steps: list[dict[str, Any]], replies: list[Any]) -> Steering:
    plan = json.dumps({"name": "Work", "steps": steps, "risks": []}, ensure_ascii=False)
    drafted = when(MAKE_PLAN[language], plan)
    story = Steering(top, [PROPOSE, drafted, RUN_ALL, *replies], native=True, language=language)
    await story.tell("do the work")
    return story


def request_of(story: Story, language: str, name: str) -> str:
    prompts = [story.prompt(number) for number in range(len(story.model.requests))]
    return next(text for text in prompts if f"{YOUR_STEP[language]}{name}\n" in text)


def line(request: str, label: str) -> str:
    return request.partition(label)[2].partition("\n")[0]


async def sent(story: Story, words: str, seconds: float = 20.0) -> None:
    """Waits until a request with these words is on its way."""
    for _ in range(int(seconds * 100)):
        if any(words in story.prompt(number) for number in range(len(story.model.requests))):
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


@LANGUAGES
async def test_a_step_whose_reply_was_on_its_way_answers_before_it_is_completed(tmp_path: Path, language: str) -> None:
    words = SAYS[language]
    replies = [
        replace(of_native(language, "stats", stats="SORTED = False\n"), delay=1.0),
        of_chat(language, act("task_loop.message", text=GIST[language]), native=True),
        of_native(language, "stats", words=f"{words} (", stats="SORTED = True\n"),
        answers(language),
        decide(respond("ok"), step="PLANNING"),
        report_of(language),
    ]
    story = await planned(tmp_path, language, [step("stats")], replies)
    await story.tell(YES[language])
    await sent(story, f"{YOUR_STEP[language]}stats")
    story.chat.take(words)
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n"
    [done] = [one for one in story.session.state.plans.values() for one in one.steps]
    assert DID[language] in done.found and done.answered == 1


@LANGUAGES
async def test_a_step_does_not_end_while_the_chat_finds_out_whom_the_words_are_for(
    tmp_path: Path, language: str
) -> None:
    """The last action of the step is over long before the chat has handed the words on."""
    words = SAYS[language]
    chat = of_chat(language, act("task_loop.message", text=GIST[language]), native=True)
    replies = [
        of_native(language, "stats", stats="SORTED = False\n"),
        replace(chat, delay=0.7),
        of_native(language, "stats", words=f"{words} (", stats="SORTED = True\n"),
        answers(language),
        decide(respond("ok"), step="PLANNING"),
        report_of(language),
    ]
    story = await planned(tmp_path, language, [step("stats")], replies)
    story.speak = lambda: story.chat.take(words)
    await story.tell(YES[language])
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n"


@LANGUAGES
async def test_a_step_that_begins_later_is_told_what_was_said_to_the_job(tmp_path: Path, language: str) -> None:
    words = SAYS[language]
    replies = [
        replace(of_native(language, "stats", stats="SORTED = False\n"), delay=1.0),
        of_chat(language, act("task_loop.message", text=GIST[language]), native=True),
        of_native(language, "stats", words=f"{words} (", stats="SORTED = True\n"),
        answers(language),
        decide(respond("I hand it on to the job."), step="PLANNING"),
        of_native(language, "page", page="P = 1\n"),
        report_of(language),
    ]
    story = await planned(tmp_path, language, [step("stats"), step("page", 1)], replies)
    await story.tell(YES[language])
    await sent(story, f"{YOUR_STEP[language]}stats")
    story.chat.take(words)
    assert (await job_ended(story)).status == "completed"
    told = line(request_of(story, language, "page"), TO_JOB[language])
    passed_on = note(language, "passed_on", words=words, text=GIST[language])
    assert told == note(language, "said_to_job", steps="stats", over="", words=passed_on), "with the model's own words"
    assert "I hand it on to the job." not in request_of(story, language, "page"), "that is no finding"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("for the page: blue, please", ["page"]),
        ("page.py gets blue, please", ["page"]),
        ("everything in blue, please", ["stats", "page"]),
    ],
)
async def test_of_two_steps_at_work_those_hear_it_that_it_names(tmp_path: Path, text: str, told: list[str]) -> None:
    replies = [
        of_native("en", "base", base="B = 1\n"),
        replace(of_native("en", "stats", stats="S = 1\n"), delay=1.0),
        replace(of_native("en", "page", page="P = 1\n"), delay=1.0),
        of_chat("en", act("task_loop.message", text="make it blue"), native=True),
        *(
            of_worker(
                True, "en", "", act("shell.run", command="echo 'BLUE = 1' | tee page.py stats.py"), words=f"{text} ("
            )
            for _ in told
        ),
        *(answers("en") for _ in told),
        decide(respond("ok"), step="PLANNING"),
        of_native("en", "end", end="E = 1\n"),
        report_of("en"),
    ]
    steps = [step("base"), step("stats", 1), step("page", 1), step("end", 2, 3)]
    story = await planned(tmp_path, "en", steps, replies)
    await story.tell("yes")
    for name in ("stats", "page"):
        await sent(story, f"Your step: {name}\n")
    story.chat.take(text)
    assert (await job_ended(story)).status == "completed"
    assert [event.step for event in story.all(StepTold)] == told
    said = line(request_of(story, "en", "end"), TO_JOB["en"])
    assert said.startswith(f"to {', '.join(told)}, when base was done already") and said.count(text) == 1


@LANGUAGES
async def test_a_wish_that_comes_after_the_end_of_its_step_is_open_for_the_later_ones(
    tmp_path: Path, language: str
) -> None:
    words = SAYS[language]
    replies = [
        of_native(language, "stats", stats="SORTED = False\n"),
        replace(of_native(language, "page", page="P = 1\n"), delay=1.0),
        of_chat(language, act("task_loop.message", id="stats", text=GIST[language]), native=True),
        decide(respond("It came too late."), step="PLANNING"),
        of_native(language, "end", end="E = 1\n"),
        report_of(language),
    ]
    story = await planned(tmp_path, language, [step("stats"), step("page", 1), step("end", 2)], replies)
    await story.tell(YES[language])
    await sent(story, f"{YOUR_STEP[language]}page")
    story.chat.take(words)
    assert (await job_ended(story)).status == "completed"
    request = request_of(story, language, "end")
    passed_on = note(language, "passed_on", words=words, text=GIST[language])
    assert note(language, "wish_too_late", words=passed_on) in line(request, BEFORE[language])
    assert TO_JOB[language] not in request, "it stands there once"

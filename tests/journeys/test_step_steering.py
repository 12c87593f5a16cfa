"""What the user says about a step that is at work reaches its next request word for word, and its end answers it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, ActionStarted, Event, Noticed, PlanChanged
from duckflow.events.work import JobChanged, JobEnded, StepChanged, StepTold
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from duckflow.view.items import NoticeItem
from duckflow.view.view import items_of
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, job_ended, report, until, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_steps import RUN_ALL, a_plan, written

BOTH = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
SAYS = {"en": "Please also sort the stats by size", "ja": "統計は大きい順に並べてください"}
GIST = {"en": "sort by size", "ja": "大きい順に"}
DID = {"en": "The stats are sorted by size now.", "ja": "統計は大きい順になりました。"}
YES = {"en": "yes", "ja": "はい"}
FIRST = written(stats="SORTED = False\n", extra="x = 1\n")
SORTED = written(stats="SORTED = True\n")


class Steering(Story):
    """The user speaks when a job begins its first action."""

    speak: Callable[[], object] | None = None

    def _hear(self, _: int, event: Event) -> None:
        super()._hear(_, event)
        if isinstance(event, ActionStarted) and event.job and event.action.operation == "file_ops.write_file":
            speak, self.speak = self.speak, None
            if speak:
                speak()

    def answer(self, question: Question) -> Answer | None:
        return Answer(choice="yes")


def of_worker(
    native: bool, language: str, step: str, *actions: dict[str, Any], words: str = "", answer: str = ""
) -> Any:
    """A reply of whoever carries the step out; with `words`, to the request that has them."""
    if native:
        asked = {"en": "Your step: ", "ja": "あなたのステップ: "}[language] + step
        return replace(called({"rationale": "I do it.", "actions": list(actions)}), when=words or asked)
    asked = {"en": "Now its step: ", "ja": "いまのステップ: "}[language] + step
    return when(words or asked, {"tasks": list(actions)} | ({"answer": answer} if answer else {}))


def of_chat(language: str, *actions: dict[str, Any], native: bool) -> Any:
    """The conversation's reply to what the user says while a job is at work."""
    begins = note(language, "job_listens")[:15]
    decision = decide(*actions, next_step="continue", step="PLANNING")
    return replace(called(decision), when=begins) if native else when(begins, decision)


def report_of(language: str) -> Any:
    ended = {"en": "A background job has ended", "ja": "バックグラウンドのジョブが終わりました"}[language]
    return when(ended, report())


async def at_work(tmp_path: Path, native: bool, replies: list[Any], language: str = "en", **other: Any) -> Steering:
    plan = a_plan(("stats", "stats.py exists"))
    drafted = when({"en": "Make a plan", "ja": "計画を立て"}[language], plan) if native else plan
    story = Steering(tmp_path, [PROPOSE, drafted, RUN_ALL, *replies], native=native, language=language, **other)
    await story.tell("do the work")
    return story


def shown(story: Story, language: str = "en") -> str:
    """The lines that every front end draws."""
    notices = [event.what for event in story.all(Noticed)]
    kept = [item.what for item in items_of(story.chat.record()) if isinstance(item, NoticeItem) and item.what]
    results = [event.result.for_user for event in story.all(ActionFinished)]
    return "\n".join(map(Words(language).phrase, [*notices, *kept, *results]))


@pytest.mark.one_in(2)
@BOTH
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_words_to_the_chat_reach_the_step_and_its_end_answers(
    tmp_path: Path, native: bool, language: str
) -> None:
    words = SAYS[language]
    replies = [
        of_worker(native, language, "stats", *FIRST),
        of_chat(language, act("task_loop.message", text=GIST[language]), native=native),
        of_worker(native, language, "stats", *SORTED, words=f"{words} (", answer=DID[language]),
        *([replace(called(decide(respond(DID[language]))), when=note(language, "step_answer")[:15])] if native else []),
        decide(respond("ok"), step="PLANNING"),
        report_of(language),
    ]
    story = await at_work(tmp_path, native, replies, language)
    story.speak = lambda: story.chat.take(words)
    await story.tell(YES[language])
    assert (await job_ended(story)).status == "completed"
    told = next(place for place, event in enumerate(story.events) if isinstance(event, StepTold))
    begun = [event for event in story.events[told:] if isinstance(event, ActionStarted) and event.job]
    assert begun[0].action.args["path"] == "stats.py", "what was planned before is not run any more"
    assert not (story.folder / "extra.py").exists()
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n"
    [step] = next(iter(story.session.state.plans.values())).steps
    assert DID[language] in step.found and step.answered == 1
    lines = shown(story, language)
    assert lines.count(words) == 1 and DID[language] in lines


@pytest.mark.parametrize(("language", "line"), [("en", DID["en"]), ("ja", DID["ja"]), ("en", "Now the edits.")])
async def test_a_line_before_the_calls_that_is_about_the_words_answers_them(
    tmp_path: Path, language: str, line: str
) -> None:
    """No request only asks for the answer. A line that is about something else is no answer."""
    words, answered = SAYS[language], line == DID[language]
    sorting = replace(called({"rationale": line, "actions": SORTED}), when=f"{words} (")
    asked_again = replace(called(decide(respond(DID[language]))), when=note(language, "step_answer")[:15])
    replies = [
        of_worker(True, language, "stats", *FIRST),
        of_chat(language, act("task_loop.message", text=GIST[language]), native=True),
        sorting,
        *([] if answered else [asked_again]),
        decide(respond("ok"), step="PLANNING"),
        report_of(language),
    ]
    story = await at_work(tmp_path, True, replies, language)
    story.speak = lambda: story.chat.take(words)
    await story.tell(YES[language])
    assert (await job_ended(story)).status == "completed"
    [step] = next(iter(story.session.state.plans.values())).steps
    assert DID[language] in step.found and DID[language] in shown(story, language)
    assert len(story.model.requests) == len((PROPOSE, "draft", RUN_ALL)) + len(replies)


@BOTH
async def test_words_by_which_the_plan_is_revised_reach_the_step_too(tmp_path: Path, native: bool) -> None:
    words = SAYS["en"]
    steps = [{"name": "stats", "description": "stats, sorted by size", "success": "stats.py exists", "was": 1}]
    replies = [
        of_worker(native, "en", "stats", *FIRST),
        of_chat("en", act("plan_tool.revise", text="sort by size", steps=steps), native=native),
        of_worker(native, "en", "stats", *SORTED, words=f"{words} (", answer=DID["en"]),
        *([replace(called(decide(respond(DID["en"]))), when="the user spoke")] if native else []),
        decide(respond("ok"), step="PLANNING"),
        report_of("en"),
    ]
    story = await at_work(tmp_path, native, replies)
    story.speak = lambda: story.chat.take(words)
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n" and DID["en"] in shown(story)


@BOTH
async def test_a_plan_edited_under_a_running_job_is_heard_by_its_step(tmp_path: Path, native: bool) -> None:
    class Editing(Steering):
        def answer(self, question: Question) -> Answer | None:
            if question.kind != "edit":
                return super().answer(question)
            return Answer(choice="edit", text=question.text.replace("what: stats", "what: the stats, largest first"))

    replies = [
        PROPOSE,
        when("Make a plan", a_plan(("stats", "stats.py exists"))) if native else a_plan(("stats", "")),
        RUN_ALL,
        of_worker(native, "en", "stats", *FIRST),
        of_worker(
            native, "en", "stats", *SORTED, words="What is made or changed: the stats, largest", answer=DID["en"]
        ),
        *([replace(called(decide(respond(DID["en"]))), when="the user spoke")] if native else []),
        report_of("en"),
    ]
    story = Editing(tmp_path, replies, native=native)
    await story.tell("do the work")
    story.speak = lambda: story.chat.take("/plan edit")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n" and DID["en"] in shown(story)


async def test_a_step_that_does_not_answer_is_not_completed(tmp_path: Path) -> None:
    again = [
        replace(called({"rationale": "I do it.", "actions": SORTED}), when=words)
        for words in ("adds: sort", *["the user spoke"] * 2)
    ]
    replies = [
        of_worker(True, "en", "stats", *FIRST),
        of_chat("en", act("task_loop.message", text="sort"), native=True),
        *again,
        decide(respond("ok"), step="PLANNING"),
        report_of("en"),
    ]
    story = await at_work(tmp_path, True, replies)
    story.speak = lambda: story.chat.take(SAYS["en"])
    await story.tell("yes")
    assert (await job_ended(story)).status == "failed"
    assert Words("en")("step.unanswered", step="stats") in shown(story)
    assert Words("en")("step.too_late", step="stats", text="").split("“")[0] in shown(story)


@BOTH
async def test_what_comes_while_the_last_action_runs_is_not_lost(tmp_path: Path, native: bool) -> None:
    """The only call of the step is running: the step has to hear the words before it may end."""
    words = SAYS["en"]
    replies = [
        of_worker(native, "en", "stats", *FIRST[:1]),
        of_chat("en", act("task_loop.message", text="sort"), native=native),
        of_worker(native, "en", "stats", *SORTED, words=f"{words} (", answer=DID["en"]),
        *([replace(called(decide(respond(DID["en"]))), when="the user spoke")] if native else []),
        decide(respond("ok"), step="PLANNING"),
        report_of("en"),
    ]
    story = await at_work(tmp_path, native, replies)
    story.speak = lambda: story.chat.take(words)
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "stats.py").read_text() == "SORTED = True\n"


class Stopping(Steering):
    def answer(self, question: Question) -> Answer | None:
        return Answer(choice="stop" if question.kind == "duck_call" else "yes")


@BOTH
async def test_a_job_whose_duck_call_is_answered_with_stop_is_over(tmp_path: Path, native: bool) -> None:
    names = [f"{name}.txt" for name in "abcdef"]
    reads = [act("file_ops.read_file", path=name) for name in names]
    first, second = (of_worker(True, "en", "stats", one) for one in reads[:2])
    work = [first, replace(second, when="loop 2 of")] if native else [when("Now its step: stats", {"tasks": reads})]
    settings = {"pacemaker": {"limits": {"lowest": 2, "highest": 2, "fallback": 2, "ceiling": 2}}}
    drafted = when("Make a plan", a_plan(("stats", "stats.py exists")))
    story = Stopping(tmp_path, [PROPOSE, drafted, RUN_ALL, *work, report_of("en")], native=native, settings=settings)
    for name in names:
        (story.folder / name).write_text(f"what {name} says\n")
    await story.tell("do the work")
    await story.tell("yes")
    assert (await job_ended(story)).status == "cancelled"
    assert len(story.duck_calls()) == 1 and not story.session.state.live_jobs()
    assert [event.status for event in story.all(JobChanged)] == []


@BOTH
async def test_what_comes_too_late_is_told_to_user_and_model(tmp_path: Path, native: bool) -> None:
    replies = [
        of_worker(native, "en", "stats", *FIRST),
        report_of("en"),
        decide(act("task_loop.message", id="1", text="sort"), next_step="continue", step="PLANNING"),
        decide(respond("It was over; I do it here."), step="PLANNING"),
    ]
    story = await at_work(tmp_path, native, replies)
    await story.tell("yes")
    await job_ended(story)
    await story.tell(SAYS["en"])
    assert note("en", "step_over", step="stats")[:40] in story.prompt()
    [late] = [event for event in story.all(ActionFinished) if not event.result.ok]
    assert SAYS["en"] in Words("en").phrase(late.result.for_user) and not story.all(StepTold)


@BOTH
async def test_between_two_steps_the_next_one_hears_it(tmp_path: Path, native: bool) -> None:
    """The job is paused when its first step has ended; what is said then belongs to the second."""
    plan = a_plan(("first", "extra.py exists"), ("stats", "stats.py exists"))
    drafted = when("Make a plan", plan) if native else plan
    replies = [
        *(PROPOSE, drafted, RUN_ALL),
        of_worker(native, "en", "first", FIRST[1]),
        of_chat("en", act("task_loop.message", text="sort"), native=native),
        decide(respond("ok"), step="PLANNING"),
        of_worker(native, "en", "stats", *SORTED, words=f"{SAYS['en']} (", answer=DID["en"]),
        *([replace(called(decide(respond(DID["en"]))), when="the user spoke")] if native else []),
        report_of("en"),
    ]

    class Pausing(Steering):
        def _hear(self, _: int, event: Event) -> None:
            super()._hear(_, event)
            if isinstance(event, StepChanged) and event.status == "completed" and len(self.all(StepChanged)) == 2:
                self.chat.work.control("pause")

    story = Pausing(tmp_path, replies, native=native)
    await story.tell("do the work")
    await story.tell("yes")
    await until(story, lambda: any(job.status == "paused" for job in story.session.state.jobs.values()))
    await story.tell(SAYS["en"])
    assert [event.step for event in story.all(StepTold)] == ["stats"]
    story.chat.work.control("resume")
    await until(story, lambda: bool(story.all(JobEnded)))
    assert story.all(JobEnded)[0].status == "completed" and DID["en"] in shown(story)


@BOTH
async def test_the_call_is_told_of_only_where_there_is_a_plan(tmp_path: Path, native: bool) -> None:
    story = await at_work(tmp_path, native, [])
    prompts = [story.prompt(number) for number, _ in enumerate(story.model.requests)]
    told = ["task_loop_message" in prompt or "task_loop.message" in prompt for prompt in prompts]
    assert not any(told) and story.all(PlanChanged)

"""A tool that is defined only here: everything that the program does with it, it learns from the tool."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished, ActionStarted
from duckflow.i18n.words import Words
from duckflow.llm.scripted import WINDOW, Line
from duckflow.pacemaker.signatures import step_of
from duckflow.state.action import Action, ActionResult, Effect, StepKind
from duckflow.state.data import Phrase, tell
from duckflow.state.plan import Step, Task, TaskList, clash, touched
from duckflow.state.question import Answer, FileImpact, Preview
from duckflow.tools.tool import Args, Done, Tool
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when
from tests.journeys.story import Story, act, decide, respond

TOLD = {"en": "put a stamp on a file", "ja": "ファイルにスタンプを押す"}


class StampArgs(Args):
    file: str
    mark: str = "*"


class Stamp(Tool[StampArgs]):
    """Puts a mark at the end of a file."""

    operation = "stamps.put"
    effect = "write"
    told = TOLD
    args = StampArgs
    paths = ("file",)
    led = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def preview(self, args: StampArgs) -> Preview:
        return Preview(impacts=(FileImpact(path=args.file, change="edit", added=1),), diff=f"+{args.mark}")

    def doing(self, args: StampArgs) -> Phrase:
        return tell({"en": "stamping {file}", "ja": "{file} にスタンプを押しています"}, file=args.file)

    async def run(self, args: StampArgs) -> Done:
        with (self._folder / args.file).open("a") as file:
            file.write(args.mark)
        told = tell({"en": "{file} has its stamp.", "ja": "{file} にスタンプを押しました。"}, file=args.file)
        return Done(f"stamped {args.file}", told, changed=(args.file,))


class Look(Stamp):
    """The same without a deed, with any effect."""

    operation = "stamps.look"

    def __init__(self, effect: Effect) -> None:
        self.effect = effect

    async def run(self, args: StampArgs) -> Done:
        return Done("nothing new", tell({"en": "Looked.", "ja": "見ました。"}))


class Meet(Look):
    """Returns only when another call runs at the same time."""

    operation = "stamps.meet"

    def __init__(self) -> None:
        super().__init__("read")
        self._both = asyncio.Barrier(2)

    async def run(self, args: StampArgs) -> Done:
        await asyncio.wait_for(self._both.wait(), 30)
        return Done(f"met at {args.file}", tell({"en": "Met.", "ja": "会いました。"}))


PUT = decide(act("stamps.put", file="a.txt"), respond("ok"))


def with_stamp(
    tmp_path: Path, replies: Iterable[Line], mode: str = "ask", language: str = "en", window: int = WINDOW
) -> Story:
    story = Story(tmp_path, replies, mode, language, window=window)
    (story.folder / "a.txt").write_text("text")
    story.toolbox.add(Stamp(story.folder))
    return story


def finished(story: Story, operation: str) -> list[ActionResult]:
    return [event.result for event in story.all(ActionFinished) if event.result.operation == operation]


@pytest.mark.parametrize("window", [WINDOW, 4096], ids=["large", "small"])
@pytest.mark.parametrize(("language", "told"), [("en", "put a stamp on a file"), ("ja", "ファイルにスタンプを押す")])
async def test_it_is_offered_in_prompt_and_schema_until_it_is_removed(
    tmp_path: Path, language: str, told: str, window: int
) -> None:
    hello = decide(respond("hello"), step="PLANNING")
    story = with_stamp(tmp_path, [hello, hello], language=language, window=window)
    await story.tell("stamp the text")
    assert f"stamps.put(file{'' if window == 4096 else ', mark?'}): {told}" in story.prompt()
    assert "stamps.put" in json.dumps(story.model.requests[-1].schema)
    story.toolbox.remove("stamps.put")
    await story.tell("stamp it again")
    assert told not in story.prompt()
    assert "stamps.put" not in json.dumps(story.model.requests[-1].schema)


async def test_a_removed_tool_is_unknown_and_the_nearest_are_named(tmp_path: Path) -> None:
    story = with_stamp(tmp_path, [PUT, decide(respond("I cannot."), step="PLANNING")])
    story.toolbox.add(Look("read"))
    story.toolbox.remove("stamps.put")
    await story.tell("stamp it")
    [failed] = finished(story, "stamps.put")
    assert failed.for_model.startswith(
        "unknown operation 'stamps.put'. Valid operations, the nearest first: stamps.look"
    )
    assert (story.folder / "a.txt").read_text() == "text"


async def test_reads_of_one_reply_run_side_by_side_and_are_told_in_order(tmp_path: Path) -> None:
    meet = decide(act("stamps.meet", file="a"), act("stamps.meet", file="b"), step="PLANNING")
    story = with_stamp(tmp_path, [meet, decide(respond("Both."), step="PLANNING")])
    story.toolbox.add(Meet())
    await story.tell("meet")
    assert [one.for_model for one in finished(story, "stamps.meet")] == ["met at a", "met at b"]


async def test_the_gate_shows_its_preview_and_a_no_keeps_it_from_running(tmp_path: Path) -> None:
    story = with_stamp(tmp_path, [PUT])
    story.answers = [Answer(choice="no")]
    await story.tell("stamp it")
    [question] = story.questions
    assert question.gate and question.gate.operations == ("stamps.put",)
    assert (question.gate.risk, question.gate.diff, question.gate.impacts[0].path) == ("medium", "+*", "a.txt")
    assert (story.folder / "a.txt").read_text() == "text"


@pytest.mark.parametrize(
    ("effect", "mode", "asked"),
    [
        ("read", "ask", False),
        ("plan", "ask", False),
        ("write", "ask", True),
        ("memory", "ask", True),
        ("run", "ask", True),
        ("network", "ask", True),
        ("write", "full-auto", False),
        ("run", "full-auto", False),
        ("network", "full-auto", True),
        ("network", "plan", True),
    ],
)
async def test_the_gate_asks_by_its_effect(tmp_path: Path, effect: Effect, mode: str, asked: bool) -> None:
    story = with_stamp(tmp_path, [decide(act("stamps.look", file="a.txt"), respond("ok"))], mode)
    story.toolbox.add(Look(effect))
    story.answers = [Answer(choice="yes")]
    await story.tell("look at it")
    assert bool(story.questions) is asked
    assert [result.ok for result in finished(story, "stamps.look")] == [True]


@pytest.mark.parametrize(
    ("effect", "kind"),
    [("read", "read"), ("write", "edit"), ("run", "run"), ("network", "search"), ("plan", "other"), ("memory", "edit")],
)
async def test_the_pacemaker_counts_it_by_its_effect(tmp_path: Path, effect: Effect, kind: StepKind) -> None:
    story = with_stamp(tmp_path, [decide(act("stamps.look", file="a.txt"), respond("ok"))])
    story.toolbox.add(Look(effect))
    story.answers = [Answer(choice="yes")]
    await story.tell("look at it")
    [result] = finished(story, "stamps.look")
    assert step_of(Action(operation="stamps.look", reasoning="why"), result).kind == kind


async def test_the_pacemaker_steps_in_when_it_is_called_over_and_over(tmp_path: Path) -> None:
    again = decide(act("stamps.look", file="a.txt"), step="PLANNING", next_step="continue")
    story = with_stamp(tmp_path, [again] * 30)
    story.toolbox.add(Look("read"))
    assert await story.tell("look at it") == "pacemaker"
    assert story.duck_calls()


@pytest.mark.parametrize(
    ("language", "doing", "done"),
    [
        ("en", "stamping a.txt", "a.txt has its stamp."),
        ("ja", "a.txt にスタンプを押しています", "a.txt にスタンプを押しました。"),
    ],
)
async def test_it_is_shown_in_both_languages_while_it_runs_and_afterwards(
    tmp_path: Path, language: str, doing: str, done: str
) -> None:
    story = with_stamp(tmp_path, [PUT], "full-auto", language)
    await story.tell("stamp it")
    # From the journal, where the tool itself is not known any more.
    story = story.restart([])
    events = [event for _, event in story.session.record() if isinstance(event, ActionStarted | ActionFinished)]
    words = Words(language)
    assert [words.phrase(one.doing) for one in events if isinstance(one, ActionStarted) and one.doing] == [doing]
    told = [one.result for one in events if isinstance(one, ActionFinished) and one.result.said is None]
    assert [words.phrase(one.for_user) for one in told] == [done]


async def test_it_is_undone(tmp_path: Path) -> None:
    story = with_stamp(tmp_path, [PUT], "full-auto")
    assert await story.tell("stamp it") == "done"
    assert (story.folder / "a.txt").read_text() == "text*"
    await story.chat.undo.restore(back=True)
    assert (story.folder / "a.txt").read_text() == "text"
    await story.chat.undo.close()


async def test_it_is_undone_even_if_it_cannot_say_what_it_touches(tmp_path: Path) -> None:
    story = with_stamp(tmp_path, [PUT], "full-auto")
    careless = Stamp(story.folder)
    careless.paths = ()
    story.toolbox.add(careless)
    assert await story.tell("stamp it") == "done"
    await story.chat.undo.restore(back=True)
    assert (story.folder / "a.txt").read_text() == "text"
    await story.chat.undo.close()


async def test_a_job_uses_it_and_schedules_by_what_it_touches(tmp_path: Path) -> None:
    replies = [
        *(PROPOSE, SNAKE, run_step(1)),
        {"tasks": [act("stamps.put", "stamp it", file="a.txt")]},
        when("A background job has ended", report("Stamped.")),
    ]
    story = with_stamp(tmp_path, replies, "full-auto")
    await story.tell("make a snake game")
    assert await story.tell("yes") == "deferred"
    assert (await job_ended(story)).status == "completed"
    assert (story.folder / "a.txt").read_text() == "text*"
    plan = story.session.state.plan
    assert plan and plan.steps[0].tasks[0].touches == ("a.txt",)

    [put] = [one for one in story.toolbox.operations() if one.name == "stamps.put"]

    def step(file: str) -> Step:
        return Step(name=file, task_list=TaskList(tasks=[Task.of(put, {"file": file})]))

    assert touched(step("a.txt")) == {"a.txt"}
    assert clash(touched(step("a.txt")), touched(step("a.txt")))
    assert not clash(touched(step("a.txt")), touched(step("b.txt")))

"""A model that will not stop is stopped; one that works honestly for long is left alone."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duckflow.events.types import Noticed, TurnEnded
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Line, ScriptedReply
from duckflow.state.message import ToolCall
from duckflow.state.phase import Phase
from duckflow.state.question import Answer
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

MOST = 30
CEILING = 120
WORDS = ["harbour", "lantern", "meadow", "copper", "violet", "thunder", "walnut", "saddle", "ribbon", "glacier"]
Deeds = Callable[[int], list[dict[str, Any]]]


def going(deeds: Deeds, most: int = 250, **other: Any) -> Iterator[dict[str, Any]]:
    """A model that goes on and on."""
    return (decide(*deeds(n), next_step="continue", **other) for n in range(1, most))


def word(number: int) -> str:
    return f"{WORDS[number % 10]} {WORDS[number * 7 % 9]} {number}"


def read(path: str, first: int = 1, last: int = 0) -> dict[str, Any]:
    return act("file_ops.read_file", path=path, start_line=first, end_line=last)


def run(command: str) -> dict[str, Any]:
    return act("shell.run", command=command)


def write(path: str, content: str) -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content=content)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return act("file_ops.edit_file", path=path, edits=[{"old": old, "new": new}])


def junk(number: int) -> list[dict[str, Any]]:
    return [write(f"extra_{WORDS[number % 10]}_{number}.md", f"About {word(number)}.\n")]


def commenting(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [read("main.py")]
    old = "print('hi')\n" if number == 2 else f"# {word(number - 1)}\n"
    return [edit("main.py", old, f"{old if number == 2 else ''}# {word(number)}\n")]


RUNAWAYS: dict[str, Deeds] = {
    "talks in ever other words": lambda n: [respond(f"Now I think of {word(n)}.")],
    "decides nothing": lambda n: [],
    "makes files that nobody asked for": junk,
    "echoes words": lambda n: [run(f"echo {word(n)}")],
    "asks what time it is": lambda n: [run("date +%N")],
    "lists the same folder under other names": lambda n: [act("file_ops.list_files", path="./" * (n % 40) or ".")],
    "looks for files that are nowhere": lambda n: [act("file_ops.find_files", pattern=f"*{WORDS[n % 10]}{n}*")],
    "calls operations that there are not": lambda n: [act(f"magic.{WORDS[n % 10]}_{n}")],
    "talks and reads the same": lambda n: [respond(word(n)), read("notes.txt")],
    "improves its own comment": commenting,
    "reads a line more each time": lambda n: [read("notes.txt", 1, 200 + n)],
}


def prepared(top: Path, replies: Iterator[Line], language: str = "en", **other: Any) -> Story:
    story = Story(top, replies, language=language, **other)
    (story.folder / "main.py").write_text("print('hi')\n")
    (story.folder / "notes.txt").write_text("".join(f"line {n}\n" for n in range(400)))
    return story


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("language", "native"), [("en", False), ("ja", True)])
@pytest.mark.parametrize("behaviour", RUNAWAYS)
async def test_what_will_not_stop_is_asked_about(tmp_path: Path, behaviour: str, language: str, native: bool) -> None:
    # With tools a text without a call is an answer, and ends the turn.
    native = native and not behaviour.startswith("talks in ever")
    story = prepared(tmp_path, going(RUNAWAYS[behaviour]), language, native=native)
    assert await story.tell("Make main.py print the numbers from 1 to 10.") == "pacemaker"
    assert len(story.model.requests) <= MOST
    assert story.duck_calls()


ONLY_DECIDES = ToolCall(call_id="1", name="decision", arguments='{"step": "PLANNING"}')
SAYS_DONE = ToolCall(call_id="1", name="decision", arguments='{"next_step": "done"}')
NOTHING: dict[str, tuple[bool, Any]] = {
    "no actions": (False, decide(next_step="continue", rationale="hm")),
    "no actions, and done": (False, decide(rationale="hm")),
    "an empty reply": (True, ScriptedReply("")),
    "only what it is doing": (True, ScriptedReply("", calls=(ONLY_DECIDES,))),
    "only done": (True, ScriptedReply("", calls=(SAYS_DONE,))),
}


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("kind", NOTHING)
async def test_nothing_decided_twice_is_asked_about(tmp_path: Path, kind: str, language: str) -> None:
    native, reply = NOTHING[kind]
    story = prepared(tmp_path, iter([reply] * 9), language, native=native)
    assert await story.tell("Make main.py print the numbers from 1 to 10.") == "pacemaker"
    assert len(story.model.requests) == 2
    assert all(one.text or one.calls for one in story.model.requests[1].messages), "nothing empty is sent back"


async def test_an_empty_reply_is_told_as_such(tmp_path: Path) -> None:
    story = prepared(tmp_path, iter([ScriptedReply(""), ScriptedReply("It prints.")]), native=True)
    assert await story.tell("What does main.py do?") == "done"
    assert note("en", "nothing_decided") in story.prompt() and note("en", "replan") not in story.prompt()


async def test_who_only_says_what_it_is_doing_twice_has_said_it(tmp_path: Path) -> None:
    story = prepared(tmp_path, iter([ScriptedReply("I note this.", calls=(ONLY_DECIDES,))] * 9), native=True)
    assert await story.tell("What do you think of the weather?") == "done"
    assert len(story.model.requests) == 2 and story.said() == ["I note this."]


@pytest.mark.parametrize(
    "last", [ScriptedReply("", calls=(SAYS_DONE,)), ScriptedReply("It prints.", calls=(ONLY_DECIDES,))]
)
async def test_who_has_worked_may_end_with_few_words(tmp_path: Path, last: ScriptedReply) -> None:
    work = decide(read("main.py"), write("main.py", "print(*range(1, 11))\n"), next_step="continue")
    story = prepared(tmp_path, iter([work, last]), native=True)
    assert await story.tell("Make main.py print the numbers from 1 to 10.") == "done"
    assert len(story.model.requests) == 2


def many_files(number: int) -> list[dict[str, Any]]:
    return [write(f"part_{number:02}.md", f"Part {number}.\n")]


def reading_on(number: int) -> list[dict[str, Any]]:
    return [read("notes.txt", 10 * number - 9, 10 * number)]


def documenting(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [read("shapes.py")]
    return [edit("shapes.py", f"def f{number}(): pass\n", f"def f{number}():\n    '''Shape {number}.'''\n")]


def failing_less(number: int) -> list[dict[str, Any]]:
    """Tries in vain now and then, but ever fewer cases fail."""
    if number % 3 == 1:
        return [run("sh check.sh")]
    return [write("left.txt", "case\n" * max(0, 12 - number // 3)) if number % 3 else read("left.txt")]


HONEST: dict[str, tuple[str, Deeds, int]] = {
    "a series of files": ("Write part_01.md to part_40.md, one after the other.", many_files, 40),
    "a series without an end in words": ("part_NN.md に章を順番に書いてください。", many_files, 40),
    "a long text read bit by bit": ("What does notes.txt say?", reading_on, 40),
    "many places of one file": ("Add a docstring to every function of shapes.py.", documenting, 40),
    "a check that fails less and less": ("Run sh check.sh until left.txt has no cases.", failing_less, 36),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", HONEST)
async def test_honest_work_goes_on_and_each_extension_says_why(tmp_path: Path, name: str) -> None:
    request, deeds, loops = HONEST[name]
    # The second time for a reminder that not all is written.
    replies = iter([*going(deeds, loops + 1), *[decide(respond("Everything is done."))] * 2])
    story = prepared(tmp_path, replies)
    (story.folder / "shapes.py").write_text("".join(f"def f{n}(): pass\n" for n in range(50)))
    (story.folder / "check.sh").write_text("cat left.txt; test ! -s left.txt\n")
    (story.folder / "left.txt").write_text("case\n" * 13)
    assert await story.tell(request) == "done"
    extended = [one.what for one in story.all(Noticed) if one.what.key.startswith("pacemaker.extended.")]
    assert extended
    for language in ("en", "ja"):
        assert all("{" not in Words(language).phrase(one) for one in extended)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_the_ceiling_is_the_end_of_the_best_work(tmp_path: Path, language: str) -> None:
    limits = {"pacemaker": {"limits": {"ceiling": 25}}}
    story = prepared(tmp_path, going(reading_on), language, settings=limits)
    assert await story.tell("What does notes.txt say?") == "pacemaker"
    assert len(story.model.requests) == 25
    assert story.duck_calls()[0].details[0].key == "pacemaker.found.ceiling"


async def test_the_ceiling_holds_for_each_step_of_a_plan(tmp_path: Path) -> None:
    files = [f"part{n}.py" for n in range(6)]
    texts = [when(f"content of {name}", "print(1)\n") for name in files]
    ended = when("A background job has ended", report())
    limits = {"pacemaker": {"limits": {"lowest": 1, "highest": 4, "ceiling": 4}}}
    story = Story(tmp_path, [PROPOSE, SNAKE, run_step(1), write_tasks(*files), *texts, ended], settings=limits)
    story.answers = [Answer(choice="go_on")]
    await story.tell("make a snake game")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    assert [call.details[0].key for call in story.duck_calls()] == ["pacemaker.found.ceiling"]


ANY: list[Deeds] = [
    *RUNAWAYS.values(),
    many_files,
    reading_on,
    lambda n: [run(f"test {n % 3} = 1")],
    lambda n: [write("main.py", f"print({n})\n")],
    lambda n: [act("memory.recall", query=word(n))],
    lambda n: [act("memory.remember", text=word(n))],
    lambda n: [act("plan_tool.get")],
    lambda n: [act("task_loop.status")],
    lambda n: [act("file_ops.make_folder", path=f"folder{n}")],
    lambda n: [act("file_ops.move_file", source=f"folder{n - 1}", target=f"folder{n}")],
    lambda n: [act("file_ops.delete_file", path=f"folder{n}")],
]


def random_model(seed: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(seed)
    habits = dice.sample(ANY, dice.randint(1, 5))
    for number in range(1, 400):
        deeds = [deed for _ in range(dice.choice([1, 1, 1, 2, 3])) for deed in dice.choice(habits)(number)]
        step = dice.choice([*Phase])
        says = dice.choices(["continue", "done", "pending_user", "defer"], [30, 1, 1, 1])[0]
        chosen = "EXECUTION" if step is Phase.DONE else step.value
        yield decide(*deeds, step=chosen, next_step=says, confidence=dice.random())


async def ends_and_says_so(top: Path, seed: int) -> None:
    top.mkdir()
    story = prepared(top, random_model(seed), native=bool(seed % 2))
    outcome = await story.tell("Make main.py print the numbers from 1 to 10.")
    assert outcome != "failed", story.ending()
    assert len(story.model.requests) <= CEILING
    ended: TurnEnded = story.ending()
    assert story.said() or ended.why or story.questions, "it ended without a word"


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**9))
async def test_whatever_a_model_does_it_ends_and_says_so(tmp_path_factory: Any, seed: int) -> None:
    await ends_and_says_so(tmp_path_factory.mktemp("any") / "x", seed)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
async def test_a_few_random_models_end_and_say_so(tmp_path: Path, seed: int) -> None:
    await ends_and_says_so(tmp_path / "x", seed)

"""A step begins with what the conversation knows: the pieces of files it has read, and what the user wished for. The
report of its job is written from all that it has changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionStarted
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.step_files import StepFiles
from tests.journeys.plans import PROPOSE, job_ended, report, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import of_step
from tests.journeys.test_steps import RUN_ALL, a_plan, tasks_of, written

both = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
LINES = [f"def part_{number}(): return {number}  # {'x' * 20}" for number in range(1, 2001)]
LENGTHS = pytest.mark.parametrize("longer", [1, 6], ids=["short", "long"])
NO_READING = "they need no reading"


def read(path: str, **lines: Any) -> dict[str, Any]:
    return decide(act("file_ops.read_file", path=path, **lines), next_step="continue")


class Sight(Story):
    """A conversation that reads, plans one step, and has it carried out."""

    def __init__(self, top: Path, native: bool, looks: list[Any], step: str = "first", **other: Any) -> None:
        plan = json.dumps(a_plan((step, "a.py exists")))
        done = written(a="A = 1\n")
        carried_out = of_step(step, *done) if native else tasks_of(step, *done)
        replies = [*looks, PROPOSE, when("Make a plan for this goal", plan), RUN_ALL, carried_out]
        super().__init__(top, [*replies, when("A background job has ended", report())], native=native, **other)
        self._asked = f"{'Your' if native else 'Now its'} step: {step}"

    async def carried_out(self, *wishes: str) -> str:
        """Gives the request that the step's model got."""
        for wish in wishes:
            await self.tell(wish)
        await self.tell("yes")
        assert (await job_ended(self)).status == "completed"
        [request] = [text for text in map(self.prompt, range(len(self.model.requests))) if self._asked in text]
        return request


@pytest.mark.one_in(2)
@both
@LENGTHS
async def test_what_the_chat_has_read_of_a_long_file_stands_in_the_step(
    tmp_path: Path, native: bool, longer: int
) -> None:
    looks = [read("src/big.py", start_line=900, end_line=940), read("src/big.py", start_line=930, end_line=960)]
    story = Sight(tmp_path, native, [*looks, decide(respond("The mistake is in part_933."))], "mend big.py")
    (story.folder / "src").mkdir()
    (story.folder / "src/big.py").write_text("\n".join(LINES * longer) + "\n")
    request = await story.carried_out("look at the parts", "make a plan")
    assert f"src/big.py, lines 900-960 of {2000 * longer}" in request, "two looks that overlap are one piece"
    assert "\n".join(LINES[899:960]) in request and LINES[898] not in request and LINES[960] not in request
    if native:
        assert NO_READING in request and "The mistake is in part_933." in request
    looked = [event for event in story.all(ActionStarted) if event.job and "big" in str(event.action.args)]
    assert not looked, "nothing is read on the screen that the request does not hold"


@both
async def test_a_piece_that_has_changed_since_is_left_out(tmp_path: Path, native: bool) -> None:
    looks = [read("older.txt"), read("same.txt"), decide(respond("Seen."))]
    story = Sight(tmp_path, native, looks, "mend older and same")
    (story.folder / "older.txt").write_text("alpha\nbeta\ngamma\n")
    (story.folder / "same.txt").write_text("delta\nepsilon\n")
    await story.tell("look at both")
    (story.folder / "older.txt").write_text("alpha\nother\ngamma\n")
    request = await story.carried_out("make a plan")
    assert "delta\nepsilon" in request
    assert "alpha" not in request and "beta" not in request
    looked = [event for event in story.all(ActionStarted) if event.job and "same" in str(event.action.args)]
    assert not looked, "the conversation has read it already"


async def test_what_a_step_wrote_into_a_long_file_stands_in_the_next(tmp_path: Path) -> None:
    """And what the conversation has read of that file, though it stands some lines lower now."""
    new = "def extra(): return 'extra'\n# made for the next step\n"
    edit = act("file_ops.edit_file", path="big.py", edits=[{"old": LINES[499] + "\n", "new": new + LINES[499] + "\n"}])
    plan = json.dumps(a_plan(("put extra into big.py", "extra is there"), ("use extra", "a.py exists")))
    replies = [read("big.py", start_line=495, end_line=520), decide(respond("Seen.")), PROPOSE]
    replies += [when("Make a plan for this goal", plan), RUN_ALL]
    replies += [of_step("put extra into big.py", edit), of_step("use extra", *written(a="A = 1\n"))]
    story = Story(tmp_path, [*replies, when("A background job has ended", report())], native=True)
    (story.folder / "big.py").write_text("\n".join(LINES) + "\n")
    for wish in ("look at big.py", "make a plan", "yes"):
        await story.tell(wish)
    assert (await job_ended(story)).status == "completed"
    [request] = [one for one in map(story.prompt, range(len(story.model.requests))) if "Your step: use extra" in one]
    assert "big.py, lines 495-522 of 2002" in request and "\n".join([*LINES[494:499], *new.split("\n")[:2]]) in request
    assert LINES[519] in request and LINES[520] not in request


@both
async def test_the_budget_holds_and_the_plans_files_come_first(tmp_path: Path, native: bool) -> None:
    settings = {"agent": {"step_characters": 1000}}
    looks = [read("core.txt"), read("other.txt"), decide(respond("Seen."))]
    story = Sight(tmp_path, native, looks, "change core.txt", settings=settings)
    for name in ("core", "other"):
        (story.folder / f"{name}.txt").write_text("".join(f"{name} {number}\n" for number in range(500)))
    request = await story.carried_out("look at both", "make a plan")
    assert "core 0\ncore 1\n" in request and "core.txt, lines 1-" in request
    assert "core 499" not in request and "other 1\n" not in request


@both
async def test_what_was_read_for_another_matter_stays_out_of_the_step(tmp_path: Path, native: bool) -> None:
    """The step gets files that its plan names, and those that were read in the turn of the plan; others, before it and
    after it, make its request no longer."""
    matters = [read("billing.py"), read("core.py"), decide(respond("Seen.")), read("near.py")]
    plan = json.dumps(a_plan(("mend the core", "a.py exists")))
    carried_out = (of_step if native else tasks_of)("mend the core", *written(a="A = 1\n"))
    replies = [*matters, PROPOSE, when("Make a plan for this goal", plan), read("later.py"), RUN_ALL, carried_out]
    story = Story(tmp_path, [*replies, when("A background job has ended", report())], native=native)
    for name in ("billing", "core", "near", "later"):
        (story.folder / f"{name}.py").write_text("".join(f"{name}_{number} = 1\n" for number in range(300)))
    for wish in ("how are bills made?", "make a plan for the snake game", "yes"):
        await story.tell(wish)
    assert (await job_ended(story)).status == "completed"
    asked = f"{'Your' if native else 'Now its'} step: mend the core"
    [request] = [text for text in map(story.prompt, range(len(story.model.requests))) if asked in text]
    assert "core_299" in request and "near_299" in request
    assert "billing_0" not in request and "later_0" not in request


@both
async def test_a_mentioned_file_is_known_to_the_step(tmp_path: Path, native: bool) -> None:
    story = Sight(tmp_path, native, [])
    (story.folder / "notes.md").write_text("use tabs\nnever spaces\n")
    assert "use tabs\nnever spaces" in await story.carried_out("make a plan from @notes.md")


@both
async def test_a_key_in_a_file_that_was_read_does_not_travel(tmp_path: Path, native: bool) -> None:
    story = Sight(tmp_path, native, [read("settings.txt"), decide(respond("Seen."))], "change the settings")
    key = "sk-proj-" + "a1B2c3D4" * 5
    (story.folder / "settings.txt").write_text(f"color = blue\nkey = {key}\n")
    request = await story.carried_out("look", "make a plan")
    assert "color = blue" in request and key not in request


@both
async def test_the_wish_and_every_correction_reach_the_step(tmp_path: Path, native: bool) -> None:
    corrections = [f"correction {number}: never touch file_{number}" for number in range(9)]
    story = Sight(tmp_path, native, [decide(respond("Understood.")) for _ in range(10)])
    wish = "I wish for a snake game " + "with many colours " * 12 + "and a violet hat"
    request = await story.carried_out(wish, *corrections, "make a plan")
    assert "and a violet hat" in request, "the wish is not cut after its first words"
    assert all(correction in request for correction in corrections)


async def test_without_quoted_files_nothing_is_said_of_them(tmp_path: Path) -> None:
    request = await Sight(tmp_path, True, []).carried_out("make a plan")
    assert NO_READING not in request and "quoted above" not in request


@pytest.mark.one_in(2)
@both
async def test_the_report_sees_every_change_with_its_size_before_any_look(tmp_path: Path, native: bool) -> None:
    looks = [act("file_ops.grep", pattern=f"word_{number}") for number in range(25)]
    files = {f"part_{number}": f"A = {number}\n" * (number + 1) for number in range(15)}
    by_command = act("shell.run", command="printf 'x\\ny\\n' > made.txt; printf 'new\\n' > old.txt")
    actions = [*looks, *written(**files), by_command]
    plan = json.dumps(a_plan(("first", "part_1.py exists")))
    carried_out = of_step("first", *actions) if native else tasks_of("first", *actions)
    ended = when("A background job has ended", report())
    replies = [PROPOSE, when("Make a plan for this goal", plan), RUN_ALL, carried_out, ended]
    story = Story(tmp_path, replies, native=native)
    (story.folder / "old.txt").write_text("one\ntwo\n")
    await story.tell("make the parts")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    request = story.prompt()
    assert all(f"part_{number}.py (create +{number + 1} -0)" in request for number in range(15))
    assert "made.txt (create +2 -0)" in request and "old.txt (edit +1 -2)" in request
    before, _, _ = request.partition("[completed] shell.run")
    assert before != request and "file_ops.grep" not in before, "looks come last"


async def test_a_text_without_a_call_has_one_role_in_a_step(tmp_path: Path) -> None:
    request = await Sight(tmp_path, True, []).carried_out("make a plan")
    assert "answer to the user" not in request and "Nobody reads" not in request
    assert "Your answer, a text without a call, ends the step." in request


GREP = decide(act("file_ops.grep", pattern="part_9[0-9]\\("), next_step="continue")
CHECK = decide(act("shell.run", command="echo checked big.py: 3 faults"), next_step="continue")


def seen_parts(top: Path, native: bool, *looks: Any) -> Sight:
    story = Sight(top, native, [*looks, decide(respond("Seen."))], "mend src/big.py")
    (story.folder / "src").mkdir()
    (story.folder / "src/big.py").write_text("\n".join(LINES) + "\n")
    (story.folder / "small.py").write_text("def part_99(): pass\n")
    return story


@both
async def test_what_the_chat_has_searched_and_run_stands_in_the_step(tmp_path: Path, native: bool) -> None:
    story = seen_parts(tmp_path, native, GREP, CHECK)
    request = await story.carried_out("look", "make a plan")
    assert f"small.py\n1:def part_99(): pass\n\nsrc/big.py\n90:{LINES[89]}".replace("\n\n", "\n") in request
    assert f"99:{LINES[98]}" in request and request.count("checked big.py: 3 faults") == 2, "the call, the output"


@both
async def test_a_line_that_changed_since_the_search_is_left_out_and_the_output_with_it(
    tmp_path: Path, native: bool
) -> None:
    story = seen_parts(tmp_path, native, GREP, CHECK)
    await story.tell("look")
    (story.folder / "src/big.py").write_text("\n".join([*LINES[:94], "def other(): pass", *LINES[95:]]) + "\n")
    request = await story.carried_out("make a plan")
    assert f"94:{LINES[93]}\n96:{LINES[95]}" in request and "part_95(" not in request
    assert "3 faults" not in request


@both
async def test_a_quoted_line_is_the_files_own_whole_line(tmp_path: Path, native: bool) -> None:
    """A line that only begins so now, and lines of a file that is gone and stand in the one before it, are left out."""
    looks = [decide(act("file_ops.grep", pattern="limit", context=1), next_step="continue"), decide(respond("Seen."))]
    story = Sight(tmp_path, native, looks, "mend a_core.py")
    (story.folder / "a_core.py").write_text("import os\nlimit = 1\nend = 2\n")
    (story.folder / "b_gone.py").write_text("import os\nlimit = 3\nend = 2\n")
    await story.tell("look")
    (story.folder / "a_core.py").write_text("import os\nlimit = 10\nend = 2\n" + "x" * 90000)
    (story.folder / "b_gone.py").unlink()
    request = await story.carried_out("make a plan")
    quoted = request[request.index("file_ops.grep limit") :]
    assert "limit = 1" not in quoted and "b_gone.py" not in quoted
    assert quoted.count("1-import os") == quoted.count("3-end = 2") == 1


@both
async def test_what_is_not_about_the_plans_files_or_finds_no_room_is_left_out(tmp_path: Path, native: bool) -> None:
    other = decide(act("shell.run", command="echo weather: fine"), next_step="continue")
    long = decide(act("shell.run", command="echo big.py; seq 1 9000"), next_step="continue")
    request = await seen_parts(tmp_path, native, other, long).carried_out("look", "make a plan")
    assert "weather: fine" not in request and "8999" not in request


def planned(name: str, description: str, *after: int, success: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "success": success, "depends_on": list(after)}


async def test_what_belongs_to_another_step_stays_out_of_a_step(tmp_path: Path) -> None:
    """The four steps' files are all read before the plan. A step gets its own, and what the steps before it wrote; one
    that only writes documents gets no code but what is new."""
    check = "python check.py test_parts.py"
    steps = [
        planned("Code", "big.py: add extra", success=f"`{check}` ends with 0"),
        planned("Tests", "test_parts.py: a test for extra", 1, success=f"`{check}` ends with 0"),
        planned("Usage", "README.md: names extra", 1, success="README.md names extra"),
        planned("Change log", "CHANGELOG: an entry", 2, 3, success="CHANGELOG names extra"),
    ]
    edits = {
        "Code": ("big.py", LINES[499] + "\n", "extra = 1\n" + LINES[499] + "\n"),
        "Tests": ("test_parts.py", "# end of tests\n", "def test_extra() -> None: ...\n# end of tests\n"),
        "Usage": ("README.md", "usage\n", "usage: extra\n"),
        "Change log": ("CHANGELOG", "old entry\n", "extra\nold entry\n"),
    }
    carried_out = [
        of_step(
            name,
            act("file_ops.edit_file", path=path, edits=[{"old": old, "new": new}]),
            act("shell.run", command=check),
        )
        for name, (path, old, new) in edits.items()
    ]
    looks = [read("big.py", start_line=480, end_line=520), read("test_parts.py"), read("README.md"), read("CHANGELOG")]
    looks.append(decide(act("file_ops.grep", pattern="part_49|read_all", context=0), next_step="continue"))
    plan = when("Make a plan for this goal", json.dumps({"name": "Work", "steps": steps, "risks": []}))
    replies = [*looks, PROPOSE, plan, RUN_ALL, *carried_out, when("A background job has ended", report())]
    story = Story(tmp_path, replies, native=True)
    (story.folder / "big.py").write_text("\n".join(LINES) + "\n")
    (story.folder / "test_parts.py").write_text("# read_all\n# more tests\n# end of tests\n")
    (story.folder / "README.md").write_text("read_all\nusage\n")
    (story.folder / "CHANGELOG").write_text("old entry\nread_all\n")
    (story.folder / "check.py").write_text("")
    for wish in ("make a plan", "yes"):
        await story.tell(wish)
    await job_ended(story)
    requests = [story.prompt(number) for number in range(len(story.model.requests))]
    first = {name: next(text for text in requests if f"Your step: {name}" in text) for name in edits}
    assert LINES[481] in first["Code"] and f"49:{LINES[48]}" in first["Code"], "its own file, and what was searched"
    assert "end of tests" not in first["Code"] and "old entry" not in first["Code"] and "usage\n" not in first["Code"]
    assert "end of tests" in first["Tests"] and LINES[481] in first["Tests"], "it builds on what the code is"
    assert "old entry" not in first["Tests"] and "1:# read_all" not in first["Tests"], "no line stands there twice"
    assert "usage\n" in first["Usage"] and "extra = 1" in first["Usage"]
    assert "end of tests" not in first["Usage"] and LINES[481] not in first["Usage"]
    assert "old entry" in first["Change log"] and "def test_extra" in first["Change log"]
    assert "end of tests" not in first["Change log"].replace("def test_extra() -> None: ...\n# end of tests", "")
    assert LINES[481] not in first["Change log"]


def test_a_step_gets_what_was_read_only_where_it_works_on_the_file_or_builds_on_it() -> None:
    code = Step(name="Code", description="app.py: a name", files=["app.py"])
    tests = Step(name="Tests", description="test_app.py", files=["test_app.py"], depends_on=[code.step_id])
    runs = Step(name="Run the tests", success="`pytest` passes", depends_on=[tests.step_id], added=True)
    usage = Step(name="Usage", description="README.md", files=["README.md"], depends_on=[code.step_id])
    more = Step(name="More", description="the same again", depends_on=[code.step_id])
    plan = Plan(name="Work", goal="a name", steps=[code, tests, runs, usage, more])

    def shares(*paths: str) -> list[list[str]]:
        return [[StepFiles(plan, step, paths).share(path) for path in paths] for step in plan.steps]

    assert shares("app.py", "test_app.py", "notes.md", "other.py") == [
        ["all", "none", "all", "all"],
        ["all", "all", "all", "all"],
        ["written", "written", "none", "none"],
        ["written", "none", "all", "none"],
        ["written", "none", "none", "none"],
    ]
    code.files, tests.files, usage.files = [], [], []
    assert shares("app.py")[-1] == ["all"], "where no step lists its files, none is known to change nothing"

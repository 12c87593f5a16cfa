"""Steps of a plan may list their files. A yes to the plan's edits covers those, whatever shows that a step is done."""

import re
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.plan_tree import plan_tree
from duckflow.events.types import PermissionGiven
from duckflow.i18n.words import Words
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.criterion import changed_files
from duckflow.tools.plan.drafts import plan_from, revised_from
from tests.journeys.plans import Typing, job_ended, report, when
from tests.journeys.story import act, decide, respond


def pond(**first: Any) -> dict[str, Any]:
    steps = [
        {"name": "The pond", "success": "", **first},
        {"name": "Its lake", "success": "", "depends_on": [1]},
    ]
    call = act("plan_tool.propose", text="a pond", name="Pond", steps=steps)
    return decide(call, step="PLANNING", next_step="pending_user")


def work(*paths: str) -> list[Any]:
    steps = [
        when("Now its step", {"tasks": [act("file_ops.write_file", path=path, content="x = 1\n")]}) for path in paths
    ]
    return [*steps, when("A background job has ended", report())]


def step_of(**draft: Any) -> Step:
    return plan_from({"name": "p", "steps": [{"name": "s", **draft}]}, "g").steps[0]


@pytest.mark.parametrize("files", [["src/pond.py", "lake.py"], ["./src/pond.py", "池.md"]])
async def test_the_yes_to_a_plans_edits_is_for_the_files_that_its_steps_list(tmp_path: Path, files: list[str]) -> None:
    plain = [path.removeprefix("./") for path in files]
    story = Typing(tmp_path, [pond(files=files), *work(*plain)], mode="ask")
    await story.tell("make a pond")
    why = story.ending().why
    assert why and why.values == {"files": ", ".join(plain)}
    assert await story.tell("yes, without asking for the edits, in the background") == "deferred"
    assert (await job_ended(story)).status == "completed"
    assert story.gates() == [] and all((story.folder / path).exists() for path in plain)


async def test_what_no_step_lists_is_asked_about(tmp_path: Path) -> None:
    story = Typing(tmp_path, [pond(files=["pond.py"]), *work("pond.py", "src/pond.py")], mode="ask")
    await story.tell("make a pond")
    await story.tell("yes, without asking for the edits, in the background")
    gate = (await story.asked()).gate
    assert gate and [impact.path for impact in gate.impacts] == ["src/pond.py"]
    await story.chat.take("2")


@pytest.mark.parametrize(
    "said", ["yes, and no need to ask me again for the edits of this plan", "ok, and stop asking for this plan's edits"]
)
async def test_a_yes_for_the_edits_of_a_plan_that_lists_none_is_for_the_offered_kind_and_its_work(
    tmp_path: Path, said: str
) -> None:
    again = decide(act("file_ops.write_file", path="pond.py", content="x = 2\n"), respond("ok"))
    story = Typing(tmp_path, [pond(), *work("pond.py", "lake.py"), again], mode="ask")
    await story.tell("make a pond")
    await story.tell("yes, in the background")
    await story.asked()
    await story.chat.take(said)
    assert (await job_ended(story)).status == "completed"
    assert len(story.gates()) == 1 and (story.folder / "lake.py").exists()
    rules = [event.rule.values for event in story.all(PermissionGiven)]
    assert [rule["pattern"] for rule in rules] == ["*.py"] and all(rule["plan"] for rule in rules)
    assert not story.session.state.allowed, "the plan is over, and so is its rule"


@pytest.mark.parametrize(
    "path",
    ["a.py, b.py", "a.py b.py", "/etc/passwd", "../a.py", "src/../../a.py", "~/a.py", "*.py", "a\nb.py", "a\u202eb.py",
     "", " ", "[ab].py", "?.py", "src//a.py", "$HOME/a.py", "`a.py`", "“a.py”", "a;b.py"],
)  # fmt: skip
def test_a_listed_name_that_may_look_like_something_else_is_not_counted(path: str) -> None:
    assert changed_files(Plan(name="p", goal="g", steps=[Step(name="s", files=[path, "b.py"])])) == ["b.py"]


@pytest.mark.parametrize("kept", ["Do not change setup.cfg", "setup.cfg stays as it is", "setup.cfgは変えないこと"])
def test_a_listed_file_that_the_plan_says_it_keeps_is_not_counted(kept: str) -> None:
    step = Step(name="s", description=kept, files=["setup.cfg", "a.py"])
    assert changed_files(Plan(name="p", goal="g", steps=[step])) == ["a.py"]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_plan_shows_the_files_of_a_step(language: str) -> None:
    plan = Plan(name="p", goal="g", steps=[step_of(files=["src/a.py", "b.py"]), Step(name="t")])
    assert len(re.findall("src/a.py, b.py", plan_tree(plan, Words(language)))) == 1


async def test_a_step_is_told_its_files_and_gets_what_is_in_them(tmp_path: Path) -> None:
    story = Typing(tmp_path, [pond(files=["src/pond.py"]), *work("src/pond.py", "lake.py")], mode="full-auto")
    (story.folder / "src").mkdir()
    (story.folder / "src/pond.py").write_text("ducks = 12345\n")
    await story.tell("make a pond")
    await story.tell("yes, in the background")
    await job_ended(story)
    first = next(text for text in map(str, story.model.requests) if "Now its step" in text)
    assert "src/pond.py" in first and "ducks = 12345" in first


def test_a_revised_step_keeps_its_files_unless_it_lists_others() -> None:
    plan = Plan(name="p", goal="g", steps=[step_of(files=["a.py"]), step_of(files="b.py")])
    steps = [{"name": "s", "was": 1}, {"name": "s", "was": 2, "files": ["c.py"]}]
    assert [step.files for step in revised_from({"steps": steps}, plan).steps] == [["a.py"], ["c.py"]]

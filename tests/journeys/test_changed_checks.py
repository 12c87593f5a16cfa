"""A check that the work itself has changed is no evidence, unless a trial shows that it still checks the same."""

import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ProofTried
from duckflow.programs.find import find_program
from tests.journeys.plans import PROPOSE
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_proof import QUICK

pytestmark = pytest.mark.skipif(find_program("bwrap", Path("/nowhere")) is None, reason="needs bubblewrap")

RUN = f"{sys.executable} -m pytest -q -p no:cacheprovider"
CALC, FIXED = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
CHECK = "import calc, sys\nsys.exit(0 if calc.add(2, 3) == 5 else 1)\n"
FILES = {
    "calc.py": CALC,
    "test_calc.py": TEST,
    "test_ok.py": "def test_ok():\n    assert 1 + 1 == 2\n",
    "check.py": CHECK,
}


def story_of(
    top: Path, changes: dict[str, str | None], command: str = RUN, native: bool = True, before: str = ""
) -> Story:
    """A turn that changes files, by shell as the user would not see it, and runs the check."""
    edits = [
        act("file_ops.delete_file", path=path) if text is None else act("file_ops.write_file", path=path, content=text)
        for path, text in changes.items()
    ]
    reads = [act("file_ops.read_file", path=path) for path in changes if path in FILES]
    run = act("shell.run", command=command)
    replies = [[act("shell.run", command=before)] if before else [], reads, edits, [run]]
    doing = [decide(*actions, next_step="continue") for actions in replies if actions]
    story = Story(top, [*doing, *[decide(respond("It is done."))] * 4], settings=QUICK, native=native)
    for path, text in FILES.items():
        (story.folder / path).write_text(text)
    return story


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("changes", "weakened"),
    [
        ({"test_calc.py": TEST.replace("== 5", "== -1")}, True),
        ({"test_calc.py": "def test_add():\n    pass\n"}, True),
        ({"test_calc.py": None}, True),
        pytest.param({"test_calc.py": TEST + "test_add.__test__ = False\n"}, True, marks=pytest.mark.slow),
        ({"test_calc.py": TEST.replace("test_add", "test_sum").replace("== 5", "== -1")}, True),
        ({"calc.py": CALC + "# x\n", "test_calc.py": TEST.replace("== 5", "!= 7")}, True),
        ({"calc.py": FIXED, "test_calc.py": TEST + "\n\ndef test_more():\n    assert add(1, 1) == 2\n"}, False),
        ({"calc.py": FIXED, "test_calc.py": TEST.replace("add(2, 3) == 5", "5 == add(3, 2)")}, False),
        ({"calc.py": "def plus(a, b):\n    return a + b\n", "test_calc.py": TEST.replace("add", "plus")}, False),
        (
            {"calc.py": FIXED.replace("a + b", "str(a + b)"), "test_calc.py": TEST.replace("== 5", '== "5"')},
            False,
        ),
    ],
)
async def test_tests_that_are_bent_until_they_pass_are_named(
    tmp_path: Path, changes: dict[str, str | None], weakened: bool
) -> None:
    story = story_of(tmp_path, changes)
    await story.tell("fix add so that all tests pass")
    (run,) = story.session.state.check_runs
    assert run.report.weakened == (("test_calc.py::test_add",) if weakened else ())
    assert (run.report.ok is None) is weakened
    assert not [one for one in story.all(ProofTried) if one.proof.why], "they were run"
    assert (
        "The check itself was changed" in story.prompt(-1) or "the check itself was changed" in story.prompt(-1)
    ) is (weakened)


ALONE = "mkdir -p alone && printf 'def test_alone():\\n    assert True\\n' > alone/test_alone.py"
LEFT_OUT: list[tuple[str, dict[str, str | None], bool]] = [
    ("mkdir .old && mv test_calc.py .old/", {}, True),
    ("mkdir build && mv test_calc.py build/", {}, True),
    (ALONE, {"pytest.ini": "[pytest]\ntestpaths = alone\n"}, True),
    (ALONE, {"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['alone', 'nowhere']\n"}, True),
    ("mkdir tests && mv test_calc.py tests/", {"calc.py": FIXED}, False),
    (ALONE, {"calc.py": FIXED, "pytest.ini": "[pytest]\ntestpaths = .\n"}, False),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("before", "changes", "weakened"), LEFT_OUT)
async def test_tests_that_are_moved_out_of_a_run_are_named(
    tmp_path: Path, before: str, changes: dict[str, str | None], weakened: bool, native: bool
) -> None:
    story = story_of(tmp_path, changes, RUN, native, before)
    await story.tell("fix add so that all tests pass")
    (run,) = story.session.state.check_runs
    assert bool(run.report.weakened) is weakened and (run.report.ok is None) is weakened


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("check", "description", "shown"),
    [
        ("print('ok')\n", "make add add", False),
        (CHECK.replace("else 1", "else 0"), "make add add, then run python check.py", False),
        (CHECK.replace("import calc, sys", "import sys, calc  # in order"), "make add add", True),
        ("print('ok')\n", "simplify check.py", True),
    ],
)
async def test_a_script_that_is_the_check_shows_a_step_only_as_it_was(
    tmp_path: Path, check: str, description: str, shown: bool
) -> None:
    honest = "in order" in check
    step: dict[str, Any] = {"name": "Fix", "description": description, "success": "`python check.py` exits with 0"}
    plan: dict[str, Any] = {"name": "W", "steps": [step | {"depends_on": []}], "risks": []}
    edits = [act("file_ops.write_file", path="check.py", content=check)]
    edits += [act("file_ops.write_file", path="calc.py", content=FIXED)] if honest else []
    doing = [decide(act("file_ops.read_file", path="check.py"), act("file_ops.read_file", path="calc.py"))]
    doing += [decide(*edits), decide(act("shell.run", command="python check.py"))]
    doing.append(decide(act("plan_tool.update_step", id="1", status="completed")))
    replies = [PROPOSE, plan, *({**one, "next_step": "continue"} for one in doing)]
    story = Story(tmp_path, [*replies, *[decide(respond("ok"))] * 3], settings=QUICK, native=False)
    (story.folder / "calc.py").write_text(CALC)
    (story.folder / "check.py").write_text(CHECK)
    await story.tell("do it")
    await story.tell("go ahead")
    assert story.session.state.plan
    done = story.session.state.plan.steps[0]
    assert done.status == "completed" and bool(done.evidence) is shown
    assert ("the check itself was changed in this step: check.py" in done.lacking) is not shown


@pytest.mark.parametrize(
    ("path", "options"),
    [("fakep.py", "-p fakep"), ("pkg/fakep.py", "-ppkg.fakep"), ("my.cfg", "-c my.cfg"), ("src/fakep.py", "-p fakep")],
)
async def test_a_plug_in_of_the_turns_own_making_decides_how_tests_end(tmp_path: Path, path: str, options: str) -> None:
    hook = "import pytest\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
    hook += "    report = (yield).get_result()\n    report.outcome, report.longrepr = 'passed', None\n"
    text = hook if path.endswith(".py") else "[tool:pytest]\npython_files = test_ok.py\n"
    source = "PYTHONPATH=src " if path.startswith("src") else ""
    story = story_of(tmp_path, {path: text}, f"{source}{RUN} {options}")
    await story.tell("make all tests pass")
    assert not any(run.report.ok for run in story.session.state.check_runs)
    assert path in story.prompt(-1)

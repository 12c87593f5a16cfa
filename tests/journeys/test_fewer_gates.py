"""An approved plan asks little: its checks are part of the yes, and a rule for the tests covers them as they are."""

import asyncio
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from duckflow.commands.commit import commit_message
from duckflow.events.types import ActionFinished, FiveChanged, Noticed, PermissionGiven
from duckflow.events.work import JobEnded
from duckflow.forms.native import NativeForm
from duckflow.i18n.words import Words
from duckflow.llm.provider import Reply
from duckflow.state.agent import AgentState, JobReport
from duckflow.state.data import say
from duckflow.state.message import ToolCall
from duckflow.state.phase import StateDelta
from duckflow.state.plan import Plan, Step
from duckflow.state.progress import job_progress
from duckflow.state.question import Answer, Question
from duckflow.tools.plan.criterion import changed_files, with_checks
from duckflow.tools.toolbox import packaged_operations
from tests.journeys.plans import Typing
from tests.journeys.story import Story, act, decide, respond

CHECK = "python3 -m unittest"
DRESSED = f"cd {{folder}} && timeout 60 {CHECK} -v 2>&1 | tail -5"
TESTED = """import unittest

class PondTest(unittest.TestCase):
    def test_ducks(self):
        import pond
        self.assertTrue(pond.ducks)
"""
FIRST = act("file_ops.write_file", path="pond.py", content="ducks = 1\n")
SECOND = act("file_ops.edit_file", path="pond.py", edits=[{"old": "ducks = 1", "new": "ducks = 2"}])
STEPS = [
    {"name": "Write pond.py", "success": "pond.py exists"},
    {"name": "Test it", "success": f"`{CHECK}` passes", "depends_on": [1]},
    {"name": "Two ducks", "success": 'pond.py contains "ducks = 2"', "depends_on": [2]},
    {"name": "Test again", "success": f"`{CHECK}` passes", "depends_on": [3]},
]
PROPOSE = decide(
    act("plan_tool.propose", goal="a pond", name="Pond", steps=STEPS), step="PLANNING", next_step="pending_user"
)
both = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


def run(command: str, **other: Any) -> dict[str, Any]:
    return act("shell.run", command=command, **other)


def go_on(*actions: dict[str, Any]) -> dict[str, Any]:
    return decide(*actions, next_step="continue")


def worked(check: str) -> list[dict[str, Any]]:
    return [go_on(FIRST), go_on(run(check)), go_on(SECOND), go_on(run(check)), decide(respond("Two ducks."))]


class Agreeing(Story):
    def answer(self, question: Question) -> Answer | None:
        return self.answers.pop(0) if self.answers else Answer(choice="yes")


def prepared(story: Story) -> None:
    (story.folder / "test_pond.py").write_text(TESTED)
    (story.folder / ".gitignore").write_text("*.db\n__pycache__/\n.venv/\n")


@both
async def test_a_plan_of_edits_and_tests_asks_for_its_edits_alone(tmp_path: Path, native: bool) -> None:
    story = Agreeing(tmp_path, [PROPOSE, *worked(CHECK)], mode="ask", native=native)
    prepared(story)
    await story.tell("make a pond, with a plan")
    assert story.session.state.plan and story.session.state.plan.checks == (CHECK,)
    await story.tell("yes, go ahead")
    gates = [question.gate for question in story.gates()]
    assert [gate.operations for gate in gates if gate] == [("file_ops.write_file",), ("file_ops.edit_file",)]
    assert not any(gate.reasons or gate.risk != "medium" for gate in gates if gate), "and no warning"
    results = [event.result for event in story.events if isinstance(event, ActionFinished)]
    assert [one.for_user.values["code"] for one in results if one.operation == "shell.run"] == [0, 0]


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_the_question_offers_a_yes_after_which_the_plans_edits_ask_nothing(tmp_path: Path, language: str) -> None:
    other = go_on(act("file_ops.write_file", path="lake.py", content="fish = 1\n"))
    story = Agreeing(tmp_path, [PROPOSE, other, *worked(CHECK)], mode="ask", native=True, language=language)
    prepared(story)
    await story.tell("make a pond, with a plan")
    why = story.ending().why
    assert why and why.values == {"files": "pond.py"}
    [offered] = re.findall("[“「](\\w+[,、][^”」]+)[”」]", Words(language)(why.key, **why.values))
    await story.tell(offered)
    gates = [question.gate for question in story.gates() if question.gate]
    assert [impact.path for gate in gates for impact in gate.impacts] == ["lake.py"]
    assert (story.folder / "pond.py").read_text() == "ducks = 2\n"


UNASKED = {"en": "yes, without asking for the edits", "ja": "はい、編集は確認なしで"}


async def test_the_yes_for_a_plans_edits_is_for_no_file_of_the_same_name(tmp_path: Path) -> None:
    other = go_on(act("file_ops.write_file", path="docs/pond.py", content="fish = 1\n"))
    story = Agreeing(tmp_path, [PROPOSE, other, *worked(CHECK)], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell(UNASKED["en"])
    gates = [question.gate for question in story.gates() if question.gate]
    assert [impact.path for gate in gates for impact in gate.impacts] == ["docs/pond.py"]


@pytest.mark.parametrize("command", ["", "/plan drop"])
async def test_the_yes_for_a_plans_edits_is_for_its_work_alone(tmp_path: Path, command: str) -> None:
    """The plan is not finished, but what the user says next may be about something else."""
    ends = decide(respond("One duck."))
    again = go_on(act("file_ops.write_file", path="pond.py", content="ducks = 9\n"))
    story = Agreeing(tmp_path, [PROPOSE, go_on(FIRST), ends, again, *[ends] * 3], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell(UNASKED["en"])
    assert not story.gates() and (story.folder / "pond.py").exists()
    if command:
        await story.chat.run_command(command)
    await story.tell("How about nine ducks? Write them into pond.py")
    assert len(story.gates()) == 1


@pytest.mark.parametrize(
    ("said", "gates"),
    [
        ("go on", 0),
        ("continue", 0),
        ("続けて", 0),
        ("go on, and nine ducks instead", 1),
        ("no, three", 1),
        ("what is in there?", 1),
    ],
)
async def test_the_yes_for_a_plans_edits_holds_as_long_as_the_user_only_says_to_go_on(
    tmp_path: Path, said: str, gates: int
) -> None:
    ends = decide(respond("One duck so far."))
    again = go_on(act("file_ops.write_file", path="pond.py", content="ducks = 9\n"))
    story = Agreeing(tmp_path, [PROPOSE, go_on(FIRST), ends, again, *[ends] * 6], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell(UNASKED["en"])
    await story.tell(said)
    await story.tell("go on")
    assert len(story.gates()) == gates


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([{"name": "Describe it", "success": "README.md names the pond"}], 1),
        ([{"name": "Describe it in docs/pond.rst", "success": "docs/pond.rst exists"}, {"name": "NEWS.md"}], 2),
        ([{"name": "Describe it", "success": "README.md names the pond"}, {"name": "Tidy up"}], 3),
        ([{"name": "Describe it in README.md and pond.py", "success": "README.md names the pond"}], 2),
        ([{"name": "Make the pond"}], 2),
    ],
)
async def test_a_plan_that_only_changes_documents_gets_no_run_of_the_tests(
    tmp_path: Path, steps: list[dict[str, str]], count: int
) -> None:
    propose = decide(act("plan_tool.propose", text="a pond", name="Pond", steps=steps), next_step="pending_user")
    story = Story(tmp_path, [propose], native=True)
    prepared(story)
    await story.tell("describe the pond, with a plan")
    assert story.session.state.plan and len(story.session.state.plan.steps) == count


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("Writing the pond, then testing it.", ("Writing the pond, then testing it.",) * 2),
        (
            "TypeError のメッセージに文字列を加え、テストを実行します。",
            ("TypeError のメッセージに文字列を加え、テストを実行します。",) * 2,
        ),
        ("池を書き、テストを回します！結果も見せます。", ("池を書き、テストを回します！", "結果も見せます。")),
        ("Version 3.12 of it; then the test", ("Version 3.12 of it; then the test",) * 2),
        ("- writing, it\n- testing it", ("writing, it", "testing it")),
        ("1. Writing the pond. 2. Testing it.", ("Writing the pond.", "Testing it.")),
        ("(1) writing the pond, (2) testing it", ("writing the pond", "testing it")),
        ("①池を書く ②テストを回す", ("池を書く", "テストを回す")),
        ("Writing the pond.\nTesting it.", ("Writing the pond.", "Testing it.")),
        ("池を書きます。テストを回します。", ("池を書きます。", "テストを回します。")),
        ("The pond, its test, and more", ("The pond, its test, and more",) * 2),
        ("First, writing a and testing it.", ("First, writing a and testing it.",) * 2),
        ("Before pytest of tests/test_b.py, the file a.py.", ("Before pytest of tests/test_b.py, the file a.py.",) * 2),
    ],
)
def test_each_call_gets_its_own_part_of_the_text_before_the_calls(text: str, reasons: tuple[str, ...]) -> None:
    calls = (
        ToolCall(call_id="a", name="file_ops_write_file", arguments='{"path": "a.py", "content": "x"}'),
        ToolCall(call_id="b", name="shell_run", arguments='{"command": "pytest tests/test_b.py"}'),
    )
    read = NativeForm().read(Reply(text, "stop", calls=calls), packaged_operations(), AgentState())
    assert tuple(action.reasoning for action in read.decision.actions) == reasons


@pytest.mark.parametrize("how", ["failed", "cancelled"])
async def test_the_yes_for_a_plans_edits_ends_with_its_job(tmp_path: Path, how: Literal["failed", "cancelled"]) -> None:
    story = Typing(tmp_path, [PROPOSE, *[decide(respond("Done."))] * 4], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell(UNASKED["en"] + ", in the background")
    [job] = story.session.state.jobs.values()
    assert story.session.state.allowed
    story.session.emit(JobEnded(job_id=job.job_id, status=how, report=JobReport()))
    assert not story.session.state.allowed and not story.restart([]).session.state.allowed


@pytest.mark.parametrize("with_yes", [False, True])
async def test_a_changed_draft_asks_its_question_whatever_was_held_beside_it(tmp_path: Path, with_yes: bool) -> None:
    """A yes that the model passes on for the draft before it does not count for the changed one."""
    wish = "looks good, but call it Lake. Otherwise go ahead"
    revise = act("plan_tool.revise", text="call it Lake", name="Lake", steps=STEPS)
    approve = act("plan_tool.approve", words=wish)
    replies = [PROPOSE, decide(revise, *[approve] * with_yes, respond("Lake it is."), next_step="pending_user")]
    story = Story(tmp_path, replies, mode="ask", native=True)
    await story.tell("make a pond, with a plan")
    await story.tell(wish)
    assert story.session.state.plan and story.session.state.plan.status == "draft"
    assert story.ending().why == say("plan.ask_edits", files="pond.py")


async def test_how_far_names_a_long_command_in_one_line(tmp_path: Path) -> None:
    long = "cat >> pond.py <<'EOF'\n" + "ducks = 2\n" * 30 + "EOF"
    story = Typing(tmp_path, [PROPOSE, go_on(run(long)), *[decide(respond("Done."))] * 3], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell("yes, in the background")
    assert (await story.asked()).job
    told = list(job_progress(story.session.state, story.session.state.live_jobs()[0]))
    lines = [str(phrase.values.get("task", phrase.values.get("what", ""))) for phrase in told]
    assert any("cat >> pond.py" in line for line in lines)
    assert all(len(line) <= 80 and "\n" not in line for line in lines)


async def test_the_subject_of_a_commit_is_the_plan_that_made_its_files(tmp_path: Path) -> None:
    story = Agreeing(tmp_path, [PROPOSE, *worked(CHECK)], mode="ask", native=True)
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell("yes, go ahead")
    story.session.emit(FiveChanged(delta=StateDelta(goal="tell how many ducks there are in it")))
    state = story.session.state
    assert commit_message(state, ["pond.py"], "", Words("en")).startswith("a pond")
    assert not commit_message(state, ["pond.py", "other.py"], "", Words("en")).startswith("a pond")


@pytest.mark.parametrize(
    ("success", "checks"),
    [
        ("`python -m pytest tests/test_a.py -q` passes", ["python -m pytest tests/test_a.py -q"]),
        ("python -m pytest tests/unit -q passes", ["python -m pytest tests/unit -q"]),
        ("The tests pass (`.venv/bin/python -m pytest tests -q`)", [".venv/bin/python -m pytest tests -q"]),
        ("`uv run pytest tests -x` is green", ["uv run pytest tests -x"]),
        ('`python3 -c "import pond; print(pond.ducks)"` prints 2', ['python3 -c "import pond; print(pond.ducks)"']),
        ("python3 -c 'import pond; assert pond.ducks' exits with 0", ["python3 -c 'import pond; assert pond.ducks'"]),
        ("README.md contains `pytest -q`", []),
        ("pytest and/or mypy pass", ["pytest", "mypy"]),
    ],
)
def test_the_checks_of_a_plan_are_its_commands_word_for_word(success: str, checks: list[str]) -> None:
    plan = Plan(name="p", goal="g", steps=[Step(name="s", success=success)])
    assert list(with_checks(plan).checks) == checks


@pytest.mark.parametrize(("ducks", "shown"), [(2, True), (3, False)])
async def test_a_check_that_is_a_program_in_a_line_shows_its_step(tmp_path: Path, ducks: int, shown: bool) -> None:
    check = 'python3 -c "import pond; print(pond.ducks)"'
    steps = [{"name": "Write pond.py", "success": f"`{check}` prints 2"}]
    propose = decide(act("plan_tool.propose", goal="a pond", steps=steps), step="PLANNING", next_step="pending_user")
    write = act("file_ops.write_file", path="pond.py", content=f"ducks = {ducks}\n")
    done = go_on(act("plan_tool.update_step", id="1", status="completed"))
    replies = [propose, go_on(write), go_on(run(check)), done, *[decide(respond("Done."))] * 4]
    story = Agreeing(tmp_path, replies, mode="ask")
    await story.tell("make a pond, with a plan")
    await story.tell("yes, go ahead")
    assert story.session.state.plan and bool(story.session.state.plan.steps[0].evidence) is shown
    assert len(story.gates()) == 1, "for the file alone"


@pytest.mark.parametrize(
    ("success", "description", "files"),
    [
        ("./pond.py exists", "", ["pond.py"]),
        ('pond.py contains "ducks = 2"', "", ["pond.py"]),
        ("README.md documents the --json flag", "", ["README.md"]),
        ("README.mdに--jsonの説明が書かれている", "", ["README.md"]),
        ("src/a.py and b.py exist", "", ["src/a.py", "b.py"]),
        ("a.py と b.py が作成されている", "", ["a.py", "b.py"]),
        ("notes.md exists and `python -m pond` prints the list", "", ["notes.md"]),
        ("README.md is updated", "do not change pyproject.toml", ["README.md"]),
        ("README.mdが更新されている", "pyproject.tomlは変えないこと", ["README.md"]),
        ("CHANGELOG.md mentions the fix; pyproject.toml is untouched", "", ["CHANGELOG.md"]),
        ('setup.cfg contains "x"', "Never edit setup.cfg by hand", []),
        ("tests/test_a.py passes", "", []),
        ("`pytest tests/test_a.py -q` passes", "", []),
        ("`python -m pond` prints what README.md documents for --x", "", []),
        ("pyproject.toml is unchanged", "", []),
        ('pyproject.toml still contains "name"', "", []),
        ("README.md は変更しない", "", []),
        ("README.mdは元のままである", "", []),
        ("app.py is deleted", "", []),
        ("../x.py and /etc/y.py exist", "", []),
        ("the list is sorted", "Edit src/pond/ducks.py and setup.cfg", []),
    ],
)
def test_the_files_of_a_plan_are_those_that_its_criteria_want_changed(
    success: str, description: str, files: list[str]
) -> None:
    step = Step(name="s", description=description, success=success)
    assert changed_files(Plan(name="p", goal="g", steps=[step])) == files


@pytest.mark.one_in(2)
@both
@pytest.mark.parametrize(
    ("language", "said"), [("en", "yes, and don't ask again for the tests"), ("ja", "はい、テストはもう聞かないで")]
)
async def test_tests_run_in_other_words_ask_once(tmp_path: Path, native: bool, language: str, said: str) -> None:
    check = DRESSED.format(folder=tmp_path / "work")
    story = Typing(tmp_path, [PROPOSE, *worked(check)], mode="ask", native=native, language=language)
    prepared(story)
    await story.tell("make a pond, with a plan")
    turn = asyncio.create_task(story.tell("yes, go ahead" if language == "en" else "はい、お願いします"))
    for number in (1, 2, 3):
        question = await story.asked(number)
        assert question.gate
        if number == 2:
            assert question.gate.commands and question.gate.risk == "medium"
            assert [reason.key for reason in question.gate.reasons] == ["harm.runs_tests"] and question.gate.reversible
            assert [choice.label.key for choice in question.choices][2:4] == ["gate.session_tool", "gate.always_tool"]
        assert (await story.chat.take(said if number == 2 else "1")).meaning == "answer"
    await turn
    assert len(story.gates()) == 3
    told = [event.what for event in story.all(Noticed) if event.what.key.startswith("permission.")]
    assert [(what.key, what.values) for what in told] == [("permission.tool_given.session", {"tool": "unittest"})]
    [given] = story.all(PermissionGiven)
    assert given.rule.values == {"operation": "shell.run", "pattern": "unittest", "kind": "tests"}


async def test_a_rule_for_a_runner_is_there_after_a_restart(tmp_path: Path) -> None:
    story = Story(tmp_path, [go_on(run(CHECK)), decide(respond("ok"))], mode="ask")
    prepared(story)
    story.answers = [Answer(choice="session")]
    await story.tell("test it")
    again = story.restart([go_on(run(f"{CHECK} -v test_pond")), decide(respond("ok"))])
    await again.tell("test it again")
    assert not again.gates()


PROGRAM_TEXT = """python3 - <<'EOF'
import sqlite3, sqlite_utils.db
db = sqlite3.connect(":memory:")
db.execute("create table ducks (name, weight)")
print(db.execute("select name,sum(weight) from ducks group by name").fetchall())
print({"format": "wipe", "drop": "table"} | {"halt": 1})
EOF"""


@pytest.mark.parametrize(
    "command",
    [PROGRAM_TEXT, PROGRAM_TEXT.replace("python3 - ", "python3 "), 'python3 -c "import sqlite_utils.db, os; os.system"']
    + ["timeout 20 python3 -c 'import ducks'", "PYTHONPATH=src CI=1 python3 -c 'import ducks' 2>&1 | tail -3"]
    + ["NO_COLOR=1 .venv/bin/python -c 'import ducks'", "uv run python -c 'import ducks'"]
    + ["python3 -m sqlite_utils.db", "node -e \"console.log({a: 'format'}, 'halt', require('child_process'))\""],
)
async def test_program_text_gets_one_honest_line(tmp_path: Path, command: str) -> None:
    story = Story(tmp_path, [go_on(run(command)), decide(respond("ok"))], mode="ask")
    prepared(story)
    await story.tell("look into it")
    [question] = story.gates()
    assert question.gate and question.gate.reversible and not question.gate.lasting
    assert [reason.key for reason in question.gate.reasons] in (["harm.runs_code"], ["harm.runs_script"])
    assert question.gate.risk == "medium", "the sandbox holds it, and undo takes it back"


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("python3 -c \"open('/etc/hosts')\" /etc/hosts", {}),
        ("python3 -c 'print(1)' > out.txt", {}),
        ("PYTHONPATH=/evil python3 -c 'import ducks'", {}),
        ("PATH=. timeout 5 python3 -c 'import ducks'", {}),
        ("/tmp/python3 -c 'import ducks'", {}),
        ("python3 -c 'print(1)' ducks.db", {}),
        ("python3 -c 'print(1)' && rm -r src", {}),
        ("python3 -c 'import shutil; shutil.rmtree(\"/\")'", {}),
        ("python3 -c 'print(1)'", {"network": True}),
        ("python3 -c 'print(1)'", {"background": True}),
        ("python3 -c 'print(1)'", {"secrets": True}),
    ],
)
async def test_program_text_that_may_do_more_keeps_its_risk(
    tmp_path: Path, command: str, other: dict[str, bool]
) -> None:
    story = Story(tmp_path, [go_on(run(command, **other)), decide(respond("ok"))], mode="ask")
    prepared(story)
    await story.tell("look into it")
    [question] = story.gates()
    assert question.gate and question.gate.risk in ("high", "forbidden")


async def test_program_text_keeps_its_risk_where_undo_is_off(tmp_path: Path) -> None:
    replies = [go_on(run("python3 -c 'print(1)'")), decide(respond("ok"))]
    story = Story(tmp_path, replies, mode="ask", settings={"undo": {"enabled": False}})
    await story.tell("look into it")
    [question] = story.gates()
    assert question.gate and question.gate.risk == "high" and not question.gate.reversible


async def test_files_that_a_command_names_and_git_ignores_are_still_told(tmp_path: Path) -> None:
    story = Story(tmp_path, [go_on(run("bash -c 'rm ducks.db'")), decide(respond("ok"))], mode="ask")
    prepared(story)
    await story.tell("tidy up")
    [question] = story.gates()
    assert question.gate and [phrase.key for phrase in question.gate.lasting] == ["lasting.ignored"]


async def test_without_a_sandbox_every_test_run_is_asked_for(tmp_path: Path) -> None:
    replies = [PROPOSE, *worked(CHECK)]
    story = Agreeing(tmp_path, replies, mode="ask", settings={"sandbox": {"kind": "none"}})
    prepared(story)
    await story.tell("make a pond, with a plan")
    await story.tell("yes, go ahead")
    asked = [question for question in story.gates() if question.gate and question.gate.commands]
    assert len(asked) == 2
    for question in asked:
        assert question.gate and question.gate.risk == "high" and question.gate.always
        assert [choice.key for choice in question.choices] == ["yes", "no", "edit"]

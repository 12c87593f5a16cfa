"""A step is completed by what its own criterion names, and by nothing else; the draft says what that will be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.export.document import Format, rendered
from duckflow.commands.export.transcript import Transcript
from duckflow.commands.plan_tree import plan_tree
from duckflow.events.types import Noticed
from duckflow.events.work import StepChanged
from duckflow.i18n.words import Words
from duckflow.safety.workspace import Workspace
from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.checks import CheckReport
from duckflow.state.data import say
from duckflow.state.plan import Step, Task, TaskList
from duckflow.tools.plan.criterion import NamedThing, named_in
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.plan.proof import proof, show, speaks, unproved
from duckflow.tools.shell.checkers import recognised
from tests.journeys.plans import PROPOSE, job_ended, report, run_step, when
from tests.journeys.story import Story, act, decide, respond

YES = {"en": "go ahead", "ja": "進めてください"}
ENDED = {"en": "has ended", "ja": "終わりました"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
CHECK = "import pathlib, sys; sys.exit(pathlib.Path('bad.py').exists())\n"
SLOW = pytest.mark.slow
PART = "python -m pytest tests/test_a.py passes"
CLAIM = act("plan_tool.update_step", step_id="1", status="completed")


def draft(*criteria: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"name": f"S{n}", "description": "", "success": one, "depends_on": []} for n, one in enumerate(criteria, 1)
    ]
    return {"name": "Work", "steps": steps, "risks": []}


def write(path: str, content: str) -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content=content)


def run(command: str) -> dict[str, Any]:
    return act("shell.run", command=command)


def on(*actions: dict[str, Any]) -> dict[str, Any]:
    return decide(*actions, next_step="continue")


async def approved(tmp_path: Path, criteria: list[str], replies: list[Any], language: str = "en") -> Story:
    """A plan with these criteria, its yes, and what the model does then."""
    story = Story(tmp_path, [PROPOSE, draft(*criteria), *replies, *[decide(respond("ok"))] * 3], language=language)
    (story.folder / "check.py").write_text(CHECK)
    await story.tell("do it")
    await story.tell(YES[language])
    return story


def first(story: Story) -> Step:
    plan = story.session.state.plan
    assert plan
    return plan.steps[0]


NAMED = [
    ("en", "README.md exists and python check.py passes", "README.md, python check.py"),
    ("ja", "README.md があり、`python check.py` が成功する", "README.md, python check.py"),
]


@pytest.mark.parametrize(("language", "success", "told"), NAMED)
async def test_what_its_criterion_names_shows_a_step(tmp_path: Path, language: str, success: str, told: str) -> None:
    replies = [on(run("true")), on(CLAIM), on(write("README.md", "hi\n")), on(CLAIM), on(run("python check.py"))]
    story = await approved(tmp_path, [success], replies, language)
    shown = [event.evidence for event in story.all(StepChanged) if event.status == "completed"]
    assert shown == ["", "", "there: README.md; python check.py: exit code 0"], "the last one by the check itself"
    assert told == ", ".join(thing.told() for thing in named_in(success))


TEXTS = [
    ("en", "README.md mentions `install`", 'README.md ("install")', "How to INSTALL it\n"),
    ("en", 'the word "usage" stands in README.md', 'README.md ("usage")', "## Usage\n"),
    ("en", "README.md does not mention `TODO` any more", 'README.md (no "TODO")', "all done\n"),
    ("en", "README.md says how to run `python snake.py`", 'README.md ("python snake.py")', "Run python snake.py\n"),
    ("en", "README.md contains blocked_names", 'README.md ("blocked_names")', "It lists blocked_names.\n"),
    ("en", "README.md documents the method blockedNames", 'README.md ("blockedNames")', "blockedNames: a list\n"),
    ("ja", "README.md に blocked_names が書かれている", 'README.md ("blocked_names")', "blocked_names は一覧です\n"),
    ("ja", "README.md に `python snake.py` と書いてある", 'README.md ("python snake.py")', "python snake.py で遊ぶ\n"),
    ("ja", "README.md に『使い方』がある", 'README.md ("使い方")', "# 使い方\n"),
    ("ja", "「使い方」と「導入」の節が README.md に書かれている", 'README.md ("使い方", "導入")', "導入と使い方\n"),
    ("ja", "README.md に「TODO」が残っていない", 'README.md (no "TODO")', "完成\n"),
]


@pytest.mark.parametrize(("language", "success", "told", "text"), TEXTS)
async def test_a_text_that_is_named_must_stand_in_its_file(
    tmp_path: Path, language: str, success: str, told: str, text: str
) -> None:
    replies = [on(write("README.md", "TODO\n"), run("true")), on(CLAIM), on(write("README.md", text))]
    story = await approved(tmp_path, [success], replies, language)
    assert told == ", ".join(thing.told() for thing in named_in(success))
    claimed, shown = (event.evidence for event in story.all(StepChanged) if event.status == "completed")
    assert claimed == "" and shown == told.replace("README.md (", "in README.md: ")[:-1]
    assert told in story.prompt(4), "the model is told what is not shown"


@pytest.mark.one_in(2)
@LANGUAGES
@pytest.mark.parametrize(
    ("success", "command", "proven"),
    [
        ("`python check.py` exits with code 1", "touch bad.py; python check.py", False),
        ("`python check.py` が終了コード 1 で終わる", "touch bad.py && cd . && python check.py", False),
        ("`python bad.py` exits with code 1", "python bad.py", True),
        ("`python bad.py` が終了コード 1 で終わる", "python bad.py", True),
        ('`python check.py` prints "three"', "python check.py", False),
        ("`echo 合格` を実行すると「合格」と出る", "echo 合格", True),
        ("python check.py passes", "echo python check.py", False),
        ("python check.py passes", "python check.py; true", False),
        ("python check.py passes", "true || python check.py", False),
        ("python check.py passes", "cd . && python3 ./check.py 2>&1 | tail -3", True),
        ("python check.py passes", "python check.py | tail -3 && true", False),
        ("python check.py passes", "python check.py && ls | tail -3", True),
        ("python check.py passes", "python check.py | grep x | tail -3", False),
        ("pytest passes", "pytest --version && python -m pytest --version", False),
        ("python check.py --all tests.a passes", "python check.py --all tests.b", False),
        ("python check.py -q tests/ --all tests.a passes", "python check.py -q tests --all tests.a", True),
        ("Run python -m check.", "python -m check", True),
    ],
)
async def test_only_the_command_that_is_named_shows_it(
    tmp_path: Path, language: str, success: str, command: str, proven: bool
) -> None:
    replies = [on(write("bad.py", "raise SystemExit(1)\n") if "bad.py" in success else write("a.txt", "x\n"))]
    story = await approved(tmp_path, [success], [*replies, on(run(command)), on(CLAIM)], language)
    assert first(story).status == "completed" and first(story).unverified is not proven
    assert story.session.state.evidence


@pytest.mark.parametrize(
    ("wanted", "command"),
    [
        ("python check.py", "mkdir t && cd t && touch check.py && python check.py"),
        ("python check.py", "pushd t && python check.py"),
        ("python check.py", "env -C t python check.py"),
        ("python check.py", "PYTHONPATH=. python check.py"),
        ("python check.py", "export PYTHONPATH=t && python check.py"),
        ("python check.py", "printf -v PATH t && python check.py"),
        ("python check.py", "read PATH && python check.py"),
        ("python check.py", "python -m py_compile check.py"),
        ("python check.py", "python -n check.py"),
        ("python check.py", "python check.py --version"),
        ("python check.py", "./bin/python check.py"),
        ("python check.py", "python t/check.py"),
        ("python check.py", f"python check.py # {'x' * 2000}\ntrue"),
        ("sh check.sh", "sh -n check.sh"),
        ("sh check.sh", "bash check.sh"),
        ("sh check.sh", "BASH_ENV=x sh check.sh"),
        ("node app.js", "node --check app.js"),
        ("cd sub && sh check.sh", "sh check.sh"),
    ],
)
def test_another_command_shows_nothing(wanted: str, command: str) -> None:
    thing = NamedThing("command", wanted)
    assert speaks(Evidence(command=command, ok=True, text="x"), thing) is None
    assert speaks(Evidence(command=wanted, ok=True, text="x"), thing)


@pytest.mark.parametrize(
    ("wanted", "command"),
    [
        ("python3 check.py --all", "CI=1 python -u ./check.py --all 2>&1 | tail -3"),
        ("sh check.sh", "mkdir -p out && sh check.sh && ls out"),
        ("cd sub && sh check.sh", "cd ./sub && sh check.sh"),
        ("make docs | grep ok", "make docs | grep ok"),
    ],
)
def test_the_same_command_may_be_written_in_other_ways(wanted: str, command: str) -> None:
    assert speaks(Evidence(command=command, ok=True, text="x"), NamedThing("command", wanted))


@pytest.mark.parametrize(
    ("success", "command", "shown"),
    [
        ("python -m pytest -q tests ends with 0", "python -m pytest -q tests", True),
        ("python -m pytest -q tests ends with 0", "python -m pytest -q tests 2>&1 | tail -3", True),
        ("python -m pytest -q tests -k 'a or b' ends with 0", "python -m pytest -q tests -k 'a or b'", True),
        ("ruff check src tests --fix passes", "ruff check src tests --fix", True),
        ("python -m pytest -q tests/unit passes", "python -m pytest -q tests", None),
        ("python -m pytest -q tests and docs pass", "python -m pytest -q other", None),
        ("python -m pytest -q tests passes", "python -m pytest -q tests -k a", None),
    ],
)
def test_a_command_that_is_run_just_as_it_is_written_counts(success: str, command: str, shown: bool | None) -> None:
    (thing,) = named_in(success)
    check = recognised(command.partition(" 2>")[0])
    report = CheckReport(check=check.name, kind=check.kind, ok=True) if check else None
    assert speaks(Evidence(command=command, ok=True, text="x", check=report), thing) is shown


@pytest.mark.parametrize(
    ("success", "output", "shown"),
    [
        ("`python calc.py` prints `5`", "", False),
        ("`python calc.py` prints `5`", "exit code 5", True),
        ("`python calc.py` prints 5", "15 0.5 5.1", False),
        ("`python calc.py` prints Hello", "bye", False),
        ("`python calc.py` prints Hello and exits with 0", "hello, you", True),
        ("`python calc.py` は「5」を表示する", "25", False),
        ("`python calc.py` は「5」を表示する", "5", True),
    ],
)
def test_what_a_command_must_print_was_printed(success: str, output: str, shown: bool) -> None:
    (thing,) = named_in(success)
    assert speaks(Evidence(command="python calc.py", ok=True, text="x", output=output), thing) is shown


@pytest.mark.parametrize(
    ("success", "told"),
    [
        ("test_a.py contains test_f and `pytest -q test_a.py` passes", ['test_a.py ("test_f")', "pytest -q test_a.py"]),
        ("app.py mentions f_g and `python app.py` exits with 0", ['app.py ("f_g")', "python app.py"]),
        ("README.md contains `pytest -q`", ['README.md ("pytest -q")']),
        ("README.md mentions f_g and `make test`", ['README.md ("make test", "f_g")']),
    ],
)
def test_a_command_that_is_said_to_pass_is_no_text_of_the_file_before_it(success: str, told: list[str]) -> None:
    assert sorted(told) == sorted(thing.told() for thing in named_in(success))


def test_a_step_without_proof_tells_whether_a_result_is_missing_or_only_words_are_there() -> None:
    step = Step(name="Report", success="`python report.py` prints lines")
    assert unproved(step, "") == say("plan.step_unchecked", step="Report", what="python report.py: lines")
    assert unproved(step, "python report.py").key == "plan.step_unverified"


@pytest.mark.parametrize(
    ("language", "success", "told"),
    [
        ("en", "README.md exists and describes how to install it", "README.md: how to install it"),
        ("en", "`python check.py` prints the sum of both", "python check.py: the sum of both"),
        ("en", "`python check.py` prints lines and ends with exit code 0", "python check.py: lines"),
        ("ja", "README.md に結果のまとめが書かれている", "README.md: 結果のまとめ"),
    ],
)
async def test_what_is_said_in_plain_words_is_checked_by_nothing(
    tmp_path: Path, language: str, success: str, told: str
) -> None:
    work = on(write("README.md", "x\n"), run("python check.py"), CLAIM)
    story = await approved(tmp_path, [success], [work], language)
    assert first(story).unverified and first(story).settled, "what depends on it can go on"
    assert f"nothing checks “{told}”" in story.prompt(3)


@pytest.mark.parametrize(
    ("success", "made"),
    [
        ("report.md exists and contains the word Summary", {"report.md": "nothing\n"}),
        ("report.md exists", {"docs/report.md": "Summary\n"}),
        ("report.md exists", {"report.md": " \n"}),
        ("report.md contains a heading called Usage", {"report.md": "# Use\n"}),
        ("report.md mentions calc.py", {"report.md": "calc\n", "calc.py": "x\n"}),
        ("calc.py defines a function add", {"calc.py": "x = 1\n"}),
        ("report.md に要約という語がある", {"report.md": "なし\n"}),
    ],
)
async def test_a_file_must_be_the_one_that_is_named(tmp_path: Path, success: str, made: dict[str, str]) -> None:
    story = await approved(tmp_path, [success], [on(*(write(path, text) for path, text in made.items()), CLAIM)])
    assert first(story).unverified and first(story).lacking


@pytest.mark.parametrize(
    ("success", "work", "evidence"),
    [
        ("check.py exists", write("other.py", "x\n"), ""),
        ("check.py contains `pathlib`", write("other.py", "x\n"), ""),
        ("check.py exists and `python check.py` passes", run("python check.py"), "python check.py: exit code 0"),
        ("check.py exists", run("echo >> check.py"), "there: check.py"),
        ("checks.py exists", run("mv check.py checks.py"), "there: checks.py"),
    ],
)
async def test_a_file_that_was_there_before_shows_no_step(
    tmp_path: Path, success: str, work: dict[str, Any], evidence: str
) -> None:
    story = await approved(tmp_path, [success], [on(work, CLAIM)])
    assert (first(story).evidence, first(story).lacking, first(story).status) == (evidence, "", "completed")


async def test_a_file_that_one_step_has_made_shows_no_other_step(tmp_path: Path) -> None:
    again = act("plan_tool.update_step", step_id="2", status="completed")
    story = await approved(tmp_path, ["a.py exists", "a.py exists"], [on(write("a.py", "x = 1\n"), CLAIM, again)])
    plan = story.session.state.plan
    assert plan and [step.evidence for step in plan.steps] == ["there: a.py", ""]


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_a_link_to_another_file_is_no_file_of_its_own(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    (tmp_path / "README.md").write_text("Summary\n")
    make(tmp_path / "report.md", tmp_path / "README.md")
    assert not WorkFolder(Workspace(tmp_path)).has_content("report.md")


@pytest.mark.parametrize(
    ("success", "command", "proven"),
    [
        pytest.param(PART, "python -m pytest -q -x && ls", True, marks=SLOW),
        ("`pytest tests/test_a.py` が成功する", "python -m pytest -q", True),
        (PART, "python -m pytest -q -k test", False),
        pytest.param(
            "python -m pytest tests/test_a.py passes", "python -m pytest -q tests/test_b.py", False, marks=SLOW
        ),
        ("python -m pytest tests/test_c.py passes", "python -m pytest -q", False),
    ],
)
async def test_a_run_of_all_tests_shows_some_of_them(tmp_path: Path, success: str, command: str, proven: bool) -> None:
    tests = [write(f"tests/test_{name}.py", f"def test_{name}():\n    pass\n") for name in "ab"]
    story = await approved(tmp_path, [success], [on(*tests, run(command)), on(CLAIM)])
    assert first(story).status == "completed" and first(story).unverified is not proven


@pytest.mark.parametrize(
    ("wanted", "ran", "shown"),
    [
        ("pytest tests/test_a.py::test_f", "pytest", True),
        ("pytest 'tests/test_a.py::test_f[1]'", "pytest", True),
        ("pytest tests/test_a.py::test_g", "pytest", False),
        ("pytest tests/test_empty.py", "pytest", False),
        ("pytest app.py", "pytest", False),
        ("pytest tests/unit", "pytest", True),
        ("pytest tests/none", "pytest", False),
        ("pytest -k g", "pytest", False),
        ("python -m unittest tests.test_a.test_f", "unittest", True),
        ("python -m unittest tests.test_c", "unittest", False),
        ("go test ./tests/...", "go test", True),
        ("go test ./none/...", "go test", False),
        ("cargo test --test none", "cargo test", False),
        ("ruff check app.py", "ruff check", True),
        ("ruff check none.py", "ruff check", False),
        ("mypy --strict app.py", "mypy", False),
    ],
)
def test_a_run_of_all_shows_only_what_is_there(tmp_path: Path, wanted: str, ran: str, shown: bool) -> None:
    (tmp_path / "tests/unit").mkdir(parents=True)
    for name, text in {"tests/test_a": "def test_f(): ...", "tests/test_empty": "", "app": "x"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    check = recognised(wanted)
    assert check
    evidence = Evidence(command=ran, ok=True, text="x", check=CheckReport(check=ran, kind=check.kind, ok=True))
    assert bool(show(NamedThing("command", wanted), [evidence], WorkFolder(Workspace(tmp_path)))) is shown


@LANGUAGES
async def test_evidence_is_newer_than_the_last_change_that_concerns_it(tmp_path: Path, language: str) -> None:
    check, code, words = run("python check.py"), write("app.py", "x = 1\n"), write("NEWS.md", "x\n")
    replies = [on(check, code, CLAIM), on(check, words, CLAIM)]
    story = await approved(tmp_path, ["python check.py passes"], replies, language)
    shown = [event.evidence for event in story.all(StepChanged) if event.status == "completed"]
    assert shown[0] == "", "code was changed after the check"
    assert shown[-1] == "python check.py: exit code 0", "a document that it does not name changes nothing of it"


@pytest.mark.parametrize(
    ("language", "success", "command", "shown"),
    [
        ("en", "It runs", "ls -l", ""),
        ("ja", "動く", "cat app.py", ""),
        ("en", "It runs", "python app.py", "python app.py: exit code 0"),
        ("ja", "動く", "python -c 'import app'", "python -c 'import app': exit code 0"),
        ("en", "The app works", "python check.py", ""),
    ],
)
async def test_where_nothing_is_named_a_look_shows_nothing(
    tmp_path: Path, language: str, success: str, command: str, shown: str
) -> None:
    replies = [on(write("app.py", "x = 1\n"), run(command), CLAIM)]
    story = await approved(tmp_path, [success], replies, language)
    assert first(story).evidence == shown and first(story).unverified == (not shown)


@LANGUAGES
async def test_unverified_says_the_same_everywhere(tmp_path: Path, language: str) -> None:
    """In the plan, in the report of a job, and in what is exported."""
    words, look = Words(language), {"tasks": [run("true")]}
    ended = when(ENDED[language], report())
    story = Story(
        tmp_path, [PROPOSE, draft("README.md mentions `install`"), run_step(1), look, ended], language=language
    )
    await story.tell("do it")
    await story.tell(YES[language])
    done = await job_ended(story)
    assert done.report.unverified == ("S1",) and done.report.shown == ()
    plan, tasks = story.session.state.plan, words("plan.tasks", done=1, total=1)
    marked = f"? 1. S1  ({tasks}; {words('plan.unverified')})"
    assert plan and marked in plan_tree(plan, words)
    transcript = Transcript().hear_all(story.session.record())
    for form in Format:
        assert marked in rendered(transcript, words, form)
    reported = json.loads(done.model_dump_json())["report"]
    assert reported["unverified"] == ["S1"]
    assert plan.outline()["steps"] == [{"name": "S1", "status": "completed", "evidence": "", "unverified": True}]


@LANGUAGES
@pytest.mark.parametrize("success", ["python check.py passes", "README.md mentions `install`"])
async def test_a_check_that_fails_opens_the_step_again(tmp_path: Path, language: str, success: str) -> None:
    ready, check = write("README.md", "install\n"), run("python check.py")
    spoil = [write("bad.py", ""), check, write("README.md", "nothing\n")]
    mend = [act("file_ops.delete_file", path="bad.py"), check, ready]
    story = await approved(tmp_path, [success], [on(ready, check, CLAIM), on(*spoil), on(*mend)], language)
    changes = [(event.status, bool(event.evidence)) for event in story.all(StepChanged)]
    assert changes == [("completed", True), ("pending", False), ("completed", True)]
    told = next(one.what.values for one in story.all(Noticed) if one.what.key == "plan.step_reopened")
    assert told["step"] == "S1" and told["why"] in ("python check.py: exit code 1", 'README.md ("install")')
    plan = story.session.state.plan
    assert plan and plan.status == "completed"


@LANGUAGES
async def test_a_check_that_fails_on_the_way_of_a_job_opens_and_closes_again(tmp_path: Path, language: str) -> None:
    now = {"en": "Now its step: ", "ja": "いまのステップ: "}[language]
    check, mend = run("python check.py"), act("file_ops.delete_file", path="bad.py")
    plan = draft("python check.py passes", "b.py exists and python check.py passes")
    plan["steps"][1]["depends_on"] = [1]
    replies = [
        decide(act("task_loop.run"), respond("ok"), next_step="defer"),
        when(f"{now}S1", {"tasks": [check]}),
        when(f"{now}S2", {"tasks": [write("b.py", "x = 1\n"), write("bad.py", ""), check]}),
        when(f"{now}S2", {"tasks": [mend, check]}),
        when(ENDED[language], report()),
    ]
    story = Story(tmp_path, [PROPOSE, plan, *replies], language=language)
    (story.folder / "check.py").write_text(CHECK)
    await story.tell("do it")
    await story.tell(YES[language])
    ended = await job_ended(story)
    assert ended.status == "completed" and len(ended.report.shown) == 2 and not ended.report.unverified
    one = first(story).step_id
    assert [event.status for event in story.all(StepChanged) if event.step_id == one][-3:] == [
        "completed", "pending", "completed",
    ]  # fmt: skip


@LANGUAGES
async def test_another_command_that_fails_opens_nothing(tmp_path: Path, language: str) -> None:
    replies = [on(run("python check.py"), CLAIM), on(run("grep nothing check.py"), run("false && python check.py"))]
    story = await approved(tmp_path, ["python check.py passes"], replies, language)
    assert first(story).status == "completed" and first(story).evidence


@pytest.mark.parametrize(
    ("language", "wish"), [("en", "reopen step 1, please"), ("ja", "ステップ1をやり直してください")]
)
@pytest.mark.parametrize("how", ["words", "command"])
async def test_the_user_opens_a_step_again(tmp_path: Path, language: str, wish: str, how: str) -> None:
    again = on(act("plan_tool.update_step", step_id="1", status="pending"))
    replies = [on(write("README.md", "x\n"), CLAIM), decide(respond("ok")), again]
    story = await approved(tmp_path, ["README.md exists"], replies, language)
    assert first(story).status == "completed"
    if how == "words":
        await story.tell(wish)
    else:
        await story.chat.run_command("/plan reopen 1")
    plan = story.session.state.plan
    assert plan and plan.status == "in_progress" and (first(story).status, first(story).evidence) == ("pending", "")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("sh -c 'exit 3' 2>&1 | tail -5", 3),
        ("yes | head -1", 0),
        ("exit 4 | wc -l", 0),
        ("true | tail -1", 0),
        ("sh -c 'exit 141'", 141),
    ],
)
async def test_who_only_looks_at_the_output_does_not_hide_how_it_ended(tmp_path: Path, command: str, code: int) -> None:
    story = Story(tmp_path, [on(run(command)), decide(respond("ok"))])
    await story.tell("check it")
    assert story.session.state.evidence[-1].text == f"{command}: exit code {code}"


@pytest.mark.parametrize(
    ("success", "shown"),
    [("the snake moves ten steps in a test", ""), ("ヘビが十歩動くテストが通る", ""), ("", "there: game.py")],
)
def test_files_alone_do_not_show_a_criterion_that_names_none(tmp_path: Path, success: str, shown: str) -> None:
    (tmp_path / "game.py").write_text("x = 1\n")
    written = Task(
        operation="file_ops.write_file",
        reasoning="it is needed",
        effect="write",
        makes=("game.py",),
        status="completed",
    )
    step = Step(name="Core", description="game.py", success=success, task_list=TaskList(tasks=[written]))
    state = AgentState(session_id="s", folder=str(tmp_path), language="en")
    assert proof(state, step, WorkFolder(Workspace(tmp_path))) == shown


GREP = "grep -n limit=3 README.rst"
RAN_BEFORE = Evidence(
    command="pytest -q",
    ok=True,
    text="pytest -q: exit code 0",
    check=CheckReport(check="pytest", kind="tests", ok=True),
)
LOOKED = Evidence(command=GREP, ok=True, text=f"{GREP}: exit code 0")


@pytest.mark.parametrize(
    ("success", "path", "shown"),
    [
        (f"`{GREP}` finds a line", "README.rst", LOOKED.text),
        (f"`{GREP}` で一行見つかる", "README.rst", LOOKED.text),
        ("the example shows the new parameter", "README.rst", ""),
        ("the new parameter works", "join.py", RAN_BEFORE.text),
    ],
)
def test_a_check_that_looks_at_none_of_a_steps_files_shows_nothing(
    tmp_path: Path, success: str, path: str, shown: str
) -> None:
    (tmp_path / path).write_text("p.join(words, limit=3)\n")
    step = Step(name="Show it", description=path, success=success, files=[path])
    state = AgentState(session_id="s", folder=str(tmp_path), language="en")
    state = state.model_copy(update={"evidence": [LOOKED, RAN_BEFORE], "files_changed": [path]})
    assert proof(state, step, WorkFolder(Workspace(tmp_path))) == shown


@pytest.mark.parametrize(
    "success",
    [f"`{GREP}` finds nothing", f"`{GREP}` で何も見つからない", f"README.rst shows `{GREP}`", "`grep` is not needed"],
)
def test_a_quoted_command_is_no_check_where_it_is_a_text_or_should_find_nothing(success: str) -> None:
    assert all(thing.kind == "file" for thing in named_in(success))

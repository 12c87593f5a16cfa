"""Done means proven: the tests of a turn are tried on the code before it, and what they show is said."""

import asyncio
import json
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed, ProofTried, Waiting
from duckflow.i18n.words import Words
from duckflow.programs.find import find_program
from duckflow.state.data import say
from duckflow.state.question import Answer
from duckflow.view.items import notice_line
from duckflow.view.view import items_of
from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond

OLD = "def double(x):\n    return x + x + 1\n"
FIX = act("file_ops.write_file", path="app.py", content="def double(x):\n    return x + x\n")
READ = act("file_ops.read_file", path="app.py")
RUN = act("shell.run", command=f"{sys.executable} -m pytest -q -p no:cacheprovider")
WAITS = say("wait.proof", seconds=120)
QUICK: dict[str, Any] = {"proof": {"seconds": 120}}

pytestmark = pytest.mark.skipif(find_program("bwrap", Path("/nowhere")) is None, reason="needs bubblewrap")


def write(body: str, path: str = "test_app.py") -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content=f"from app import double\n\n\ndef test_two():\n    {body}\n")


def project(top: Path, *replies: Any, **other: Any) -> Story:
    story = Story(top, replies, settings={**QUICK, **other.pop("settings", {})}, **other)
    (story.folder / "app.py").write_text(OLD)
    return story


def work(*actions: Any) -> list[Any]:
    return [decide(*actions, next_step="continue"), decide(respond("It is done."))]


HOLLOW, REAL = write("assert callable(double)"), write("assert double(2) == 4")


@pytest.mark.parametrize(("language", "native"), [("en", True), ("ja", False)])
async def test_hollow_tests_are_told_to_the_model_and_the_user(tmp_path: Path, language: str, native: bool) -> None:
    story = project(
        tmp_path,
        *work(FIX, HOLLOW, RUN),
        *work(REAL, RUN),
        decide(respond("Never said.")),
        native=native,
        language=language,
    )
    await story.tell("fix double and test it" if language == "en" else "double を直してテストも書いて")
    first, last = [event.proof for event in story.all(ProofTried)]
    assert (first.hollow, last.red) == (("test_app.py::test_two",), ("test_app.py::test_two",))
    assert len(story.model.requests) == 4 and "test_app.py::test_two" in story.prompt(2)
    lines = [notice_line(item, Words(language)) for item in _notices(story) if item.about == "proof"]
    wanted = "1 test failed before and passes now" if language == "en" else "変更前は失敗"
    assert wanted in lines[-1] and "test_two" in lines[0], lines
    assert (story.folder / "app.py").read_text() == FIX["args"]["content"]


def _notices(story: Story) -> list[Any]:
    return [item for item in items_of(enumerate(story.events, 1)) if item.kind == "notice"]


async def test_it_is_told_once_and_the_end_says_it(tmp_path: Path) -> None:
    told = [decide(respond("It is fine as it is.")), decide(respond("Never said."))]
    story = project(tmp_path, *work(FIX, HOLLOW, RUN), *told)
    await story.tell("fix it")
    assert len(story.model.requests) == 3
    state = story.session.state
    assert state.proof and state.proof.verdict == "hollow"


HALF = "\n\ndef half(x):\n    return x // 2\n"
FIX_BESIDE_HALF = act("file_ops.write_file", path="app.py", content=FIX["args"]["content"] + HALF)
GUARD = act(
    "file_ops.write_file",
    path="test_app.py",
    content="from app import half\n\n\ndef test_two():\n    assert half(4) == 2\n",
)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_tests_that_only_guard_are_told_to_the_model_and_the_user(tmp_path: Path, language: str) -> None:
    """A model that was told of hollow tests gains nothing by tests of what was there."""
    told = [decide(respond("They guard what was there.")), decide(respond("Never said."))]
    story = project(tmp_path, *work(READ, FIX_BESIDE_HALF, HOLLOW, RUN), *work(GUARD, RUN), *told, language=language)
    (story.folder / "app.py").write_text(OLD + HALF)
    await story.tell("fix double and test it" if language == "en" else "double を直してテストも書いて")
    assert [event.proof.verdict for event in story.all(ProofTried)] == ["hollow", "guards", "guards"]
    assert len(story.model.requests) == 5
    assert ("do not show your change" if language == "en" else "変更を示して") in story.prompt(4)
    lines = [notice_line(item, Words(language)) for item in _notices(story) if item.about == "proof"]
    wanted = "passes without the change too" if language == "en" else Words(language)("proof.guarding", count=1)
    assert wanted in lines[-1], lines
    assert story.session.state.proof and not story.session.state.proof.holds


async def test_a_turn_without_tests_is_not_slowed(tmp_path: Path) -> None:
    story = project(tmp_path, *work(READ, FIX))
    await story.tell("fix it")
    assert not story.all(ProofTried)
    assert not [event for event in story.all(Waiting) if event.why.key == "wait.proof"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"proof": {"enabled": False}}, ""), ({"sandbox": {"kind": "landlock"}}, "proof.no_mount")],
)
async def test_it_can_be_off_and_says_what_it_lacks(tmp_path: Path, settings: dict[str, Any], why: str) -> None:
    story = project(tmp_path, *work(FIX, REAL, RUN), settings=settings)
    await story.tell("fix it")
    assert [event.proof.why and event.proof.why.key for event in story.all(ProofTried)] == ([why] if why else [])


async def test_tests_that_nobody_ran_prove_nothing(tmp_path: Path) -> None:
    story = project(tmp_path, *work(FIX, REAL))
    await story.tell("fix it")
    proof = story.all(ProofTried)[-1].proof
    assert proof.verdict == "unknown" and proof.why.key == "proof.not_passed"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("test", "hollow"), [(HOLLOW, True), (write("assert double(2) == 4"), False)])
@pytest.mark.parametrize("later", [True, False])
async def test_a_turn_that_only_writes_tests_has_them_tried_when_they_are_run(
    tmp_path: Path, test: dict[str, Any], hollow: bool, later: bool
) -> None:
    replies = [*work(test), *work(RUN)] if later else work(test, RUN)
    story = project(tmp_path, *replies, *[decide(respond("They stay so."))] * 2)
    (story.folder / "app.py").write_text("def double(number):\n    result = number + number\n    return result\n")
    await story.tell("write a test for double")
    if later:
        assert story.all(ProofTried)[-1].proof.why.key == "proof.not_passed"
        await story.tell("run the tests")
    proof = story.all(ProofTried)[-1].proof
    names = ("test_app.py::test_two",)
    assert (proof.hollow, proof.guarding) == ((names, ()) if hollow else ((), names))
    assert len(story.model.requests) == len(replies) + hollow


async def test_a_key_skips_it(tmp_path: Path) -> None:
    slow = write("import time\n    time.sleep(1 if double(2) == 4 else 600)\n    assert double(2) == 4")
    story = project(tmp_path, *work(FIX, slow, RUN))
    begun = asyncio.Event()
    story.chat.hear(lambda _, event: begun.set() if getattr(event, "why", None) == WAITS else None)
    turn = asyncio.create_task(story.tell("fix it"))
    await begun.wait()
    await asyncio.sleep(0.5)
    story.chat.interrupt()
    assert await turn == "done"
    assert story.all(ProofTried)[-1].proof.why.key == "proof.skipped"
    assert not [event for event in story.all(Noticed) if event.what.key == "turn.interrupted"]


async def test_a_trial_that_takes_too_long_ends_in_time_and_says_so(tmp_path: Path) -> None:
    slow = write("import time\n    time.sleep(2)\n    assert double(2) == 4")
    story = project(tmp_path, *work(FIX, slow, RUN), settings={"proof": {"seconds": 1}})
    assert await story.tell("fix it") == "done"
    proof = story.all(ProofTried)[-1].proof
    assert (proof.why.key, proof.untold) == ("proof.time", ("test_app.py::test_two",))
    assert proof.seconds < 10 and not list(story.folder.parent.glob("**/trial-*"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("tests", "code", "verdict"), [(REAL, 0, "proven"), (HOLLOW, 8, "hollow"), (None, 8, None)])
def test_an_end_without_proof_is_no_success_where_proof_is_required(
    tmp_path: Path, tests: Any, code: int, verdict: str | None
) -> None:
    shell = Shell(tmp_path, seconds=200)
    shell.write_config('shell.set_environment = { PYTEST_DISABLE_PLUGIN_AUTOLOAD = "1" }\nproof.seconds = 120\n')
    (shell.work / "app.py").write_text(OLD)
    model = shell.script(*work(READ, FIX, *([tests, RUN] if tests else [])), decide(respond("It is as it is.")))
    flags = ("--mode", "full-auto", "--output-format", "json", "--require-proof")
    done = shell.run("-p", "fix it", "-m", model, *flags)
    told = json.loads(done.stdout)
    assert (done.returncode, told["proof"] and told["proof"]["verdict"]) == (code, verdict), done.stdout


def test_a_question_needs_no_proof(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    done = shell.run("-p", "what is 2?", "-m", shell.script(decide(respond("Two."))), "--require-proof")
    assert done.returncode == 0, done.stderr


async def test_a_new_function_that_nobody_calls_is_named(tmp_path: Path) -> None:
    more = act("file_ops.write_file", path="export.py", content="def export_csv(rows):\n    return rows\n")
    story = project(tmp_path, *work(more))
    await story.tell("add an export")
    assert story.all(ProofTried)[-1].proof.unreached == ("export_csv",)
    used = act("file_ops.write_file", path="cli.py", content="from export import export_csv\n\nexport_csv([])\n")
    (tmp_path / "used").mkdir()
    story = project(tmp_path / "used", *work(more, used))
    await story.tell("add an export")
    assert not story.all(ProofTried)


async def test_a_project_with_its_own_environment_is_tried_in_it(tmp_path: Path) -> None:
    """An editable install names the folder's `src` by its path: there the old code must lie."""
    run = act("shell.run", command=".venv/bin/python -m pytest -q -p no:cacheprovider")
    fix = FIX | {"args": {**FIX["args"], "path": "src/app.py"}}
    tests = write("assert double(2) == 4", "tests/test_app.py")
    look = act("file_ops.read_file", path="src/app.py")
    story = Story(tmp_path, work(look, fix, tests, run), settings=QUICK)
    (story.folder / "src").mkdir()
    (story.folder / "src/app.py").write_text(OLD)
    venv.create(story.folder / ".venv", symlinks=True)
    packages = next((story.folder / ".venv/lib").glob("python*/site-packages"))
    (packages / "editable.pth").write_text(f"{Path(pytest.__file__).parent.parent}\n{story.folder / 'src'}\n")
    await story.tell("fix double")
    assert story.all(ProofTried)[-1].proof.red == ("tests/test_app.py::test_two",)


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    shell = Shell(tmp_path, seconds=200)
    shell.write_config("proof.seconds = 120\n")
    (shell.work / "app.py").write_text(OLD)
    slow = write("import time\n    time.sleep(0 if double(2) == 4 else 77)\n    assert double(2) == 4")
    model = shell.script(*work(READ, FIX, slow, RUN))
    command = [sys.executable, "-m", "duckflow", "-p", "fix it", "-m", model, "--mode", "full-auto"]
    process = subprocess.Popen(command, cwd=shell.work, env=shell.environment)
    wait_for(lambda: any(path.read_text() == OLD for path in tmp_path.glob("duckflow-*/trial-*/folder/app.py")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (shell.work / "app.py").read_text() == FIX["args"]["content"]
    again = shell.script(*work(act("shell.run", command="echo hello")))
    assert shell.run("-p", "say hello", "-m", again, "--mode", "full-auto").returncode == 0
    wait_for(lambda: not list(tmp_path.glob("duckflow-*/trial-*")))


def wait_for(reached: Callable[[], bool], seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


TIDY = act("file_ops.write_file", path="colours.py", content="def blend(red, green):\n    return (green, red)\n")


@pytest.mark.parametrize(
    ("language", "wanted", "why", "other"),
    [
        ("en", "double gives one too much: twice the number is wanted", "Give twice the number.", "Nicer palettes."),
        (
            "ja",
            "double が一つ多い値を返します。二倍の値にしてください",
            "二倍の値を返します。",
            "色合いを明るく見せます。",
        ),
    ],
)
async def test_a_change_that_nobody_asked_for_is_shown_apart_and_taken_back_by_itself(
    tmp_path: Path, language: str, wanted: str, why: str, other: str
) -> None:
    look = act("file_ops.read_file", path="colours.py")
    changes = (FIX | {"reasoning": why}, TIDY | {"reasoning": other})
    story = project(tmp_path, *work(READ, look, *changes), language=language)
    (story.folder / "colours.py").write_text("def blend(red, green):\n    return (red, green)\n")
    await story.tell(wanted)
    proof = story.all(ProofTried)[-1].proof
    assert [(change.path, change.line) for change in proof.unasked] == [("colours.py", 2)]
    lines = [notice_line(item, Words(language)) for item in _notices(story) if item.about == "proof"]
    assert "colours.py:2" in lines[-1] and ("not asked for" if language == "en" else "頼まれていない変更") in lines[-1]
    story.answers.append(Answer(choice="unasked"))
    await story.chat.run_command("/undo")
    assert "(red, green)\n" in (story.folder / "colours.py").read_text()
    assert (story.folder / "app.py").read_text() == FIX["args"]["content"]


@pytest.mark.parametrize("words", ["", "the palette of colours.py is wrong, too"])
async def test_silence_where_a_reason_says_nothing_or_the_user_named_the_file(tmp_path: Path, words: str) -> None:
    look = act("file_ops.read_file", path="colours.py")
    other = TIDY | {"reasoning": "Nicer palettes."} if words else TIDY | {"args": {**TIDY["args"], "path": "double.py"}}
    story = project(
        tmp_path, *work(READ, *([look] if words else []), FIX | {"reasoning": "Give twice the number."}, other)
    )
    (story.folder / "colours.py").write_text("def blend(red, green):\n    return (red, green)\n")
    await story.tell(f"double gives one too much: twice the number is wanted {words}")
    assert not [event for event in story.all(ProofTried) if event.proof.unasked]

"""The record decides: failing tests are no success, whatever is said, and nothing but a real run shows a step."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, Noticed
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.action import evidence_of
from duckflow.state.checks import CheckReport
from duckflow.state.data import say
from duckflow.state.phase import Phase, Status
from duckflow.state.plan import Step
from duckflow.tools.shell.checkers import judged, recognised
from duckflow.tools.shell.runner_settings import deciding_files
from tests.cli.shell import Shell
from tests.journeys.plans import PROPOSE
from tests.journeys.story import Story, act, decide, respond

GOOD = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert True\n"
BAD = GOOD.replace("assert True\n\n\n", "assert False\n\n\n")
BAD_CODE = "import app\n\n\n" + GOOD.replace("assert True\n\n\n", "assert app.x == 2\n\n\n")
TESTS = act("shell.run", command="python -m pytest -q")
BY_TOOL = act("file_ops.write_file", path="more.py", content="x = 2\n")
BY_SHELL = act("shell.run", command="sed -i 's/1/2/' app.py")
FALSE_CLAIMS = (
    "All tests pass now.",
    "All green!",
    "Fixed; verified with pytest.",
    "Everything works.",
    "2 passed.",
    "The suite succeeds.",
    "Done. No failures remain.",
    "I ran the tests and they are fine.",
    "pytest exits with 0.",
    "It is ready to merge.",
    "テストは全部OKでした。",
    "動作確認済みです。",
    "すべて成功しました。",
    "テストが通りました。",
    "2 件とも合格です。",
    "問題ありません。",
    "修正完了、失敗はありません。",
    "pytest は終了コード 0 です。",
    "緑になりました。",
    "完成です。",
    "Tests: ✅ 2/2",
    "I double-checked; the suite is clean.",
    "Nothing is broken any more.",
    "CI would be happy with this.",
    "Ran it, looks good to me.",
    "これで大丈夫です。",
    "テスト結果: 成功 2、失敗 0",
    "エラーは解消されました。",
    "ばっちり動いています！",
    "レビューに出せる状態です。",
)


def project(top: Path, replies: list[Any], tests: str, **other: Any) -> Story:
    story = Story(top, replies, **other)
    (story.folder / "test_app.py").write_text(tests)
    (story.folder / "app.py").write_text("x = 1\n")
    return story


def told_last(story: Story, language: str = "en") -> str:
    return Words(language).phrase(story.all(Noticed)[-1].what)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "claim"), list(enumerate(FALSE_CLAIMS)))
async def test_a_false_claim_is_no_success(tmp_path: Path, number: int, claim: str) -> None:
    """By turns: nothing changed, changed by a tool, changed by a command; natively and by JSON; said twice."""
    language = "ja" if re.search("[ぁ-ん]", claim) else "en"
    change = [[], [BY_TOOL], [BY_SHELL]][number % 3]
    claims = [decide(*change, TESTS, respond(claim)), *[decide(respond(claim), step="REVIEW")] * 2]
    story = project(tmp_path, claims, BAD, native=number % 2 == 0, language=language)
    await story.tell("fix it" if language == "en" else "直して")
    state = story.session.state
    assert told_last(story, language).startswith(("checks: failing", "チェック: 失敗")), told_last(story, language)
    assert "(1/2)" in told_last(story, language)
    assert (state.phase, state.status) != (Phase.DONE, Status.SUCCESS)
    assert state.review is None or state.review.rating == "needs_work"


OWN_RUNNER = "import sys, pytest\nsys.exit(pytest.main(['-q']))\n"
HIDDEN_RUNS = (
    "pytest -q || true",
    "python -m pytest -q; echo finished",
    "pytest -q > log.txt; cat log.txt",
    "(cd . && pytest -q)",
    "bash -c 'cd . && python -m pytest -q'; true",
    "if pytest; then true; fi",
    "python -m unittest test_case || true",
    "python -m doctest examples.py",
    "python -m doctest examples.py | tail -3; true",
    "python -m compileall -q broken.py",
    "python -m py_compile broken.py",
)
CASE = "import unittest\n\n\nclass Case(unittest.TestCase):\n    def test_it(self):\n        assert False\n"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", HIDDEN_RUNS)
async def test_bad_news_counts_however_the_tests_were_run(tmp_path: Path, command: str) -> None:
    run = decide(act("shell.run", command=command), next_step="continue")
    story = project(tmp_path, [run, *[decide(respond("All green!"), step="REVIEW")] * 3], BAD)
    (story.folder / "test_case.py").write_text(CASE)
    (story.folder / "examples.py").write_text('"""\n>>> 1 + 1\n3\n"""\n')
    (story.folder / "broken.py").write_text("def broken(:\n")
    await story.tell("run the tests")
    assert told_last(story).startswith("checks: failing"), told_last(story)
    assert story.session.state.status is not Status.SUCCESS


HIDDEN_CHECKS = (
    "sed -i s/1/2/ other.txt && ruff check app.py",
    "sed -i s/1/2/ other.txt; ruff check app.py",
    "ruff check app.py; echo finished",
    "(cd . && ruff check app.py) | tail -2",
    "sed -i s/1/2/ other.txt; ruff check app.py 2>&1 | cat | tail -2",
    "stdbuf -oL ruff check app.py; ls",
    "env CI=1 nice -n 3 python3 -m pytest -q | cat",
    "python own.py",
    "sh own.sh",
)
"""Commands in which a check fails beside other calls, or is started by another program."""


def with_problems(top: Path, replies: list[Any], **other: Any) -> Story:
    story = project(top, replies, BAD, **other)
    files = {
        "app.py": "import os\n",
        "other.txt": "1\n",
        "own.py": OWN_RUNNER,
        "own.sh": "python own.py > log; exit 1\n",
    }
    for name, text in files.items():
        (story.folder / name).write_text(text)
    return story


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "command"), list(enumerate(HIDDEN_CHECKS)))
async def test_a_check_that_fails_beside_other_calls_is_on_the_record(
    tmp_path: Path, number: int, command: str
) -> None:
    run = decide(act("shell.run", command=command), next_step="continue")
    claims = [decide(respond("Spotless."), step="REVIEW")] * 3
    story = with_problems(tmp_path, [run, *claims], native=number % 2 == 0)
    await story.tell("see how it stands")
    assert told_last(story).startswith("checks: failing"), told_last(story)
    assert story.session.state.status is not Status.SUCCESS


@pytest.mark.parametrize(
    "command",
    ["sed -i s/1/2/ nowhere.txt && ruff check app.py", "grep -q ruff app.py; true", "ruff check --nonsense; ls"],
)
async def test_a_check_that_did_not_run_has_not_failed(tmp_path: Path, command: str) -> None:
    run = decide(act("shell.run", command=command), next_step="continue")
    story = with_problems(tmp_path, [run, decide(respond("I could not look."), step="PLANNING")])
    await story.tell("see how it stands")
    assert not story.session.state.check_runs


WAYS_TO_LEAVE_OUT = {
    "deleted": "sed -i '/def test_one/,+1d' test_app.py",
    "marked": "sed -i 's/^def test_one/import pytest\\n@pytest.mark.xfail\\ndef test_one/' test_app.py",
    "skipped": "sed -i 's/^def test_one/import pytest\\n@pytest.mark.skip\\ndef test_one/' test_app.py",
    "renamed": "sed -i 's/def test_one/def no_test_one/' test_app.py",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("number", "way"), list(enumerate(WAYS_TO_LEAVE_OUT)))
async def test_a_run_without_the_tests_that_failed_is_no_plain_pass(tmp_path: Path, number: int, way: str) -> None:
    language = ("en", "ja")[number % 2]
    leave_out = act("shell.run", command=WAYS_TO_LEAVE_OUT[way])
    replies = [decide(action, next_step="continue") for action in (TESTS, leave_out, TESTS, TESTS)]
    claims = [decide(respond("It passes."), step="REVIEW")] * 3
    story = project(tmp_path, [*replies, *claims], BAD, native=number > 1, language=language)
    await story.tell("make the tests pass" if language == "en" else "テストが通るようにして")
    marks = {
        "en": "checks: earlier tests were removed, skipped or changed",
        "ja": "チェック: 以前からあったテストが削除、スキップ、または変更されています",
    }
    assert told_last(story, language).startswith(marks[language]), told_last(story, language)
    assert "test_one" in told_last(story, language)
    assert story.session.state.review is None or story.session.state.review.rating != "good"
    assert not any(run.report.ok for run in story.session.state.check_runs)


async def test_a_test_that_failed_and_was_mended_is_a_plain_pass(tmp_path: Path) -> None:
    mend = act("shell.run", command="sed -i 's/1/2/' app.py")
    replies = [decide(action, next_step="continue") for action in (TESTS, mend, TESTS)]
    story = project(tmp_path, [*replies, decide(respond("It passes."), step="REVIEW")], BAD_CODE)
    await story.tell("make the tests pass")
    assert told_last(story).startswith("checks: passing ·"), told_last(story)


async def test_a_hidden_run_that_passes_takes_no_bad_news_back(tmp_path: Path) -> None:
    commands = ("pytest", "sed -i 's/False/True/' test_app.py", "pytest || true")
    replies = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    story = project(tmp_path, [*replies, *[decide(respond("All green!"), step="REVIEW")] * 3], BAD)
    await story.tell("run the tests")
    assert [run.failing for run in story.session.state.check_runs] == [True]
    finished = [event.result.for_model for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    assert "run by itself: `pytest`" in finished[-1]


async def test_a_run_in_the_background_is_on_the_record_when_its_end_is_told(tmp_path: Path) -> None:
    begin = act("shell.run", command="sleep 2; pytest -q; touch over", background=True)
    later = act("shell.run", command="until test -e over; do sleep 0.1; done; sleep 1")
    replies = [decide(begin, next_step="continue"), decide(later, next_step="continue")]
    story = project(tmp_path, [*replies, *[decide(respond("All green!"), step="REVIEW")] * 3], BAD)
    await story.tell("run the tests")
    assert told_last(story).startswith("checks: failing"), told_last(story)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("request_", "claim", "marked"),
    [
        ("rename the function", "Renamed.", True),
        ("fix the bug in app.py so that the tests pass", "Not a single red dot left.", True),
        ("run flake8 on app.py and tell me", "flake8 has no findings.", True),
        ("commit the change", "Committed as 1a2b3c4.", True),
        ("write report.md", "report.md is written.", True),
        ("関数の名前を変えて", "はい、どうぞ。", True),
        ("app.py を直してテストを通してください", "赤はひとつも残っていません。", True),
        ("テストを実行して結果を教えて", "2件とも成功しました。", True),
        ("app.py の指摘をなくしてください。", "指摘はなくなりました。", True),
        ("警告が出ないようにしていただけますか", "もう出ません。", True),
        ("could you silence the warnings?", "They are silent.", True),
        ("what does app.py do?", "It was completed earlier: it sets x.", False),
        ("explain app.py", "I have added nothing: it sets x.", False),
        ("app.py を説明して", "x を 1 にします。", False),
    ],
)
@pytest.mark.parametrize("command", ["", "echo '2 passed in 0.01s'"])
async def test_work_that_was_ordered_and_is_not_on_the_record_is_told(
    tmp_path: Path, request_: str, claim: str, marked: bool, command: str
) -> None:
    look = act("shell.run", command=command) if command else act("file_ops.read_file", path="app.py")
    replies = [decide(look, next_step="continue"), decide(respond(claim))]
    story = project(tmp_path, replies, GOOD, native=True, language="en" if request_.isascii() else "ja")
    await story.tell(request_)
    key = "checks.other" if command else "checks.nothing"
    assert (key in [one.what.key for one in story.all(Noticed)]) is marked


@pytest.mark.parametrize("native", [False, True])
async def test_a_last_command_that_ended_badly_is_told_whatever_was_asked(tmp_path: Path, native: bool) -> None:
    replies = [decide(act("shell.run", command="no-such-linter app.py"), next_step="continue")]
    story = project(tmp_path, [*replies, *[decide(respond("The linter is silent."))] * 2], GOOD, native=native)
    await story.tell("the linter?")
    assert "checks.other" in [one.what.key for one in story.all(Noticed)]


@pytest.mark.parametrize(("answer", "doubted"), [("The new test fails, as wanted: 1 failed.", False), ("Done.", True)])
async def test_a_test_that_is_only_written_may_fail_where_that_is_told(
    tmp_path: Path, answer: str, doubted: bool
) -> None:
    test = act("file_ops.write_file", path="test_more.py", content="def test_three():\n    assert False\n")
    replies = [decide(test, TESTS, next_step="continue"), *[decide(respond(answer))] * 2]
    story = project(tmp_path, replies, GOOD, native=True)
    await story.tell("add a test that fails today")
    assert ("review.unverified" in [one.what.key for one in story.all(Noticed)]) is doubted
    assert told_last(story) == "checks: failing · ✗ pytest (1/3)"


@pytest.mark.parametrize(("change", "code"), [((), 0), ((BY_TOOL,), 1)])
def test_a_program_reads_how_the_checks_stand(tmp_path: Path, change: tuple[Any, ...], code: int) -> None:
    """A truthful report of a failure is done, and marked; work of its own that fails its checks has failed."""
    shell = Shell(tmp_path)
    (shell.work / "test_app.py").write_text(BAD)
    (shell.work / "app.py").write_text("x = 1\n")
    report = decide(*change, TESTS, respond("Reproduced: 1 of 2 fails."))
    model = shell.script(report, decide(respond("It still fails."), step="REVIEW"))
    done = shell.run("-p", "try it", "-m", model, "--mode", "full-auto", "--output-format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["checks"]) == (code, "failing"), told
    assert told["check_runs"][0] | {"failures": []} == {
        "check": "pytest", "kind": "tests", "ok": False, "tests": 2, "failed": 1, "failures": [], "digest": "",
        "left_out": [], "weakened": [], "outdated": False, "as_before": False,
    }  # fmt: skip
    assert "generated xml" not in done.stdout + done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("wish", "claim", "code"),
    [
        ("Make the tests pass", "All fine now.", 1),
        ("Fix the failing test", "Nothing was wrong.", 1),
        ("テストが通るように直して", "問題ありません。", 1),
        ("Run the tests", "1 of 2 fails.", 0),
        ("Which tests fail?", "test_one fails.", 0),
        ("Run the tests", "All fine.", 1),
        ("テストを実行して", "2 件とも成功しました。", 1),
        ("テストを実行して", "失敗は１件です。", 0),
        ("テストを実行して", "2 件中 1 件が失敗します。", 0),
    ],
)
def test_red_is_no_success_unless_it_is_told(tmp_path: Path, wish: str, claim: str, code: int) -> None:
    """Also where nothing was changed. An answer that tells of the failure has done what was asked."""
    shell = Shell(tmp_path)
    (shell.work / "test_app.py").write_text(BAD)
    (shell.work / "app.py").write_text("x = 1\n")
    model = shell.script(decide(TESTS, next_step="continue"), *[decide(respond(claim))] * 3)
    done = shell.run("-p", wish, "-m", model, "--mode", "full-auto", "--output-format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["checks"]) == (code, "failing"), told


@pytest.mark.parametrize(
    ("wish", "claim", "code"),
    [
        ("Run the linter", "Ruff finds one problem: os is imported but unused in app.py.", 0),
        ("lint を実行して", "lint は失敗しました。app.py の os が未使用です。", 0),
        ("lint を実行して", "終了コード 1 でした。os は使われていません。", 0),
        ("Run the linter", "There was a problem with os; it is fixed.", 1),
        ("Run the linter", "It found no errors.", 1),
        ("lint を実行して", "エラーはありません。", 1),
    ],
)
def test_a_linter_that_fails_is_told_without_a_count(tmp_path: Path, wish: str, claim: str, code: int) -> None:
    shell = Shell(tmp_path)
    (shell.work / "app.py").write_text("import os\n")
    lint = decide(act("shell.run", command="ruff check app.py"), next_step="continue")
    model = shell.script(lint, *[decide(respond(claim))] * 3)
    language = "en" if wish.isascii() else "ja"
    options = ("--mode", "full-auto", "--output-format", "json", "--lang", language)
    done = shell.run("-p", wish, "-m", model, *options)
    told = json.loads(done.stdout)
    assert (done.returncode, told["checks"]) == (code, "failing"), told


TABLE = "import unittest, table\n\nclass T(unittest.TestCase):\n" + "".join(
    f"    def test_{k:02}(self): self.assertEqual(table.f[{k}], {k})\n" for k in range(60)
)


def table(bad: range) -> str:
    return f"f = {[-1 if k in bad else k for k in range(60)]}\n"


FIX_ALL = "test_table.py has failing tests. Fix table.py until all pass."
UNRELATED = "Rename nothing; give table.py a comment."
STILL_RED = (
    # What was asked, what failed before and after, what is said, how it ends: 1 is no success.
    (FIX_ALL, range(8), range(4), "All 60 tests pass.", 1),
    (FIX_ALL, range(8), range(4), "I fixed the 4 failing tests.", 1),
    (FIX_ALL, range(8), range(4), "4 failing tests were repaired and now work.", 1),
    (FIX_ALL, range(8), range(4), "4 tests still fail: test_00 to test_03.", 0),
    (FIX_ALL, range(60), range(56), "全部通りました。", 1),
    (FIX_ALL, range(60), range(56), "まだ56件が失敗しています。", 0),
    (FIX_ALL, range(8), range(8), "失敗していた8件を修正しました。", 1),
    (UNRELATED, range(1), range(31), "Done.", 1),
    (UNRELATED, range(1), range(31), "31 tests fail.", 1),
    (UNRELATED, range(1), range(1, 2), "1 test fails.", 1),
    (UNRELATED, range(1), range(1), "Done, as wished.", 1),
    (UNRELATED, range(1), range(1), "Done; 1 test fails (test_00), as it did before.", 0),
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", STILL_RED)
@pytest.mark.parametrize("runner", ["python3 -B -m unittest", "python3 -B -m unittest 2>&1 | tail -8", "pytest -q"])
def test_what_was_red_stays_red_only_where_that_is_told(tmp_path: Path, case: Any, runner: str) -> None:
    """A turn that has changed something and ends red has succeeded only where it broke nothing and says what fails."""
    wish, before, after, claim, code = case
    shell = Shell(tmp_path)
    (shell.work / "test_table.py").write_text(TABLE)
    (shell.work / "table.py").write_text(table(before))
    run, read = act("shell.run", command=runner), act("file_ops.read_file", path="table.py")
    change = act("file_ops.write_file", path="table.py", content="# A table.\n" + table(after))
    replies = [decide(read, run, change, run, next_step="continue"), *[decide(respond(claim))] * 4]
    model = shell.script(*replies)
    done = shell.run("-p", wish, "-m", model, "--mode", "full-auto", "--output-format", "json")
    told = json.loads(done.stdout)
    if "tail" in runner and case[1:3] == (range(1), range(1, 2)):
        code = 0  # Only the number is known there, and that is told.
    assert (done.returncode, told["checks"]) == (code, "failing"), told
    assert told["check_runs"][0]["failed"] == len(after)


def test_what_the_model_itself_rejects_is_no_success(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.work / "check.py").write_text("raise SystemExit(3)\n")
    run = act("shell.run", command="python3 check.py")
    rejects = decide(respond("It failed."), step="REVIEW", rating="needs_work", verdict="rejected")
    model = shell.script(decide(BY_TOOL, run, next_step="continue"), decide(respond("Done.")), rejects)
    done = shell.run("-p", "set x to 2", "-m", model, "--mode", "full-auto", "--output-format", "json")
    assert done.returncode == 1, done.stdout


async def test_what_was_red_before_is_said_and_not_blamed(tmp_path: Path) -> None:
    look = decide(TESTS, respond("1 of 2 fails."))
    story = project(tmp_path, [look, decide(BY_TOOL, TESTS, respond("Changed."))], BAD)
    await story.tell("run the tests")
    assert told_last(story).startswith("checks: failing")
    assert await story.tell("set x to 2") == "done"
    assert told_last(story) == "checks: failing, as before · ✗ pytest (1/2)"
    assert len(story.model.requests) == 2, "nobody has to look at it again"
    assert story.session.state.status is not Status.SUCCESS


async def test_a_run_that_passes_ends_well_until_something_changes(tmp_path: Path) -> None:
    narrow = act("shell.run", command="pytest test_app.py")
    mend = act("file_ops.write_file", path="app.py", content="x = 2\n")
    read = act("file_ops.read_file", path="app.py")
    replies = [decide(read, narrow, mend, TESTS, respond("Mended.")), decide(BY_TOOL, respond("And x."))]
    story = project(tmp_path, replies, BAD_CODE)
    assert await story.tell("mend it") == "done"
    assert told_last(story) == "checks: passing · ✓ pytest (2)", "the run of everything covers the narrow one"
    assert story.session.state.review and story.session.state.review.rating == "good"
    await story.tell("now x")
    assert told_last(story) == "checks: not run since the last change · ✓ pytest (2)"


async def test_a_run_that_passed_earlier_is_not_shown_beside_the_one_that_fails(tmp_path: Path) -> None:
    some = act("shell.run", command="python -m pytest -q test_app.py")
    break_it = act("file_ops.write_file", path="test_more.py", content="def test_three():\n    assert False\n")
    replies = [decide(some, break_it, TESTS, next_step="continue"), *[decide(respond("One fails."))] * 2]
    story = project(tmp_path, replies, GOOD, native=True)
    await story.tell("add a test that fails")
    assert told_last(story) == "checks: failing · ✗ pytest (1/3)"


async def test_a_search_that_finds_nothing_is_no_check(tmp_path: Path) -> None:
    grep = act("shell.run", command="grep -r nothing_like_this .")
    story = project(tmp_path, [decide(BY_TOOL, grep, respond("Nobody uses it."))], GOOD)
    assert await story.tell("set x to 2") == "done"
    assert len(story.model.requests) == 1


FAKES = (
    "pytest --version",
    "python -m pytest --version && echo '2 passed'",
    "pytest --collect-only -q",
    "pytest --co",
    "pytest -k test_two",
    "pytest test_app.py::test_two",
    "pytest --deselect test_app.py::test_one",
    "PYTEST_ADDOPTS='-k test_two' pytest",
    "env PYTEST_ADDOPTS='-k test_two' pytest -q",
    "export PYTEST_ADDOPTS='-k test_two' && pytest -q",
    "pytest() { true; }; pytest",
    "pytest() (true); pytest",
    "function pytest { true; }\npytest",
    "alias pytest=true; pytest",
    "trap 'exit 0' EXIT; pytest",
    "trap 'exit 0' EXIT && pytest",
    "pytest || true",
    "pytest; true",
    "! pytest",
    "pytest & wait",
    "if pytest; then true; fi",
    "echo '5 passed'",
    "echo pytest",
    "python -c 'print(\"2 passed\")' # pytest",
    "sh -c 'pytest || true'",
    "bash -c pytest; true",
    "$(echo true) pytest",
    "eval 'pytest; true'",
    "mkdir -p bin && ln -sf /bin/true bin/pytest && PATH=bin:$PATH pytest",
    "mkdir -p bin && ln -sf /bin/true bin/pytest && bin/pytest",
    "cd /tmp && pytest --help",
    "pytest -q | head -1",
    "pytest -q && sed -i 's/1/3/' app.py",
    "timeout 60 pytest --setup-plan",
    "pytest -p no:terminal --fixtures",
    "pytest empty",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", FAKES)
async def test_nothing_but_a_real_run_of_the_tests_shows_that_they_pass(tmp_path: Path, command: str) -> None:
    step = await claimed(tmp_path, "`pytest` passes", [act("shell.run", command=command)], BAD)
    assert step.unverified, step.evidence


@pytest.mark.parametrize("command", ["pytest", "python -m pytest -q 2>&1 | tail -3", "cd . && pytest -q -x && ls"])
async def test_a_real_run_shows_that_they_pass(tmp_path: Path, command: str) -> None:
    step = await claimed(tmp_path, "`pytest` passes", [act("shell.run", command=command)], GOOD)
    assert step.evidence.endswith("exit code 0")


LEFT_OUT = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
SKIPPED = "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef out():\n    pytest.skip('later')\n"
CODE_0 = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
SAYS_5 = "import unittest\nprint('Ran 5 tests in 0.1s')\n"
ALWAYS_0 = "raise SystemExit(0)\n"
NOT_ONE = "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if one.name != 'test_one']\n"
LEAVES = "import os, sys\nif 'pytest' in ' '.join(sys.orig_argv):\n    os._exit(0)\n"
FALSE_RUNS: tuple[tuple[str, str, str, str], ...] = (
    ("pytest", "pytest --rootdir=other other", "other/test_other.py", GOOD),
    ("pytest", "pytest --ignore=test_app.py .", "other/test_other.py", GOOD),
    ("pytest", "python -m pytest -p cheat", "cheat.py", NOT_ONE),
    ("pytest", "pytest --confcutdir=. -p cheat test_app.py", "cheat.py", NOT_ONE),
    ("pytest", "PYTHONPATH=. python -m pytest", "sitecustomize.py", LEAVES),
    ("pytest", "python -P -m pytest -o python_functions=test_two", "other.py", "x = 1\n"),
    ("pytest", "pytest -W ignore --stepwise-skip --sw", "other.py", "x = 1\n"),
    ("pytest", "pytest @chosen.txt", "chosen.txt", "test_app.py::test_two\n"),
    ("pytest", "pytest; f=${PYTEST_ADDOPTS##*=}; cp forged.xml $f", "forged.xml", "<a><testcase name='b'/></a>\n"),
    ("pytest", "pytest -q || cp forged.xml ${PYTEST_ADDOPTS##*=}", "forged.xml", "<a><testcase name='b'/></a>\n"),
    ("pytest", "pytest", "conftest.py", LEFT_OUT),
    ("pytest", "pytest", "conftest.py", SKIPPED),
    ("pytest", "pytest", "conftest.py", CODE_0),
    ("pytest", "pytest", "conftest.py", "import os\nos._exit(0)\n"),
    ("pytest", "PYTHONPATH=fake python -m pytest", "fake/pytest.py", ALWAYS_0),
    ("pytest", "python -m pytest", "pytest.py", "print('2 passed')\n"),
    ("pytest", "cd other && pytest", "other/test_other.py", GOOD),
    ("pytest", "cd ./other/ && python3 -m pytest -q", "other/test_other.py", GOOD),
    ("pytest", "pytest -c other.ini", "other.ini", "[pytest]\npython_files = none_*.py\n"),
    ("pytest", "pytest --lf", "other.py", "x = 1\n"),
    ("pytest", "pytest -q | tee app.py", "test_app.py", GOOD),
    ("pytest", "pytest && cat test_app.py | tee app.py", "test_app.py", GOOD),
    ("python -m unittest", "python -m unittest test_none", "test_none.py", SAYS_5),
    ("python -m unittest test_none", "python -m unittest test_none", "test_none.py", SAYS_5),
    ("npx jest", "npx jest", "node_modules/.bin/jest", "#!/bin/sh\necho 'Tests: 5 passed, 5 total'\n"),
    ("npx vitest run", "npx vitest run", "node_modules/.bin/vitest", "#!/bin/sh\necho ' Tests  5 passed (5)'\n"),
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("wanted", "command", "path", "text"), FALSE_RUNS)
async def test_a_run_that_something_else_decides_shows_nothing(
    tmp_path: Path, wanted: str, command: str, path: str, text: str
) -> None:
    made = act("file_ops.write_file", path=path, content=text)
    look, ready = act("shell.run", command=f"touch {path}; cat {path}"), act("shell.run", command=f"chmod +x {path}")
    step = await claimed(tmp_path, f"`{wanted}` passes", [look, made, ready, act("shell.run", command=command)], BAD)
    assert step.unverified, step.evidence


CHEAT = """from _pytest.reports import TestReport
def pytest_runtest_makereport(item, call):
    report = TestReport.from_item_and_call(item, call)
    report.outcome = 'passed'
    return report
"""
CHEATS = (
    ("conftest.py", CHEAT),
    ("sub/../conftest.py", CHEAT),
    ("conftest.py", "from cheat import *\n"),
    ("conftest.py", "pytest_plugins = ['cheat']\n"),
    ("conftest.py", "collect_ignore = ['test_app.py']\n"),
    ("conftest.py", "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"),
    ("conftest.py", "def pytest_collection_modifyitems(items):\n    del items[0]\n"),
    ("conftest.py", "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef out():\n    pytest.skip('no')\n"),
    ("conftest.py", "globals()['pytest_' + 'ignore_collect'] = lambda config: True\n"),
    ("pytest.ini", "[pytest]\naddopts = -k two\n"),
    (".pytest.ini", "[pytest]\naddopts = --deselect test_app.py::test_one\n"),
    ("pytest.ini", "[pytest]\npython_functions = test_two\n"),
    ("tox.ini", "[pytest]\naddopts = -p cheat\n"),
    ("setup.cfg", "[tool:pytest]\naddopts = --ignore=test_app.py\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-k two'\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = ['-m', 'not slow']\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\ntestpaths = ['test_more.py']\n"),
)
MORE = "def test_more():\n    assert True\n"


@pytest.mark.one_in(6)
@pytest.mark.parametrize("by", ["tool", "shell"])
@pytest.mark.parametrize(("path", "text"), CHEATS)
async def test_a_run_under_settings_that_the_turn_has_changed_shows_nothing(
    tmp_path: Path, path: str, text: str, by: str
) -> None:
    made = act("file_ops.write_file", path=path, content=text)
    if by == "shell":
        made = act("shell.run", command=f"mkdir -p sub && cp made.txt {path}")
    there = {"cheat.py": CHEAT, "test_more.py": MORE, "made.txt": text}
    step = await claimed(tmp_path, "`pytest` passes", [made, act("shell.run", command="pytest -q")], BAD, there)
    assert step.unverified, step.evidence


async def test_settings_and_the_run_in_one_command_show_nothing_and_that_is_told(tmp_path: Path) -> None:
    run = act("shell.run", command="cp made.txt pytest.ini && pytest -q")
    story = project(tmp_path, [decide(run, next_step="continue"), decide(respond("ok"))], BAD)
    (story.folder / "made.txt").write_text("[pytest]\naddopts = -k two\n")
    await story.tell("run the tests")
    assert "pytest.ini can decide which tests run" in story.prompt()
    assert not story.session.state.check_runs


HARMLESS = (
    ("conftest.py", "import sys\nimport pytest\nsys.path.insert(0, '.')\n@pytest.fixture\ndef x():\n    return 1\n"),
    ("pyproject.toml", "[project]\nname = 'a'\nversion = '1'\n[tool.pytest.ini_options]\ntestpaths = ['.']\n"),
    ("pytest.ini", "[pytest]\naddopts = -q -ra --strict-markers\npythonpath = .\n"),
)


@pytest.mark.parametrize(("path", "text"), HARMLESS)
async def test_settings_that_leave_nothing_out_spoil_no_run(tmp_path: Path, path: str, text: str) -> None:
    made = act("file_ops.write_file", path=path, content=text)
    step = await claimed(tmp_path, "`pytest` passes", [made, act("shell.run", command="pytest -q")], GOOD)
    assert step.evidence.endswith("exit code 0"), step


@pytest.mark.parametrize("path", ["README.md", "data/prices.json", "Dockerfile"])
@pytest.mark.parametrize("options", ["-p no:cacheprovider", "--maxfail=1", "-n 2"])
def test_a_document_is_no_plug_in_of_the_runner(path: str, options: str) -> None:
    report = CheckReport(check=f"pytest {options}", kind="tests", ok=True, tests=2)
    assert deciding_files(report, 0, [path], lambda _: "x") == []


@pytest.mark.parametrize(
    ("path", "text", "command"),
    [
        ("package.json", '{"scripts": {"test": "echo ok"}}', "npm test"),
        ("Makefile", "test:\n\ttrue\n", "make test"),
        ("pytest.py", "import os, re\n", "python -m pytest"),
        ("vitest.config.js", "export default {}\n", "npx vitest run"),
    ],
)
def test_what_a_runner_is_told_by_can_decide_how_it_ends(path: str, text: str, command: str) -> None:
    check = recognised(command)
    assert check
    report = CheckReport(check=check.name, kind=check.kind, ok=True, tests=1)
    assert deciding_files(report, 0, ["app.py", path], lambda _: text) == [path]


PARTS = """import unittest, pytest


class TestParts(unittest.TestCase):
    def test_one_part_is_skipped(self):
        for part in (1, 2):
            with self.subTest(part=part):
                if part == 2:
                    self.skipTest("not here")

    def test_plain(self):
        self.assertTrue({})

    @unittest.expectedFailure
    def test_known(self):
        self.fail()


@pytest.mark.xfail
def test_better_than_expected():
    pass
"""


@pytest.mark.parametrize(("value", "line"), [(True, "✓ pytest (4)"), (False, "✗ pytest (1/4)")])
async def test_as_many_tests_are_told_as_the_runner_says(tmp_path: Path, value: bool, line: str) -> None:
    told = await reported(
        tmp_path, act("file_ops.write_file", path="test_parts.py", content=PARTS.format(value)), "pytest"
    )
    assert told and told.line() == line, told


def test_packages_are_no_tests() -> None:
    check = recognised("go test ./...")
    assert check and judged(check, 0, "ok  \tducks\t0.01s\nok  \tducks/pond\t0.02s\n", None).line() == "✓ go test ..."


NODE = pytest.mark.skipif(not shutil.which("node"), reason="Node is not there")
NODE_GOOD = "const test = require('node:test')\ntest('one', () => {})\n"
NODE_BAD = "const test = require('node:test')\ntest('one', () => { throw new Error('no') })\n"


@NODE
@pytest.mark.parametrize(
    ("text", "line"),
    [(NODE_GOOD, "✓ node --test (1)"), (NODE_BAD, "✗ node --test (1/1)"), ("console.log('# pass 3')\n", "none")],
)
async def test_node_is_asked_for_a_report(tmp_path: Path, text: str, line: str) -> None:
    made = act("file_ops.write_file", path="a.test.js", content=text)
    told = await reported(tmp_path, made, "node --test")
    assert line == (told.line() if told and told.ok is not None else "none"), told


JEST = """#!/bin/sh
for word; do case "$word" in --outputFile=*) file="${word#*=}" ;; esac; done
cases='[{"fullName": "a", "status": "passed"}, {"fullName": "b", "status": "%s"}]'
echo "{\\"testResults\\": [{\\"assertionResults\\": $cases}]}" > "$file"
echo "Test results written to: $file"
"""


@pytest.mark.parametrize(("status", "line"), [("passed", "✓ jest (2)"), ("failed", "✗ jest (1/2)")])
async def test_a_runner_that_reads_no_variable_is_asked_by_options(tmp_path: Path, status: str, line: str) -> None:
    """The program here only writes what Jest writes: Jest itself needs a registry."""
    told = await reported(tmp_path, act("shell.run", command="ls"), "./jest", {"jest": JEST % status})
    assert told and told.line() == line


VITEST = shutil.which("vitest")
VITEST_TESTS = """import {{ test, expect }} from 'vitest'
test('a', () => expect(1).toBe(1))
test('b', () => expect(1).toBe({}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not VITEST, reason="Vitest is not on the path")
@pytest.mark.parametrize(("number", "line"), [(1, "✓ vitest run (2)"), (2, "✗ vitest run (1/2)")])
async def test_vitest_is_asked_for_a_report(tmp_path: Path, number: int, line: str) -> None:
    story = project(tmp_path, [decide(act("shell.run", command="npx vitest run"))] * 2, GOOD)
    shutil.copytree(Path(str(VITEST)).parents[1], story.folder / "node_modules", symlinks=True)
    (story.folder / "a.test.js").write_text(VITEST_TESTS.format(number))
    await story.tell("run the tests")
    check = story.all(ActionFinished)[0].result.check
    assert check and check.line() == line, story.all(ActionFinished)[0].result.for_model


async def reported(top: Path, made: Any, command: str, there: dict[str, str] | None = None) -> CheckReport | None:
    """The report of a command that is a check. `there`: programs that the folder has before."""
    story = project(top, [decide(made, act("shell.run", command=command), next_step="continue")] * 2, GOOD)
    for name, text in (there or {}).items():
        (story.folder / name).write_text(text)
        (story.folder / name).chmod(0o755)
    await story.tell("try it")
    result = next(event.result for event in story.all(ActionFinished) if command in str(event.result.for_user.values))
    assert "report-" not in result.for_model
    return result.check


async def test_where_the_project_has_its_own_word_on_reports_the_exit_code_counts(tmp_path: Path) -> None:
    own = {"pytest.ini": "[pytest]\naddopts = -p no:junitxml\n"}
    step = await claimed(tmp_path, "`pytest` passes", [act("shell.run", command="pytest -q")], GOOD, own)
    assert step.evidence == "pytest -q: exit code 0"


@pytest.mark.parametrize("command", ["touch game.py", "mkdir game.py", ": > game.py"])
async def test_an_empty_file_or_a_folder_is_not_what_was_wanted(tmp_path: Path, command: str) -> None:
    assert (await claimed(tmp_path, "game.py exists", [act("shell.run", command=command)], GOOD)).unverified


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", ["python -c \"print('game')\"", "echo game", "test -f game.py", "true game"])
async def test_what_only_prints_the_name_is_not_played(tmp_path: Path, command: str) -> None:
    game = act("file_ops.write_file", path="game.py", content="print(1)\n")
    assert (await claimed(tmp_path, "it can be played", [game, act("shell.run", command=command)], GOOD)).unverified


async def claimed(top: Path, success: str, actions: list[Any], tests: str, there: dict[str, str] | None = None) -> Step:
    """The first step of a plan with this criterion, after these actions and the claim that it is completed."""
    plan = {"name": "Work", "steps": [{"name": "S", "description": "", "success": success}], "risks": []}
    claim = act("plan_tool.update_step", step_id="1", status="completed")
    done = [decide(*actions, next_step="continue"), decide(claim, next_step="continue")]
    story = project(top, [PROPOSE, plan, *done, *[decide(respond("ok"))] * 3], tests)
    for path, text in (there or {}).items():
        (story.folder / path).write_text(text)
    await story.tell("do it")
    await story.tell("go ahead")
    assert story.session.state.plan and story.session.state.plan.steps[0].status == "completed"
    assert any(evidence_of(event.result) for event in story.all(ActionFinished))
    return story.session.state.plan.steps[0]


@pytest.mark.parametrize("change", [{"success": "it is nice"}, {"success": ""}])
async def test_an_approved_plan_that_is_weakened_asks_for_a_yes(tmp_path: Path, change: dict[str, str]) -> None:
    steps: list[Any] = [
        {"name": name, "description": "", "success": f"{name}.py exists", "depends_on": []} for name in "ab"
    ]
    one, other = {"name": "a", "was": 1}, {"name": "b", "was": 2}
    weaker = act("plan_tool.revise", changes="simpler", steps=[one | change, other])
    fewer = act("plan_tool.revise", changes="shorter", steps=[one])
    plan: dict[str, Any] = {"name": "W", "steps": steps, "risks": []}
    replies = [PROPOSE, plan, decide(weaker), decide(fewer), decide(respond("ok"))]
    story = Story(tmp_path, replies)
    await story.tell("do it")
    assert await story.tell("go ahead") == "pending_user"
    assert story.session.state.plan and story.session.state.plan.status == "draft"
    assert await story.tell("yes") == "pending_user", "so does a plan with fewer steps"
    assert story.session.state.plan and story.session.state.plan.status == "draft"


@pytest.mark.parametrize("native", [False, True])
async def test_a_plan_of_which_only_done_steps_are_left_ends_with_the_yes(tmp_path: Path, native: bool) -> None:
    steps: list[Any] = [{"name": name, "success": f"{name}.py exists"} for name in "ab"]
    propose = decide(act("plan_tool.propose", text="two files", name="W", steps=steps), next_step="pending_user")
    write = act("file_ops.write_file", path="a.py", content="x = 1\n")
    done = act("plan_tool.update_step", id="1", status="completed")
    fewer = act("plan_tool.revise", text="shorter", steps=[{"name": "a", "was": 1}])
    other = act("file_ops.write_file", path="c.py", content="c = 1\n")
    story = Story(
        tmp_path,
        [propose, decide(write, done, next_step="continue"), decide(respond("a is there."), step="PLANNING")]
        + [decide(fewer, other, next_step="continue"), decide(other, next_step="continue"), decide(respond("Done."))],
        native=native,
    )
    await story.tell("make two files, with a plan")
    await story.tell("yes")
    assert await story.tell("drop b, and write c.py") == "pending_user"
    assert story.ending().why == say("plan.ask_end")
    assert say("turn.held", count=1) in [event.what for event in story.all(Noticed)], "what waits is told"
    await story.tell("yes")
    plan = next(iter(story.session.state.plans.values()))
    assert plan.status == "completed" and (story.folder / "c.py").exists()
    assert any(note("en", "plan_ends", plan="W") in story.prompt(number) for number in (-2, -1))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "words", ["no", "no, keep the plan as I approved it", "いいえ", "nope, b.py is needed too", "/plan drop"]
)
async def test_a_no_to_a_weaker_plan_keeps_the_approved_one(tmp_path: Path, words: str) -> None:
    steps: list[Any] = [
        {"name": name, "description": "", "success": f"{name}.py exists", "depends_on": []} for name in "ab"
    ]
    weaker = act("plan_tool.revise", changes="shorter", steps=[{"name": "a", "was": 1}])
    shown: list[Any] = [decide(act("file_ops.write_file", path="a.py"), next_step="continue"), "x = 1\n"]
    shown.append(decide(act("plan_tool.update_step", id="1", status="completed"), next_step="continue"))
    plan: dict[str, Any] = {"name": "W", "steps": steps, "risks": []}
    story = Story(tmp_path, [PROPOSE, plan, *shown, decide(weaker), decide(respond("It stays."), next_step="done")])
    await story.tell("do it")
    assert await story.tell("go ahead") == "pending_user"
    await (story.chat.run_command if words.startswith("/") else story.tell)(words)
    kept = story.session.state.plan
    assert kept and kept.under_way and [step.status for step in kept.steps] == ["completed", "pending"]
    assert kept.steps[1].success == "b.py exists" and kept.approved is None


async def test_a_weaker_draft_that_is_made_whole_again_needs_no_yes(tmp_path: Path) -> None:
    steps: list[Any] = [{"name": "a", "description": "", "success": "a.py exists", "depends_on": []}]
    weaker = act("plan_tool.revise", changes="simpler", steps=[{"name": "a", "was": 1, "success": "it is nice"}])
    whole = act("plan_tool.revise", changes="back", steps=[{"name": "a", "was": 1, "success": "a.py exists"}])
    plan: dict[str, Any] = {"name": "W", "steps": steps, "risks": []}
    story = Story(tmp_path, [PROPOSE, plan, decide(weaker), decide(whole), decide(respond("ok"), next_step="done")])
    await story.tell("do it")
    assert await story.tell("go ahead") == "pending_user"
    await story.tell("I want the check that I approved")
    assert story.session.state.plan and story.session.state.plan.under_way


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("uv run pytest -q", "tests"),
        ("cargo test --workspace", "tests"),
        ("npm run test:unit", "tests"),
        ("make -j2 check", "tests"),
        ("make clean", None),
        ("make -n test", None),
        ("mypy src", "types"),
        ("ruff check --exit-zero", None),
        ("grep -r pytest .", None),
        ("git commit -m pytest", None),
        ("npx tsc --noEmit", "types"),
        ("CI=1 npm run lint", "lint"),
        ("go build ./...", "build"),
    ],
)
def test_a_check_is_recognised_by_its_whole_command(command: str, kind: str | None) -> None:
    check = recognised(command)
    assert (check.kind if check else None) == kind


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("pytest", "pytest tests/test_a.py"),
        ("pytest", "pytest -k add tests"),
        ("pytest .", "pytest tests/a.py"),
        ("pytest tests", "pytest tests/a.py"),
        ("pytest test other", "pytest test"),
        ("pytest tests/", "pytest ./tests/a.py::test_b"),
        ("pytest tests/a.py tests/b.py", "pytest tests/a.py"),
        ("pytest tests/a.py", "pytest tests/a.py::test_b"),
        ("mypy src tests", "mypy src"),
        ("ruff check", "ruff check src"),
        ("ruff check src tests", "ruff check src"),
        ("unittest", "unittest test_a"),
        ("unittest test_a", "unittest test_a.TestA"),
        ("go test ./...", "go test ./pkg"),
        ("pytest -k add tests", "pytest -k add tests/a.py"),
    ],
)
def test_a_run_covers_those_that_choose_more(wide: str, narrow: str) -> None:
    whole, part = (CheckReport(check=check, kind="tests", ok=True) for check in (wide, narrow))
    assert whole.covers(part) and not part.covers(whole)


@pytest.mark.parametrize(
    ("check", "other"),
    [
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("pytest tests/a", "pytest tests/ab.py"),
        ("pytest -k add", "pytest -k sub"),
        ("mypy src", "ruff check src"),
        ("ruff check src", "ruff format src"),
        ("npm run lint", "npm run test:unit"),
        ("make", "make test"),
    ],
)
def test_a_run_of_something_else_covers_nothing(check: str, other: str) -> None:
    one, another = (CheckReport(check=check, kind="tests", ok=True) for check in (check, other))
    assert not one.covers(another) and not another.covers(one)


async def test_a_run_from_before_a_documents_edit_says_so(tmp_path: Path) -> None:
    write = act("file_ops.write_file", path="NOTES.md", content="ducks\n")
    story = project(tmp_path, [decide(TESTS, write, respond("Written."))], GOOD)
    await story.tell("test it and write the notes")
    assert "passing before the last edit" in told_last(story)

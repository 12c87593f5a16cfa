"""The Python interface, and the examples of docs/api.md as they stand there."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow import AsyncDuckflow, Duckflow
from duckflow.errors import UsageError
from duckflow.events.types import ActionFinished, Event, TurnEnded
from duckflow.state.question import Question
from duckflow.state.turn_summary import TurnSummary
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
WRITES = decide(act("file_ops.write_file", path="a.txt", content="hello\n"), next_step="continue")
DONE = decide(respond("Written."))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path)
    monkeypatch.setenv("DUCKFLOW_HOME", str(shell.home))
    monkeypatch.setenv("HOME", str(tmp_path))
    return shell


def test_a_gate_is_answered_in_words_by_key_or_by_nobody(shell: Shell) -> None:
    asked: list[str] = []

    def answer(question: Question) -> str | None:
        asked.append(question.kind)
        return ["hmm", "yes, go ahead", "no", None][len(asked) - 1]

    model = shell.script(WRITES, DONE, WRITES, WRITES, decide(respond("Left out.")))
    with Duckflow(shell.work, model=model, mode="ask", answer=answer) as duck:
        first = duck.say("write a.txt")
        assert (first.result, first.outcome, first.files_changed) == ("Written.", "done", ("a.txt",))
        (shell.work / "a.txt").unlink()
        assert duck.say("write a.txt again").files_changed == () and asked == ["gate"] * 3
        left = duck.say("and again")
        assert left.exit_code == 3 and left.left_out and not (shell.work / "a.txt").exists()
        session = duck.session_id
    with Duckflow(shell.work, model=shell.script(decide(respond("Three times."))), resume=session) as duck:
        assert duck.say("how often did I ask?").turn == 4


async def test_events_come_while_it_works_and_a_turn_can_be_stopped(shell: Shell) -> None:
    model = shell.script(WRITES, DONE, decide(act("shell.run", command="sleep 60"), next_step="continue"), DONE)
    async with AsyncDuckflow(shell.work, model=model, mode="full-auto") as duck:
        items: list[Event | TurnSummary] = [item async for item in duck.events("write a.txt")]
        assert isinstance(items[-1], TurnSummary) and items[-1].result == "Written."
        kinds = [type(item) for item in items]
        assert kinds.index(ActionFinished) < kinds.index(TurnEnded) < len(kinds) - 1
        last: Event | TurnSummary | None = None
        async for last in duck.events("sleep"):
            if getattr(last, "kind", "") == "action_started":
                duck.interrupt()
        assert isinstance(last, TurnSummary) and last.outcome == "interrupted"


def test_an_answer_may_be_a_coroutine_and_a_turn_has_its_events_without_a_loop(shell: Shell) -> None:
    async def answer(question: Question) -> str:
        await asyncio.sleep(0)
        return "yes"

    with Duckflow(shell.work, model=shell.script(WRITES, DONE), mode="ask", answer=answer) as duck:
        items = list(duck.events("write a.txt"))
    assert isinstance(items[-1], TurnSummary) and (shell.work / "a.txt").read_text() == "hello\n"


def test_a_missing_folder_or_session_and_a_call_without_with_are_refused(shell: Shell) -> None:
    with pytest.raises(UsageError, match="There is no folder"), Duckflow(shell.work / "nowhere"):
        pass
    with (
        pytest.raises(UsageError, match="セッション"),
        Duckflow(shell.work, resume="19700101-000000-ffffff", language="ja"),
    ):
        pass
    with pytest.raises(RuntimeError, match="with"):
        Duckflow(shell.work).say("hello")


def run_example(shell: Shell, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = EXAMPLES / f"{name}.py"
    environment = {**shell.environment, "GITHUB_STEP_SUMMARY": str(shell.home / "summary.md")}
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, cwd=shell.work, env=environment, capture_output=True, text=True, check=False)


def set_model(shell: Shell, *replies: dict[str, object]) -> None:
    shell.write_config(f'[llm]\nmodel = "{shell.script(*replies)}"\n')


def test_the_script_mends_a_test(shell: Shell) -> None:
    set_model(shell, WRITES, decide(respond("Mended.")))
    ran = run_example(shell, "fix_tests", str(shell.work))
    assert ran.returncode == 0 and ran.stdout == "Mended.\nchanged: a.txt · checks: none\n", ran.stderr


@pytest.mark.parametrize(("verdict", "code"), [("fine", 0), ("stop", 1)])
def test_the_review_before_a_commit_stops_what_is_bad(shell: Shell, verdict: str, code: int) -> None:
    set_model(shell, decide(respond(f"Read it.\nVERDICT: {verdict}")))
    subprocess.run(["git", "init", "-q"], cwd=shell.work, check=True)
    assert run_example(shell, "pre_commit_review").returncode == 0
    (shell.work / "b.txt").write_text("b\n")
    subprocess.run(["git", "add", "b.txt"], cwd=shell.work, check=True)
    ran = run_example(shell, "pre_commit_review")
    assert ran.returncode == code and f"VERDICT: {verdict}" in ran.stderr


def test_the_step_of_an_action_logs_events_and_writes_a_summary(shell: Shell) -> None:
    set_model(shell, WRITES, DONE)
    ran = run_example(shell, "action_step", "write a.txt")
    assert ran.returncode == 0 and "action_finished" in ran.stdout.splitlines(), ran.stderr
    assert "Written.\n\n1 files changed, checks: none" in (shell.home / "summary.md").read_text()

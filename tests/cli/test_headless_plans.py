"""A plan without a person: shown and left for a yes, or, when everything is allowed, carried through to its end."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forked_program import LOCALE, run_forked
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, write_tasks
from tests.journeys.story import act, decide, respond

WRITES: list[Any] = [
    {"json": report("Done."), "when": "background job has ended"},
    {"json": report("Done too."), "when": "background job has ended"},
    {"text": "x = 1\n", "when": "complete content of game.py"},
    {"text": "y = 1\n", "when": "complete content of score.py"},
]


def run(top: Path, replies: list[Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    work = top / "work"
    work.mkdir(exist_ok=True)
    script = top / "script.jsonl"
    lines = [reply if "when" in reply else {"json": reply} for reply in replies]
    script.write_text("\n".join(map(json.dumps, lines)))
    variables = {"PATH": os.environ["PATH"], "HOME": str(top), "DUCKFLOW_HOME": str(top / "home"), "LC_ALL": LOCALE}
    return run_forked(["-m", f"scripted:{script}", *arguments], work, variables)


def test_a_plan_is_shown_and_a_yes_in_the_next_call_carries_it_on(tmp_path: Path) -> None:
    shown = run(tmp_path, [PROPOSE, SNAKE], "-p", "make a snake game")
    assert shown.returncode == 7, "a draft is an open question"
    assert "1. Core loop" in shown.stdout
    went_on = run(tmp_path, [run_step(1), write_tasks("game.py"), *WRITES], "-c", "--mode", "auto-edit", "-p", "yes")
    assert went_on.returncode == 0, went_on.stderr
    assert "Core loop: done. 1 task completed." in went_on.stdout, "it waits for the job and tells how it went"
    assert (tmp_path / "work/game.py").exists()


def test_with_full_auto_a_plan_is_approved_and_carried_through(tmp_path: Path) -> None:
    replies = [PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), run_step(2), write_tasks("score.py"), *WRITES]
    done = run(tmp_path, replies, "--mode", "full-auto", "-p", "make a snake game")
    assert done.returncode == 0, done.stderr
    assert "Score: done." in done.stdout
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["game.py", "score.py"]


@pytest.mark.parametrize(
    ("language", "said"), [("en", "yes, but only if it stays small"), ("ja", "いいけど、ステップ2は何をするの？")]
)
def test_a_draft_that_was_not_agreed_to_waits_even_with_full_auto(tmp_path: Path, language: str, said: str) -> None:
    run(tmp_path, [PROPOSE, SNAKE], "-p", "make a snake game")
    talk = decide(respond("It keeps the score."), step="PLANNING")
    done = run(tmp_path, [talk], "-c", "--lang", language, "--mode", "full-auto", "-p", said)
    assert "It keeps the score." in done.stdout, done.stderr
    assert list((tmp_path / "work").iterdir()) == []


def test_a_plan_that_was_not_carried_through_is_no_success(tmp_path: Path) -> None:
    look = decide(act("shell.run", command="echo game.py"), next_step="continue")
    claims = [decide(respond("It is done and verified."))] * 4
    done = run(tmp_path, [PROPOSE, SNAKE, look, *claims], "--mode", "full-auto", "-p", "make a snake game")
    assert done.returncode == 1 and "0 of 2" in done.stderr, done.stderr


def test_one_yes_starts_a_plan_in_the_background(tmp_path: Path) -> None:
    run(tmp_path, [PROPOSE, SNAKE], "-p", "make a snake game")
    said = "Perfect, do it like that, and let it run in the background"
    tasks = [{"json": write_tasks(name), "when": name} for name in ("game.py", "score.py")]
    done = run(tmp_path, [*tasks, *WRITES], "-c", "--mode", "auto-edit", "-p", said)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["game.py", "score.py"]


def test_a_job_that_failed_is_a_failure(tmp_path: Path) -> None:
    missing = {"tasks": [act("file_ops.delete_file", path="missing.py")]}
    failed = run(tmp_path, [PROPOSE, SNAKE, run_step(1), missing, WRITES[0]], "--mode", "full-auto", "-p", "a game")
    assert failed.returncode == 1
    assert "stopped before the end" in failed.stdout


def test_a_job_that_the_pacemaker_stops_is_over(tmp_path: Path) -> None:
    """Nobody is there to resume it, so the program ends and tells what was done."""
    tasks = write_tasks("game.py", *(f"{number}.py" for number in range(9)))
    texts = [{"text": "x = 1\n", "when": f"complete content of {task['args']['path']}"} for task in tasks["tasks"]]
    replies = [PROPOSE, SNAKE, run_step(1), tasks, *texts, WRITES[0]]
    flags = ("--mode", "full-auto", "--max-loops", "3", "--output-format", "json")
    stopped = run(tmp_path, replies, *flags, "-p", "a game")
    told = json.loads(stopped.stdout)
    assert (stopped.returncode, told["outcome"], told["exit_code"]) == (4, "pacemaker", 4)
    assert [call["reason"] for call in told["duck_calls"]] == ["LOOP_EXHAUSTED"]
    assert "Core loop: cancelled. Tasks: 3 done, 7 left." in told["result"] and (tmp_path / "work/game.py").exists()


def test_a_step_that_only_lists_files_has_not_reached_its_goal(tmp_path: Path) -> None:
    look = {"tasks": [act("file_ops.list_files", path=".")]}
    failed = run(tmp_path, [PROPOSE, SNAKE, run_step(1), look, look, WRITES[0]], "--mode", "full-auto", "-p", "a game")
    assert failed.returncode == 1 and "stopped before the end" in failed.stdout

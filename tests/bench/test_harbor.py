"""The adapter for Harbor, run by Harbor itself: a trial in a stand-in for its environments, with a scripted model."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.i18n.words import catalogue
from tests.journeys.story import act, decide, respond

HERE = Path(__file__).parents[2]
PROJECT = HERE / "pyproject.toml"
TASKS = os.environ.get("DUCKFLOW_TASKS", "")
"""A folder with tasks of others in Harbor's form that need no image. The model does what each task's solution does."""

TASK = {
    "task.toml": 'version = "1.0"\n[agent]\ntimeout_sec = 300.0\n[verifier]\ntimeout_sec = 60.0\n',
    "instruction.md": "Write the number of ducks in /app/ducks.txt to /app/count.txt.\n",
    "environment/Dockerfile": "FROM scratch\nCOPY ducks.txt /app/ducks.txt\nWORKDIR /app\n",
    "environment/ducks.txt": "mallard\nteal\neider\n",
    "tests/test.sh": '#!/bin/bash\n[ "$(cat /app/count.txt)" = 3 ] && echo 1 > /logs/verifier/reward.txt'
    " || echo 0 > /logs/verifier/reward.txt\n",
}


def newer_python() -> str:
    """Returns a Python that Harbor runs on, or nothing."""
    versions = [shutil.which(f"python3.{minor}") or "" for minor in (13, 12)]
    versions += sorted(map(str, Path.home().glob(".pyenv/versions/3.1[2-9].*/bin/python")))
    return next((path for path in versions if path and _works(path)), "")


def _works(python: str) -> bool:
    check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))"
    return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0


def test_harbor_recognises_the_errors_by_the_messages() -> None:
    """Each pattern must fit a message in English. They are read from the source, since Harbor is not installed."""
    source = ast.parse((HERE / "src/duckflow/bench/harbor.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(source) if isinstance(node, ast.Call)]
    made = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ErrorPattern"]
    patterns = "|".join(str(pattern.value) for pattern in made if isinstance(pattern, ast.Constant)).split("|")
    messages = [re.sub(r"\{\w+\}", "503", text) for text in catalogue("en").values()]
    assert len(patterns) > 10
    assert [pattern for pattern in patterns if not any(re.search(pattern, text) for text in messages)] == []


@pytest.fixture(scope="session")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the programs of an environment with Harbor in it."""
    folder = Path(os.environ.get("DUCKFLOW_HARBOR", "") or tmp_path_factory.mktemp("harbor")).expanduser()
    if not (folder / "bin/harbor").exists():
        # Not while tests are collected: every worker would start each Python of this machine.
        if not newer_python():
            pytest.skip(
                "Harbor needs Python 3.12: none was found, and DUCKFLOW_HARBOR names no environment with Harbor"
            )
        subprocess.run([newer_python(), "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", "harbor>=0.24", "uv"], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", "--no-deps", "-e", HERE], check=True)
    return folder / "bin"


def run_trial(harbor: Path, task: Path, script: Path, jobs: Path) -> dict[str, Any]:
    command = [
        harbor / "harbor",
        "run",
        "-p",
        task,
        "-a",
        "duckflow.bench.harbor:Duckflow",
        "-o",
        jobs,
        "-n",
        "1",
        "-q",
    ]
    command += ["-e", "tests.bench.stand_in:FreshRoot", "--ek", f"script={script}", "--job-name", task.name, "-y"]
    command += ["-m", "scripted:/installed-agent/script.jsonl"]
    path = f"{(harbor / 'python3').resolve().parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PATH": path, "HARBOR_TELEMETRY": "off"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    found = sorted((jobs / task.name).glob("*/result.json"))
    assert found, (done.stdout[-3000:], done.stderr[-3000:])
    return json.loads(found[0].read_text()) | {"folder": found[0].parent}


def check_trial(result: dict[str, Any], harbor: Path, requests: int) -> None:
    assert result["exception_info"] is None, result["exception_info"]
    assert result["verifier_result"]["rewards"]["reward"] == 1.0, result["verifier_result"]
    trajectory = result["folder"] / "agent/trajectory.json"
    final = json.loads(trajectory.read_text())["final_metrics"]
    agent = result["agent_result"]
    assert (agent["n_input_tokens"], agent["n_output_tokens"]) == (
        final["total_prompt_tokens"],
        final["total_completion_tokens"],
    )
    assert final["extra"]["requests"] == requests and agent["metadata"]["outcome"] == "done"
    validate(harbor, [trajectory])


def validate(harbor: Path, files: list[Path]) -> None:
    """Validates a trajectory by Harbor's own models."""
    check = "import sys; from harbor.models.trajectories import Trajectory\n"
    check += "for name in sys.argv[1:]: Trajectory.model_validate_json(open(name, encoding='utf-8').read())"
    done = subprocess.run([harbor / "python", "-c", check, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_harbor_runs_a_task_and_its_tests_pass(tmp_path: Path, harbor: Path) -> None:
    task = tmp_path / "count-ducks"
    for name, text in TASK.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text.replace("\\\n", "\n"))
    replies = [
        decide(act("shell.run", command="wc -l < ducks.txt > count.txt"), next_step="continue"),
        decide(respond("There are 3.")),
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps({"json": reply}) for reply in replies))
    check_trial(run_trial(harbor, task, script, tmp_path / "jobs"), harbor, len(replies))


@pytest.mark.slow
def test_a_wrong_model_is_told_as_such(tmp_path: Path, harbor: Path) -> None:
    check = """
import asyncio
from pathlib import Path
from duckflow.bench.harbor import Duckflow
from harbor.environments.base import ExecResult

class Refusing:
    async def exec(self, **_):
        return ExecResult(stderr=text, return_code=1)

agent = Duckflow(Path("."), model_name="opnai/gpt-5")
for text in ("There is no endpoint called opnai.", "openai is still busy: slow", "openai needs a key"):
    try:
        asyncio.run(agent.exec_as_agent(Refusing(), "duckflow"))
    except RuntimeError as problem:
        print(type(problem).__name__)
"""
    done = subprocess.run([harbor / "python", "-c", check], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == ["ModelNotFoundError", "ApiRateLimitError", "AgentAuthenticationError"], done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not TASKS, reason="DUCKFLOW_TASKS names no folder with tasks of others")
@pytest.mark.parametrize("name", sorted(path.parent.name for path in Path(TASKS or "/nowhere").glob("*/task.toml")))
def test_tasks_of_others(tmp_path: Path, harbor: Path, name: str) -> None:
    solution = Path(TASKS, name, "solution/solve.sh").read_text()
    replies = [decide(act("shell.run", command=solution), next_step="continue"), decide(respond("Done."))]
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps({"json": reply}) for reply in replies))
    check_trial(run_trial(harbor, Path(TASKS, name), script, tmp_path / "jobs"), harbor, len(replies))


@pytest.mark.slow
def test_twenty_recorded_sessions_are_trajectories_to_harbor(tmp_path: Path, harbor: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    stories = ["tests/journeys/test_jobs.py", "tests/journeys/test_agents.py", "tests/journeys/test_gate.py"]
    run = [sys.executable, "-m", "pytest", "-q", "-x", *stories]
    environment = {**os.environ, "DUCKFLOW_KEEP_RECORDS": str(records)}
    subprocess.run(run, env=environment, cwd=HERE, capture_output=True, timeout=900, check=False)
    from tests.bench.test_trajectory import trajectory_of

    files: list[Path] = []
    for journal in sorted(records.glob("*/home/s.db")):
        files.append(journal.with_suffix(".json"))
        files[-1].write_text(json.dumps(trajectory_of(journal)))
    assert len(files) >= 20
    validate(harbor, files)

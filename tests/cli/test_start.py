"""What is loaded when, and what terminals with another encoding get."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.journeys.story import decide, respond
from tests.ui.console.terminal import Terminal

CLIENTS = ("httpx", "pydantic_ai", "openai", "anthropic", "xllamacpp")


def test_the_prompt_is_up_before_models_and_their_clients_are_loaded(tmp_path: Path) -> None:
    """Imports are noted in the order in which they end: those of the input line come first, and no model's client is
    imported."""
    trace = tmp_path / "imports"
    program = f"exec {sys.executable} -X importtime -m duckflow -m scripted:{tmp_path}/script.jsonl 2> {trace}"
    terminal = Terminal(tmp_path, [], command=("sh", "-c", program))
    try:
        terminal.wait_for("/help")
    finally:
        terminal.close()
    loaded = [line.rpartition("|")[2].strip() for line in trace.read_text().splitlines()]
    line = loaded.index("duckflow.ui.console.input_line")
    early = loaded[:line]
    assert not [name for name in ("pydantic", "rich", "duckflow.agent.session") if name in early]
    assert "duckflow.agent.session" in loaded[line:]
    assert not [name for name in loaded if name.partition(".")[0] in CLIENTS]
    servers = ("duckflow.tools.outside.server", "duckflow.rpc", "duckflow.agent.policies.outside", "duckflow.server")
    agents = ("duckflow.work.sub_agents", "duckflow.work.agent_bounds", "duckflow.extensions.agent_kinds")
    assert not [name for name in loaded if name.startswith((*servers, *agents))]


UNUSED = (
    "duckflow.work.agents", "duckflow.work.sub_agents", "duckflow.cli.outside", "duckflow.commands",
    "duckflow.editor", "duckflow.http", "h11",
    "duckflow.extensions.agent_kinds", "duckflow.extensions.hook_files", "duckflow.extensions.hook_run",
    "duckflow.extensions.skill_tool", "duckflow.extensions.skills", "duckflow.fleet",
    "duckflow.rpc", "duckflow.server", "duckflow.store.salvage", "duckflow.telemetry",
    "duckflow.tools.outside.server", "duckflow.tools.plan.proof", "duckflow.tools.web.fetch",
    "duckflow.ui.answer_shape",
    "duckflow.ui.console.chat", "duckflow.web", "email", "importlib.metadata", "prompt_toolkit", "rich", "shlex",
    "tempfile", "tomllib",
)  # fmt: skip
"""What a plain turn needs nothing of: servers, the web, agents, skills, hooks, a record, plans, a screen."""


def test_a_plain_headless_turn_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": "Good day."}))
    (tmp_path / "work").mkdir()
    environment = {**os.environ, "DUCKFLOW_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "duckflow", "-m", f"scripted:{script}", "-p", "hi"],
        env=environment, cwd=tmp_path / "work", stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stdout == b"Good day.\n"
    loaded = [line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines() if "|" in line]
    assert "duckflow.agent.turn" in loaded
    assert not [name for name in loaded if f"{name}.".startswith(tuple(f"{one}." for one in (*CLIENTS, *UNUSED)))]


def test_a_sign_that_the_encoding_lacks_is_replaced(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"json": decide(respond("よし 🦆 − é"), step="PLANNING")}))
    environment = {**os.environ, "DUCKFLOW_HOME": str(tmp_path / "home"), "PYTHONIOENCODING": "cp932"}
    ended = subprocess.run(
        [sys.executable, "-m", "duckflow", "-m", f"scripted:{script}", "-p", "hello"],
        env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stdout.decode("cp932").startswith("よし ? ")

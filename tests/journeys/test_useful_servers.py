"""Servers as people name them in `.mcp.json` work with the rights that the question offers."""

import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

SERVER = Path(__file__).parents[1] / "tools/outside/stdio_server.py"
END = decide(respond("ok"), step="PLANNING")
AT_HOME = "import pathlib\n(pathlib.Path.home() / 'state').mkdir(exist_ok=True)\n"


async def answer_of(
    tmp_path: Path, entry: dict[str, Any], rights: list[str], tool: str, files: dict[str, str], **args: Any
) -> Any:
    """The result of a call, after a yes with these rights."""
    work = tmp_path / "work"
    work.mkdir()
    for name, text in files.items():
        (work / name).write_text(text)
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"duck": entry}}))
    call = decide(act(f"mcp__duck__{tool}", **args), next_step="continue")
    story = Story(tmp_path, [call, END], settings={"mcp": {"wait_seconds": 200, "allow": ["*"]}})
    more = [Answer(choice=key) for key in ("more", *rights, "done")] if rights else [Answer(choice="trust")]
    story.answers = [Answer(choice="trust"), *more]
    await story.tell("call it")
    await story.close()
    (result,) = [event.result for event in story.all(ActionFinished) if event.result.operation.startswith("mcp")]
    return result


async def test_one_that_speaks_to_a_database_on_localhost(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(60)

    def accept() -> None:
        listener.accept()[0].close()

    thread = threading.Thread(target=accept)
    thread.start()
    connect = f"import socket\nsocket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 10)\n"
    files = {"server.py": connect + SERVER.read_text()}
    entry = {"command": "python3", "args": ["server.py"]}
    result = await answer_of(tmp_path, entry, ["network"], "add", files, a=2, b=3)
    thread.join(1)
    assert result.ok and result.for_model == "5"


async def test_one_that_needs_a_home(tmp_path: Path) -> None:
    files = {"server.py": AT_HOME + SERVER.read_text()}
    entry = {"command": "python3", "args": ["server.py"]}
    result = await answer_of(tmp_path, entry, ["home"], "environment", files)
    home = Path(json.loads(result.for_model)["HOME"])
    assert result.ok and (home / "state").is_dir() and home.is_relative_to(tmp_path / "home")


@pytest.fixture
def registry() -> str:
    """The address that npm uses here: a private home does not know it."""
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    found = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


@pytest.mark.slow
async def test_one_by_npx(tmp_path: Path, registry: str) -> None:
    certificates = {"NODE_EXTRA_CA_CERTS": os.environ["SSL_CERT_FILE"]} if os.environ.get("SSL_CERT_FILE") else {}
    env = {"npm_config_registry": registry, **certificates}
    entry = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"], "env": env}
    result = await answer_of(tmp_path, entry, ["network", "home"], "echo", {}, message="quack")
    assert result.ok and "quack" in result.for_model, result.for_model


@pytest.mark.slow
async def test_one_by_uvx(tmp_path: Path) -> None:
    if shutil.which("uvx") is None:
        pytest.skip("uvx is not installed")
    names = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE")
    env = {name: f"${{{name}}}" for name in names if name in os.environ}
    entry = {"command": "uvx", "args": ["mcp-server-time"], "env": env}
    result = await answer_of(tmp_path, entry, ["network", "home"], "get_current_time", {}, timezone="Asia/Tokyo")
    assert result.ok and "Tokyo" in result.for_model, result.for_model

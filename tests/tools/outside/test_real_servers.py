"""Servers of others as they are published, the protocol's conformance suite, and its SDK; all need a registry."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_outside_tools import calls, results, settings, told

pytestmark = pytest.mark.slow

SCOPE = "@modelcontextprotocol"
NPM = [f"{SCOPE}/server-{name}" for name in ("everything", "filesystem", "memory")]
SUITE = [f"{SCOPE}/conformance@0.1.16", f"{SCOPE}/inspector", "node@22"]
PYPI = ["mcp>=2.3", "mcp-server-fetch", "mcp-server-git", "mcp-server-time"]
LOGINS = [
    *(f"metadata-{name}" for name in ("default", "var1", "var2", "var3")),
    *(f"scope-{name}" for name in ("from-www-authenticate", "from-scopes-supported", "omitted-when-undefined")),
    *("scope-step-up", "scope-retry-limit", "basic-cimd", "pre-registration", "2025-03-26-oauth-endpoint-fallback"),
    *(f"token-endpoint-auth-{name}" for name in ("basic", "post", "none")),
]
"""All but `2025-03-26-oauth-metadata-backcompat`: the SDK refuses what names another issuer than was asked."""
SCENARIOS = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]
TOP = Path(__file__).parents[3]


def install(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"cannot be installed here: {' '.join(command[:3])}: {done.stderr[-300:]}")


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("npm"):
        pytest.skip("npm is not here")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}")
    install(["npm", "install", "--no-audit", "--no-fund", *NPM, *SUITE], folder)
    return folder / "node_modules/.bin"


@pytest.fixture(scope="session")
def pypi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pypi")
    venv.create(folder, with_pip=True)
    install([str(folder / "bin/pip"), "install", "-q", *PYPI], folder)
    return folder / "bin"


async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    asked = await reader.readuntil(b"\r\n\r\n")
    found = b"robots" not in asked.split(b"\r\n")[0]
    body = b"Ducks live here." if found else b""
    head = f"HTTP/1.1 {200 if found else 404} X\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()


async def test_six_servers_in_a_chat(tmp_path: Path, npm: Path, pypi: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "note.txt").write_text("Bread for the duck.\n")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(work)], check=True)
    listening = await asyncio.start_server(page, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/pond"
    given = settings(
        ("*",),
        everything={"command": str(npm / "mcp-server-everything")},
        filesystem={"command": str(npm / "mcp-server-filesystem"), "args": [str(work)]},
        memory={"command": str(npm / "mcp-server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "m.json")}},
        fetch={"command": str(pypi / "mcp-server-fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]},
        git={"command": str(pypi / "mcp-server-git")},
        time={"command": str(pypi / "mcp-server-time")},
    )
    given["mcp"]["prompt_share"] = 1
    duck = {"name": "Duck", "entityType": "bird", "observations": ["eats bread"]}
    actions = [
        act("mcp__everything__echo", message="quack"),
        act("mcp__filesystem__read_text_file", path=str(work / "note.txt")),
        act("mcp__memory__create_entities", entities=[duck]),
        act("mcp__memory__search_nodes", query="bread"),
        act("mcp__fetch__fetch", url=url),
        act("mcp__git__git_status", repo_path=str(work)),
        act("mcp__time__get_current_time", timezone="Asia/Tokyo"),
    ]
    story = Story(tmp_path, calls(*actions), settings=given, window=200_000)
    async with told(story):
        await story.tell("use them all")
    listening.close()
    told_of = [one.for_model for one in results(story)]
    expected = ("quack", "Bread for the duck", "Duck", "eats bread", "Ducks live here", "note.txt", "Asia/Tokyo")
    assert [text in said for text, said in zip(expected, told_of, strict=True)] == [True] * 7, told_of
    assert all(one.ok for one in results(story))


def conforms(npm: Path, python: Path, program: str, scenario: str, folder: Path, **more: str) -> None:
    node = npm.parent / "node/bin/node"
    client = f"{python} {Path(__file__).with_name(program)}"
    done = subprocess.run(
        [str(node), str(npm / "conformance"), "client", "--command", client, "--scenario", scenario],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": f"{TOP}/src:{TOP}:{sysconfig.get_path('purelib')}", **more},
    )  # fmt: skip
    assert "OVERALL: PASSED" in done.stdout + done.stderr, (done.stdout + done.stderr)[-2000:]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite(tmp_path: Path, npm: Path, scenario: str) -> None:
    conforms(npm, Path(sys.executable), "conformance_client.py", scenario, tmp_path)


@pytest.mark.parametrize("scenario", LOGINS)
def test_logins_conform(tmp_path: Path, npm: Path, pypi: Path, scenario: str) -> None:
    conforms(npm, pypi / "python", "conformance_client.py", f"auth/{scenario}", tmp_path)


def test_a_login_by_the_command_line(tmp_path: Path, npm: Path, pypi: Path) -> None:
    """The suite's server is a real one on this machine, and it checks every step."""
    ring = {"PYTHON_KEYRING_BACKEND": "tests.tools.outside.conformance_login.FileRing", "RING": str(tmp_path)}
    home = {"DUCKFLOW_HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8", "DUCKFLOW_LANGUAGE": "en"}
    conforms(npm, pypi / "python", "conformance_login.py", "auth/metadata-default", tmp_path, **ring, **home)


def test_the_inspector_drives_duckflow(tmp_path: Path, npm: Path) -> None:
    bare = Shell(tmp_path)
    given = ["--tool-name", "duckflow", "--tool-arg", "prompt=hello", f"cwd={bare.work}", f"model={bare.script()}"]
    command = [str(npm / "mcp-inspector"), "--cli", sys.executable, "-m", "duckflow", "mcp", "serve", "--method"]
    environment = {**bare.environment, "PATH": f"{npm.parent / 'node/bin'}:{os.environ['PATH']}"}
    for method, said in ((["tools/list"], '"duckflow_reply"'), (["tools/call", *given], "Hello there.")):
        done = subprocess.run(
            [*command, *method],
            cwd=bare.work, capture_output=True, text=True, timeout=120, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == 0 and said in done.stdout, done


def test_the_sdk_drives_duckflow(tmp_path: Path, pypi: Path) -> None:
    bare = Shell(tmp_path)
    writes = decide(act("file_ops.write_file", path="a.txt", content="hello\n"), next_step="continue")
    model = bare.script(writes, decide(respond("Done.")), decide(respond("You are welcome.")))
    client = [str(pypi / "python"), str(TOP / "tests/server/sdk_client.py"), str(bare.work), model]
    done = subprocess.run(
        [*client, sys.executable, "-m", "duckflow", "mcp", "serve"],
        cwd=bare.work, capture_output=True, text=True, timeout=120, check=False,
        env={**bare.environment, "PYTHONPATH": f"{TOP}/src"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert seen["tools"] == ["duckflow", "duckflow_reply"] and "+hello" in seen["asked"][0]
    assert seen["first"]["structuredContent"]["files_changed"] == ["a.txt"]
    assert seen["second"]["structuredContent"]["content"] == "You are welcome."
    assert (bare.work / "a.txt").read_text() == "hello\n"

"""The local server with a real, small model: streaming, schemas, cancelling, and ending with its parent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from duckflow.errors import ProviderUnreachable
from duckflow.llm.embedded import Embedded
from duckflow.llm.local.server import LocalServer
from duckflow.llm.provider import Chunk, Finished, Remark, Request
from duckflow.llm.settings import LlmSettings, LocalSettings
from duckflow.state.message import PromptMessage

SETTINGS = LocalSettings(model="smollm2-135m", context=1024, threads=1)
STORY = [{"role": "user", "content": "Tell me a very long story about a duck."}]
VERDICT = {
    "type": "object",
    "properties": {"why": {"type": "string", "maxLength": 40}, "yes": {"type": "boolean"}},
    "required": ["why", "yes"],
    "additionalProperties": False,
}


@pytest.fixture
async def server(smollm2: Path) -> AsyncIterator[LocalServer]:
    server = LocalServer(smollm2, SETTINGS)
    await server.start()
    yield server
    await server.aclose()


def client(server: LocalServer) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {server.key}"}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60, trust_env=False)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # A dead orphan stays as a zombie where no parent waits for it.
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def ends_soon(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def first_pid(server: LocalServer) -> int:
    while not (pid := server.pid):
        time.sleep(0.001)
    return pid


def pieces(line: str) -> str:
    chunk: Any = json.loads(line.removeprefix("data: "))
    return "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])


async def test_it_streams_and_keeps_to_a_schema(server: LocalServer) -> None:
    async with client(server) as http:
        body = {"messages": STORY, "max_tokens": 12, "stream": True}
        async with http.stream("POST", "/chat/completions", json=body) as response:
            lines = [line async for line in response.aiter_lines() if line.startswith("data: ")]
        assert lines[-1] == "data: [DONE]"
        spoken = [text for text in map(pieces, lines[:-1]) if text]
        assert len(spoken) > 3

    # This uses a new connection: the server may close one that has just ended a stream.
    async with client(server) as http:
        form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": VERDICT}}
        body = {"messages": STORY, "max_tokens": 120, "response_format": form}
        reply: Any = (await http.post("/chat/completions", json=body)).json()
        verdict = json.loads(reply["choices"][0]["message"]["content"])
        assert set(verdict) == {"why", "yes"}
        assert isinstance(verdict["yes"], bool)


async def test_requests_without_the_key_are_refused(server: LocalServer) -> None:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as stranger:
        assert (await stranger.post("/chat/completions", json={"messages": STORY})).status_code == 401
    command = Path(f"/proc/{server.pid}/cmdline")
    if command.exists():
        assert server.key.encode() not in command.read_bytes()
    async with client(server) as http:
        models: Any = (await http.get("/models")).json()
    assert models["data"][0]["id"] == "smollm2-135m"


async def test_a_cancelled_reply_frees_the_server_for_the_next(server: LocalServer) -> None:
    async with client(server) as http:
        async with http.stream("POST", "/chat/completions", json={"messages": STORY, "stream": True}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    break
        again: Any = (await http.post("/chat/completions", json={"messages": STORY, "max_tokens": 2})).json()
        assert again["usage"]["completion_tokens"] == 2
        slots: Any = (await http.get(server.url.removesuffix("/v1") + "/slots")).json()
        assert [slot["is_processing"] for slot in slots] == [False]


@pytest.mark.slow
async def test_a_common_prefix_is_read_once_even_with_another_conversation_in_between(server: LocalServer) -> None:
    long = {"role": "system", "content": "You are a duck. " * 40}

    async def read(question: str, system: dict[str, str] = long) -> tuple[int, int]:
        messages = [system, {"role": "user", "content": question}]
        reply: Any = (await http.post("/chat/completions", json={"messages": messages, "max_tokens": 1})).json()
        return reply["timings"]["cache_n"], reply["timings"]["prompt_n"]

    async with client(server) as http:
        _, cold = await read("Who are you?")
        kept, new = await read("Where do you live, and since when?")
        assert kept > cold * 0.8 > new
        await read("What is a goose?", {"role": "system", "content": "You know all about birds."})
        kept, new = await read("Who are you?")
        assert kept > cold * 0.8 > new


@pytest.mark.slow
async def test_it_is_gone_after_closing_and_can_start_again(smollm2: Path) -> None:
    server = LocalServer(smollm2, SETTINGS)
    await asyncio.gather(server.start(), server.start())
    pid = server.pid
    assert pid and server.alive() and is_running(pid)
    await server.aclose()
    assert not is_running(pid)
    assert not server.alive()
    assert server.url == server.key == ""
    await server.start()
    again = server.pid
    assert again and again != pid
    os.kill(again, signal.SIGKILL)
    assert await asyncio.to_thread(ends_soon, again)
    await server.aclose()
    await server.aclose()


async def test_a_cancelled_start_leaves_no_process(smollm2: Path) -> None:
    server = LocalServer(smollm2, SETTINGS)
    starting = asyncio.create_task(server.start())
    pid = await asyncio.to_thread(first_pid, server)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not is_running(pid)
    assert not server.alive()


async def test_closing_during_the_start_leaves_no_process(smollm2: Path) -> None:
    server = LocalServer(smollm2, SETTINGS)
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)
    await server.aclose()
    with pytest.raises(ProviderUnreachable):
        await starting
    assert not server.alive()


PARENT = """
import asyncio, sys
from pathlib import Path
from duckflow.llm.embedded import Embedded
from duckflow.llm.local.server import LocalServer
from duckflow.llm.provider import Chunk, Finished, Remark, Request
from duckflow.llm.settings import LlmSettings, LocalSettings
from duckflow.state.message import PromptMessage

async def main():
    server = LocalServer(Path(sys.argv[1]), LocalSettings(context=512))
    starting = asyncio.create_task(server.start())
    while not server.pid:
        await asyncio.sleep(0.001)
    if sys.argv[2] == "ready":
        await starting
    print(server.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["loading", "ready"])
def test_it_ends_with_a_parent_that_is_killed(smollm2: Path, when: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(smollm2), when], stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
        assert ends_soon(pid)


async def test_a_file_that_is_no_model_is_reported_and_logged(tmp_path: Path) -> None:
    broken, log = tmp_path / "broken.gguf", tmp_path / "logs" / "server.log"
    broken.write_bytes(b"not a model")
    server = LocalServer(broken, SETTINGS, log)
    with pytest.raises(ProviderUnreachable) as caught:
        await server.start()
    assert caught.value.key == "local.failed"
    assert "failed to load model" in log.read_text()
    assert not server.alive()
    with pytest.raises(ProviderUnreachable) as caught:
        await LocalServer(broken, SETTINGS, broken / "no folder" / "server.log").start()
    assert "failed to load model" in str(caught.value.values["reason"])
    with pytest.raises(ProviderUnreachable) as caught:
        await LocalServer(tmp_path / "nowhere.gguf", SETTINGS).start()
    assert caught.value.key == "local.no_weights"


async def test_a_start_that_takes_too_long_is_given_up(smollm2: Path) -> None:
    server = LocalServer(smollm2, SETTINGS.model_copy(update={"start_seconds": 0.05}))
    with pytest.raises(ProviderUnreachable) as caught:
        await server.start()
    assert caught.value.key == "local.slow"
    assert not server.alive()


async def spoken(model: Embedded) -> list[Chunk]:
    request = Request((PromptMessage("user", "Say hello."),), max_tokens=8)
    return [chunk async for chunk in model.stream(request)]


async def test_a_request_waits_for_a_starting_server_and_the_user_is_told(smollm2: Path) -> None:
    server = LocalServer(smollm2, SETTINGS)
    model = Embedded(server, "duck", 1024, LlmSettings())
    first = asyncio.create_task(spoken(model))
    for _ in range(1000):
        if server.alive():
            break
        await asyncio.sleep(0.01)
    assert server.alive() and not server.url
    second = await spoken(model)
    assert isinstance(second[0], Remark) and second[0].what.key == "local.starting"
    assert isinstance(second[-1], Finished) and isinstance((await first)[-1], Finished)
    assert not [chunk for chunk in await spoken(model) if isinstance(chunk, Remark)]
    await model.aclose()

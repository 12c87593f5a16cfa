"""The embedded model: its server is started when needed, restarted after it died, and ended with the conversation."""

import asyncio
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, says
from talking import HELLO, QUICK, text_of

from duckflow.errors import ProviderUnreachable
from duckflow.llm.embedded import Embedded
from duckflow.llm.local.server import LocalServer
from duckflow.llm.settings import LocalSettings


class HouseServer(LocalServer):
    """A server in a thread instead of a process."""

    def __init__(self) -> None:
        super().__init__(Path("duck.gguf"), LocalSettings())
        self.starts = 0
        self._running: FakeEndpoint | None = None

    @property
    def running(self) -> FakeEndpoint | None:
        return self._running

    def alive(self) -> bool:
        return self._running is not None

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self._running is None:
            self.starts += 1
            self.key = f"key-{self.starts}"
            self._running = FakeEndpoint(says(f"from server {self.starts}")).__enter__()
            self.url = self._running.url

    async def aclose(self) -> None:
        running, self._running, self.url = self._running, None, ""
        if running is not None:
            running.__exit__(None, None, None)


async def ask(model: Embedded) -> str:
    return text_of([chunk async for chunk in model.stream(HELLO)])


async def test_the_server_runs_as_long_as_the_conversation() -> None:
    server = HouseServer()
    model = Embedded(server, "duck", 4096, QUICK)
    assert (model.model, model.window, server.alive()) == ("local:duck", 4096, False)
    assert await ask(model) == "from server 1"
    assert await ask(model) == "from server 1"
    assert server.running is not None
    assert server.running.headers_seen[0]["authorization"] == "Bearer key-1"
    await model.aclose()
    assert not server.alive()


async def test_a_dead_server_is_started_again() -> None:
    server = HouseServer()
    model = Embedded(server, "duck", 4096, QUICK)
    await ask(model)
    await server.aclose()
    assert await ask(model) == "from server 2"
    await model.aclose()


async def test_a_server_that_does_not_start() -> None:
    class Broken(HouseServer):
        async def start(self) -> None:
            raise ProviderUnreachable("local.missing")

    model = Embedded(Broken(), "duck", 4096, QUICK)
    with pytest.raises(ProviderUnreachable):
        await ask(model)
    await model.aclose()

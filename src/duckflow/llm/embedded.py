"""The model that comes with Duckflow: a provider whose server is its own child."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.llm.local.prefixes import Prefixes
from duckflow.llm.provider import Chunk, Finished, Request
from duckflow.llm.settings import LlmSettings

NAME = "local"


class ModelServer(Protocol):
    """A server that is started and ended with the conversation; `duckflow.llm.local.server.LocalServer` is one."""

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...

    def alive(self) -> bool: ...

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


class Embedded:
    """Starts the server with the first request, or before it with `warm`; starts it again if it has died. What the
    first request of a start has it read is kept for the next one."""

    takes_pictures: bool | None = False
    """The server is started without the part that sees."""
    least_price = 0.0

    def __init__(
        self, server: ModelServer, model: str, window: int, settings: LlmSettings, prefixes: Prefixes | None = None
    ) -> None:
        self._server = server
        self._prefixes = prefixes
        self._saving: asyncio.Task[None] | None = None
        self._fresh = False
        """The server has started and read nothing yet."""
        self._model = model
        self._window = window
        self._settings = settings
        self._speaker: EndpointModel | None = None

    def __repr__(self) -> str:
        return f"Embedded({self.model!r})"

    @property
    def model(self) -> str:
        return f"{NAME}:{self._model}"

    @property
    def window(self) -> int:
        return self._window

    @property
    def takes_tools(self) -> bool:
        return self._speaker.takes_tools if self._speaker else self._settings.tools != "json"

    def forgo_tools(self) -> None:
        if self._speaker:
            self._speaker.forgo_tools()

    async def warm(self) -> None:
        """Have the server ready before it is needed."""
        await self._ready()

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        speaker = await self._ready()
        known = True
        if self._prefixes and self._fresh:
            self._fresh = False
            known = await self._prefixes.restore(request, self._server.url, self._server.key)
        async with aclosing(speaker.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished) and self._prefixes and not known:
                    # Nobody waits for it but whoever leaves.
                    saving = self._prefixes.save(request, self._server.url, self._server.key)
                    self._saving = asyncio.create_task(saving)
                yield chunk

    async def aclose(self) -> None:
        try:
            if self._saving:
                await self._saving
            await self._hang_up()
        finally:
            await self._server.aclose()

    async def _ready(self) -> EndpointModel:
        if self._speaker is not None and self._server.alive():
            return self._speaker
        await self._hang_up()
        await self._server.start()
        self._fresh = True
        # Somebody else may have waited for the same start.
        if self._speaker is None:
            endpoint, key = Endpoint(NAME, self._server.url), Key(self._server.key, NAME)
            self._speaker = EndpointModel(endpoint, self._model, key, self._settings)
        return self._speaker

    async def _hang_up(self) -> None:
        speaker, self._speaker = self._speaker, None
        if speaker is not None:
            await speaker.aclose()

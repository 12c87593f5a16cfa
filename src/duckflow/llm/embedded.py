"""The model that comes with Duckflow: a provider whose server is its own child."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.llm.provider import Chunk, Finished, Request
from duckflow.llm.settings import LlmSettings

NAME = "local"
SLOT = "/slots/0?action="
SECONDS = 30.0


class ModelServer(Protocol):
    """A server that is started and ended with the conversation; `duckflow.llm.local.server.LocalServer` is one."""

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...

    def alive(self) -> bool: ...

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


class Prefixes:
    """A folder of slots of one server, by what stands first in the prompt. What cannot be kept or found again costs
    only the time to read it."""

    def __init__(self, folder: Path, about: str, most_bytes: int) -> None:
        """`about` names the model, its file and its context: a slot fits nothing else."""
        self._folder = folder
        self._about = about
        self._most = most_bytes

    def file_for(self, request: Request) -> Path:
        first = request.messages[0].text if request.messages else ""
        digest = hashlib.sha256(f"{self._about} {first}".encode()).hexdigest()
        return self._folder / f"{digest[:24]}.slot"

    async def restore(self, request: Request, url: str, key: str) -> bool:
        """Whether the server now has what was read before."""
        file = self.file_for(request)
        if not file.is_file():
            return False
        done = await self._ask("restore", file.name, url, key)
        with contextlib.suppress(OSError):
            # The oldest go first when there are too many; one that fits nothing any more goes at once.
            file.touch() if done else file.unlink()
        return done

    async def save(self, request: Request, url: str, key: str) -> None:
        file = self.file_for(request)
        if self._most and not file.exists():
            with contextlib.suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if await self._ask("save", file.name, url, key):
                await asyncio.to_thread(self._sweep)

    async def _ask(self, action: str, name: str, url: str, key: str) -> bool:
        from duckflow.http import HttpClient, HttpError

        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        client = HttpClient(url.removesuffix("/v1"), headers, SECONDS, by_proxy=False)
        try:
            async with client, asyncio.timeout(SECONDS):
                answer = await client.send("POST", SLOT + action, json.dumps({"filename": name}).encode())
                await answer.body()
            return answer.is_success
        except (TimeoutError, HttpError):
            return False

    def _sweep(self) -> None:
        with contextlib.suppress(OSError):
            slots = sorted(self._folder.glob("*.slot"), key=lambda slot: slot.stat().st_mtime, reverse=True)
            total = 0
            for slot in slots:
                slot.chmod(0o600)
                total += slot.stat().st_size
                if total > self._most:
                    slot.unlink()


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

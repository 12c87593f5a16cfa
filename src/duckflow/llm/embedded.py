"""The embedded model: a provider that runs its model server as a child process."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from duckflow.http import HttpClient, HttpError
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint, Key
from duckflow.llm.local.server import LocalServer
from duckflow.llm.provider import Chunk, Finished, Remark, Request
from duckflow.llm.settings import LlmSettings
from duckflow.state.data import say

NAME = "local"
SLOT = "/slots/0?action="
SECONDS = 30.0


class Prefixes:
    """A folder with saved states ("slots") of a server, each for one beginning of a prompt. A restored slot saves the
    time to read that beginning again. When saving or restoring fails, only that time is lost."""

    def __init__(self, folder: Path, about: str, most_bytes: int) -> None:
        """`about` names the model's file, its size and its context. A slot (a saved state) fits only the same file,
        size and context."""
        self._folder = folder
        self._about = about
        self._most = most_bytes

    def file_for(self, request: Request) -> Path:
        first_text = request.messages[0].text if request.messages else ""
        digest = hashlib.sha256(f"{self._about} {first_text}".encode()).hexdigest()
        return self._folder / f"{digest[:24]}.slot"

    async def restore(self, request: Request, server: LocalServer) -> bool:
        """Loads the slot that was saved for the request's beginning into the server, and says whether that worked."""
        file = self.file_for(request)
        if not file.is_file():
            return False
        is_restored = await _ask(server, "restore", file.name)
        with contextlib.suppress(OSError):
            # `_sweep` deletes the least recently used slots. A slot that the server refuses is of no use and is deleted
            # at once.
            file.touch() if is_restored else file.unlink()
        return is_restored

    async def save(self, request: Request, server: LocalServer) -> None:
        file = self.file_for(request)
        if self._most and not file.exists():
            with contextlib.suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if await _ask(server, "save", file.name):
                await asyncio.to_thread(self._sweep)

    def _sweep(self) -> None:
        with contextlib.suppress(OSError):
            slot_files = sorted(self._folder.glob("*.slot"), key=lambda slot: slot.stat().st_mtime, reverse=True)
            total_bytes = 0
            for slot in slot_files:
                slot.chmod(0o600)
                total_bytes += slot.stat().st_size
                if total_bytes > self._most:
                    slot.unlink()


async def _ask(server: LocalServer, action: str, name: str) -> bool:
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    client = HttpClient(server.url.removesuffix("/v1"), headers, SECONDS, by_proxy=False)
    try:
        async with client, asyncio.timeout(SECONDS):
            answer = await client.send("POST", SLOT + action, json.dumps({"filename": name}).encode())
            await answer.body()
        return answer.is_success
    except (TimeoutError, HttpError):
        return False


class Embedded(EndpointModel):
    """A provider that starts its server with the first request, and again if the server has died. The prompt that the
    server reads first is saved to disk, so that the next start need not read it again."""

    def __init__(
        self, server: LocalServer, model: str, window: int, settings: LlmSettings, prefixes: Prefixes | None = None
    ) -> None:
        settings = settings.model_copy(update={"window": window})
        super().__init__(Endpoint(NAME, key_needed=False), model, settings=settings)
        self._server = server
        self._prefixes = prefixes
        self._saving: asyncio.Task[None] | None = None
        self._fresh = False
        """True if the server has started and has read no prompt yet."""
        self._key = ""
        """The key that guards the running server; every start makes a new one."""

    @property
    def takes_pictures(self) -> bool | None:
        """Returns False, because the server is started without the part that reads pictures."""
        return False

    @property
    def least_price(self) -> float | None:
        return 0.0

    async def warm(self) -> None:
        """Starts the server if it is not running, and returns when it answers."""
        await self._server.start()
        if self._key != self._server.key:
            await super().aclose()
            self._key, self._fresh = self._server.key, True
            self.call(Endpoint(NAME, self._server.url, key_needed=False), Key(self._server.key, NAME))

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if not self._server.url:
            yield Remark(say("local.starting", name=self._model))
        await self.warm()
        is_fresh_start, self._fresh = self._fresh, False
        has_prefix = not (is_fresh_start and self._prefixes) or await self._prefixes.restore(request, self._server)
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished) and self._prefixes and not has_prefix:
                    # Only `aclose` waits for this task.
                    self._saving = asyncio.create_task(self._prefixes.save(request, self._server))
                yield chunk

    async def aclose(self) -> None:
        try:
            if self._saving:
                await self._saving
            await super().aclose()
        finally:
            await self._server.aclose()

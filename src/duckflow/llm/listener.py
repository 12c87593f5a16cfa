"""Listening to the answer of an endpoint until it is complete, silent, broken or nonsense."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import httpx

from duckflow.llm.failures import Failures
from duckflow.llm.reply import Reply
from duckflow.llm.settings import LlmSettings
from duckflow.llm.sse import EventReader, TooLarge

ERROR_BYTES = 64 * 1024
ERROR_SECONDS = 5.0
USAGE_GRACE_SECONDS = 5.0
"""How long a complete reply may keep its usage waiting."""
DRAIN_SECONDS = 0.05


class Listener:
    """Reads one response, whether it streams or comes in one piece. `reply` is what it heard."""

    def __init__(self, response: httpx.Response, failures: Failures, settings: LlmSettings) -> None:
        self.reply = Reply()
        self._reader = EventReader()
        self._failures = failures
        self._settings = settings
        self._pieces = _bytes_of(response)

    async def texts(self, deadline: float) -> AsyncGenerator[str, None]:
        """The text as it comes. A Setback means that this was no whole reply."""
        now = asyncio.get_running_loop().time
        latest = now() + self._settings.reply_seconds
        async with aclosing(self._pieces):
            while not self._reader.done and (data := await self._next(min(deadline, latest))) is not None:
                for event in self._events(data):
                    if text := self._take(event):
                        yield text
                patience = USAGE_GRACE_SECONDS if self.reply.ended else self._settings.between_chunks_seconds
                deadline = now() + patience
            if self._reader.done:
                await self._drain()
        for text in self._last_texts():
            yield text

    async def _next(self, deadline: float) -> bytes | None:
        """The next bytes; None at the end, and when nothing comes any more that the reply needs."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(self._pieces, None)
        except TimeoutError:
            if self.reply.ended:
                return None
            raise self._failures.timed_out(round(loop.time() - began, 1)) from None
        except (httpx.HTTPError, httpx.StreamError):
            if self.reply.ended:
                return None
            raise self._failures.broken() from None

    async def _drain(self) -> None:
        """Read the end of a finished stream, mostly there already, so that the connection can be used again."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await anext(self._pieces, None)
        except (TimeoutError, httpx.HTTPError, httpx.StreamError):
            pass

    def _events(self, data: bytes) -> list[dict[str, Any]]:
        try:
            return self._reader.feed(data)
        except TooLarge:
            raise self._failures.garbage("") from None

    def _take(self, event: dict[str, Any]) -> str:
        if error := event.get("error"):
            raise self._failures.of_error(error, json.dumps(event, ensure_ascii=False))
        text = self.reply.take(event)
        if self.reply.failed:
            raise self._failures.broken()
        return text

    def _last_texts(self) -> list[str]:
        """Text that only the end of the stream gives away."""
        texts = [self._take(event) for event in self._reader.finish()]
        if not self._reader.count and self._reader.stray.strip():
            texts.append(self._whole(self._reader.stray.decode("utf-8", "replace")))
        elif not self._reader.count and self._reader.done:
            raise self._failures.garbage("")
        elif not self.reply.ended and not self._reader.done:
            raise self._failures.broken()
        return [text for text in [*texts, self.reply.rest()] if text]

    def _whole(self, answer: str) -> str:
        """The reply of an endpoint that does not stream."""
        try:
            value: Any = json.loads(answer)
        except (ValueError, RecursionError):
            cut_off = answer.lstrip().startswith("{")
            raise (self._failures.broken() if cut_off else self._failures.garbage(answer)) from None
        event = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if not event.get("choices") and not event.get("error"):
            raise self._failures.garbage(answer)
        return self._take(event)


async def error_text(response: httpx.Response) -> str:
    """As much of an error's body as comes in time and is worth reading."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_SECONDS), aclosing(_bytes_of(response)) as pieces:
            async for data in pieces:
                body += data
                if len(body) > ERROR_BYTES:
                    break
    except (TimeoutError, httpx.HTTPError, httpx.StreamError):
        pass
    return bytes(body[:ERROR_BYTES]).decode("utf-8", "replace")


def _bytes_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    return cast("AsyncGenerator[bytes, None]", response.aiter_bytes())

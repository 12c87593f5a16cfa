"""A front end's end of the socket: calls that are answered, and what is told in between."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from duckflow.errors import DuckflowError
from duckflow.events.event import Event
from duckflow.remote.protocol import LONGEST_LINE, Welcome, connect_to, line_of, read_event

SLICE_SECONDS = 0.01
"""So long at most the keys wait while much is told."""


class Link:
    """One connection. Nothing that is told waits for the answer to a call, or is told out of order."""

    def __init__(
        self, tell: Callable[[int, Event], None], welcome: Callable[[Welcome], None], cut: Callable[[], None]
    ) -> None:
        self._tell = tell
        self._welcome = welcome
        self._cut = cut
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._called = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self, path: Path) -> None:
        """OSError when nobody listens there."""
        reader, self._writer = await asyncio.open_unix_connection(sock=connect_to(path), limit=LONGEST_LINE)
        self._reading = asyncio.create_task(self._read(reader))

    @property
    def is_open(self) -> bool:
        return self._writer is not None and not self._writer.is_closing()

    def call(self, name: str, /, **args: Any) -> asyncio.Future[Any]:
        """It is sent at once, and can be waited for."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Nobody has to wait for it.
        answered.add_done_callback(lambda future: future.cancelled() or future.exception())
        if self._writer is None or not self.is_open:
            answered.set_exception(DuckflowError("attach.cut"))
            return answered
        self._called += 1
        self._calls[self._called] = answered
        self._writer.write(line_of({"id": self._called, "call": name, "args": args}))
        return answered

    async def close(self) -> None:
        """For good; what was called is sent first."""
        self._cut = lambda: None
        if self._writer:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        if self._reading:
            self._reading.cancel()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        since = time.monotonic()
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
                if time.monotonic() - since > SLICE_SECONDS:
                    await asyncio.sleep(0)
                    since = time.monotonic()
        except (OSError, ValueError):
            # What is cut off in the middle of a line is cut off.
            pass
        finally:
            self._end()

    def _take(self, told: dict[str, Any]) -> None:
        if "number" in told:
            if event := read_event(told):
                self._tell(told["number"], event)
        elif "welcome" in told:
            self._welcome(Welcome.model_validate(told["welcome"]))
        elif (answered := self._calls.pop(told["id"], None)) and not answered.done():
            if "error" in told:
                answered.set_exception(DuckflowError(told["error"]["key"], **told["error"]["values"]))
            else:
                answered.set_result(told["result"])

    def _end(self) -> None:
        if self._writer:
            self._writer.close()
        for answered in self._calls.values():
            if not answered.done():
                answered.set_exception(DuckflowError("attach.cut"))
        self._calls.clear()
        self._cut()

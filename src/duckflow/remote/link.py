"""A front end's end of the socket: it makes calls and gets answers, and events in between."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from duckflow.errors import DuckflowError
from duckflow.events.event import Event
from duckflow.remote.protocol import EVENT, LONGEST_LINE, WELCOME, Welcome, connect_to, read_event
from duckflow.rpc import GONE, METHOD_NOT_FOUND, Message, Peer, RpcError, line_of

SLICE_SECONDS = 0.01
"""The longest time that the keyboard waits while many events arrive."""


class Link:
    """One connection. Events never wait for the answer to a call, and arrive in order."""

    def __init__(
        self, tell: Callable[[int, Event], None], welcome: Callable[[Welcome], None], cut: Callable[[], None]
    ) -> None:
        self._tell = tell
        self._welcome = welcome
        self._cut = cut
        self._peer = Peer(self._send, _refuse, self._told)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self, path: Path) -> None:
        """Connects. Raises OSError when nobody listens there."""
        reader, self._writer = await asyncio.open_unix_connection(sock=connect_to(path), limit=LONGEST_LINE)
        self._reading = asyncio.create_task(self._read(reader))

    @property
    def is_open(self) -> bool:
        return self._writer is not None and not self._writer.is_closing()

    def call(self, name: str, /, **args: Any) -> asyncio.Future[Any]:
        """Sends a call at once. A DuckflowError in its answer says why it was refused."""
        answer = asyncio.ensure_future(_answer_to(self._peer.call(name, args)))
        # The caller need not wait, so an error that nobody reads must not cause a warning.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        return answer

    async def close(self) -> None:
        """Closes the connection for good; calls that were made are sent first."""
        self._cut = lambda: None
        if self._writer:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        if self._reading:
            self._reading.cancel()

    def _send(self, message: Message) -> None:
        if self._writer is None or not self.is_open:
            raise RpcError(GONE, "nobody is connected")
        self._writer.write(line_of(message))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        slice_start = time.monotonic()
        try:
            while self.is_open and (line := await reader.readline()):
                self._peer.take_line(line)
                if time.monotonic() - slice_start > SLICE_SECONDS:
                    await asyncio.sleep(0)
                    slice_start = time.monotonic()
        except (OSError, ValueError):
            # A line that was cut off or has no end counts as a cut connection.
            pass
        finally:
            self._end()

    def _told(self, method: str, params: dict[str, Any]) -> None:
        try:
            if method == EVENT and (event := read_event(params)):
                self._tell(params["number"], event)
            elif method == WELCOME:
                self._welcome(Welcome.model_validate(params))
        except ValueError:
            # A front end that skipped an event would show a different state than the conversation has.
            self._close_writer()
            raise

    def _close_writer(self) -> None:
        if self._writer:
            self._writer.close()

    def _end(self) -> None:
        self._close_writer()
        self._peer.close("the connection was cut")
        self._cut()


async def _refuse(method: str, params: dict[str, Any]) -> None:
    """Refuses every call: the conversation calls no methods of a front end."""
    raise RpcError(METHOD_NOT_FOUND, method)


async def _answer_to(call: asyncio.Future[Any]) -> Any:
    try:
        return await call
    except RpcError as problem:
        if problem.code == GONE:
            raise DuckflowError("attach.cut") from None
        if isinstance(problem.data, dict):
            error = cast("dict[str, Any]", problem.data)
            raise DuckflowError(error["key"], **error["values"]) from None
        raise DuckflowError("attach.refused", reason=problem.message) from None

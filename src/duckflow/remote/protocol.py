"""The protocol on the socket of a conversation: JSON-RPC, one message for each line.

A front end calls methods such as `take`, with their arguments by name. After it has called `hear`, it gets a
notification `event` for every event, `{"number": N, "kind": …, "event": {…}}`. One notification `welcome` carries the
state; it comes after the past events and before the new ones."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from duckflow.errors import DuckflowError
from duckflow.events import talking, types
from duckflow.events.event import Event
from duckflow.rpc import GONE, METHOD_NOT_FOUND, Message, Peer, RpcError, line_of
from duckflow.state.agent import AgentState
from duckflow.state.data import FrozenData, Phrase
from duckflow.state.question import Question

SUFFIX = ".sock"
HEAR, LEAVE = "hear", "leave"
EVENT, WELCOME = "event", "welcome"
LONGEST_LINE = 64 * 1024 * 1024
LONGEST_NAME = 100
"""The number of bytes that the address of a socket may have on every system."""


class OfferedCommand(FrozenData):
    """A slash command that the conversation offers to the users of a front end."""

    name: str
    help: Phrase
    words: tuple[str, ...]


class Welcome(FrozenData):
    """The state of the conversation after the event of this number. The state holds only the last messages."""

    number: int
    state: AgentState
    questions: tuple[Question, ...]
    now: talking.NowChanged
    mode: str
    commands: tuple[OfferedCommand, ...]
    process: int
    terminal: bool
    """True if the conversation has a terminal of its own."""


def _kinds(cls: type[Event]) -> Iterator[type[Event]]:
    for event_type in cls.__subclasses__():
        if "kind" in vars(event_type):
            yield event_type
        yield from _kinds(event_type)


@cache
def _kind(name: str) -> type[Event] | None:
    """Returns the kind of event with this name, among the stored and the live kinds."""
    return types.BY_KIND.get(name) or next((cls for cls in _kinds(Event) if cls.kind == name), None)


def event_line(number: int, event: Event) -> bytes:
    """Writes an event as a notification. The line is written once, however many front ends hear it."""
    event_params = f'{{"number":{number},"kind":"{event.kind}","event":{event.model_dump_json()}}}'
    return f'{{"jsonrpc":"2.0","method":"{EVENT}","params":{event_params}}}\n'.encode()


def read_event(params: dict[str, Any]) -> Event | None:
    """Returns the event; None for an unknown kind, because the other process may be a newer version."""
    event_type = _kind(params["kind"])
    return event_type.model_validate(params["event"]) if event_type else None


def listen_at(path: Path) -> socket.socket:
    """Opens a socket that only its owner can connect to. It gets its name once it listens: whoever finds a socket that
    refuses takes its process for dead, and removes the name."""
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    early_path = path.with_suffix(f".{os.getpid()}")
    early_path.unlink(missing_ok=True)
    with _short(early_path) as name:
        listener.bind(name)
    early_path.chmod(0o600)
    listener.listen()
    early_path.replace(path)
    return listener


def connect_to(path: Path) -> socket.socket:
    """Connects to a socket. Raises OSError when no process listens there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    connection.setblocking(False)
    return connection


@contextlib.contextmanager
def _short(path: Path) -> Generator[str]:
    """Yields a short address for the socket. If the path is too long, the address names the open folder by its number:
    `/dev/fd/7/NAME`."""
    if len(os.fsencode(path)) <= LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/dev/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


SLICE_SECONDS = 0.01
"""The longest time for which events are taken without a pause. The keyboard need not wait longer than that."""


class Link:
    """One connection to a conversation. Events never wait for the answer to a call, and arrive in order."""

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
        """Sends a call at once. If the call is refused, awaiting its answer raises a DuckflowError."""
        answer = asyncio.ensure_future(_answer_to(self._peer.call(name, args)))
        # The caller need not wait, so an error that nobody reads must not cause a warning.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        return answer

    async def close(self) -> None:
        """Closes the connection for good. Calls that were made before are still sent."""
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

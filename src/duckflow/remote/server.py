"""Serves the `Conversation` port on a socket that only its owner can open.

A request is a JSON object in one line, `{"id": 1, "call": "take", "args": {"line": "…"}}`; its answer has the same id
and a `result` or an `error`. After `hear` every event comes as `{"number": N, "kind": …, "event": {…}}`.
"""

import asyncio
import contextlib
import inspect
import json
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from duckflow.errors import DuckflowError
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.events.views import Taken
from duckflow.i18n.words import Words

LONGEST_REQUEST = 16 * 1024 * 1024
Call = Callable[..., Any]


class ConversationServer:
    """One conversation, any number of front ends. `hand_over` ends the conversation here, at a good moment."""

    def __init__(self, conversation: Conversation, words: Words, hand_over: Callable[[], Awaitable[None]]) -> None:
        self._conversation = conversation
        self._words = words
        self._calls: dict[str, Call] = {
            "take": conversation.take,
            "say": conversation.say,
            "answer": conversation.answer,
            "interrupt": conversation.interrupt,
            "run_command": conversation.run_command,
            "control": conversation.work.control,
            "state": lambda: conversation.state.model_dump(mode="json", exclude={"messages"}),
            "questions": lambda: [question.model_dump(mode="json") for question in conversation.questions],
            "pid": os.getpid,
            "hand_over": hand_over,
        }

    async def serve(self, path: Path) -> asyncio.Server:
        """Until the server is closed; nobody but the owner can connect."""
        return await asyncio.start_unix_server(self._talk, sock=_bound(path), limit=LONGEST_REQUEST)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unhear: list[Callable[[], None]] = []
        tasks: set[asyncio.Task[None]] = set()
        try:
            while line := await reader.readline():
                task = asyncio.create_task(self._answer(line, writer, unhear))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except (OSError, ValueError):
            pass
        finally:
            for stop in unhear:
                stop()
            writer.close()

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter, unhear: list[Callable[[], None]]) -> None:
        number = None
        try:
            request: dict[str, Any] = json.loads(line)
            number, name, args = request.get("id"), request["call"], request.get("args", {})
            if name == "hear":
                unhear.append(self._conversation.hear(self._teller(writer), **args))
                result: Any = None
            else:
                result = self._calls[name](**args)
                result = await result if inspect.isawaitable(result) else result
                result = result._asdict() if isinstance(result, Taken) else result
            _send(writer, {"id": number, "result": result})
        except DuckflowError as problem:
            _send(writer, {"id": number, "error": self._words.error(problem)})
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            _send(writer, {"id": number, "error": f"{type(problem).__name__}: {problem}"})

    def _teller(self, writer: asyncio.StreamWriter) -> Callable[[int, Event], None]:
        def tell(number: int, event: Event) -> None:
            if writer.transport.get_write_buffer_size() > LONGEST_REQUEST:
                # It reads too slowly: it can come back and ask for what it missed.
                writer.close()
            elif not writer.is_closing():
                _send(writer, {"number": number, "kind": event.kind, "event": event.model_dump(mode="json")})

        return tell


def _send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    if not writer.is_closing():
        writer.write(json.dumps(value, ensure_ascii=False, default=_plain).encode() + b"\n")


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json")


@contextlib.contextmanager
def _inside(folder: Path) -> Generator[None]:
    """Names of sockets are short: it is made and found from inside its folder."""
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def _bound(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.setblocking(False)
    mask = os.umask(0o177)
    try:
        with _inside(path.parent):
            path.unlink(missing_ok=True)
            made.bind(path.name)
    finally:
        os.umask(mask)
    return made


class Remote:
    """A front end's end of the socket: one call after another, each until its answer."""

    def __init__(self, path: Path, seconds: float = 10.0) -> None:
        """OSError when nobody listens."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        with _inside(path.parent):
            self._socket.connect(path.name)
        self._lines = self._socket.makefile("rb")

    def call(self, name: str, **args: Any) -> Any:
        self._socket.sendall(json.dumps({"id": 1, "call": name, "args": args}).encode() + b"\n")
        while line := self._lines.readline():
            reply = json.loads(line)
            if reply.get("id") == 1:
                if "error" in reply:
                    raise ConnectionError(reply["error"])
                return reply["result"]
        raise ConnectionError("the other side has gone")

    def until_gone(self) -> None:
        """Until the other side has ended."""
        while self._lines.readline():
            pass

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

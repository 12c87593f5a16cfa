"""JSON-RPC 2.0, a message a line, both ways over two streams.

A request of the other side is carried out by the method of its name, each in a task of its own; what it returns or
raises goes back. Messages leave in the order in which they were sent.
"""

import asyncio
import json
import logging
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from duckflow.rpc import RpcError

log = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
CANCELLED, NOT_FOUND = -32800, -32002
CANCEL_REQUEST = "$/cancel_request"
LONGEST_MESSAGE = 64 * 1024 * 1024
CHUNK = 64 * 1024
FLUSH_SECONDS = 2.0
Params = dict[str, Any]
Method = Callable[[Params], Awaitable[Any]]


def text_in(params: Params, name: str) -> str:
    """A parameter that must be there and be a text."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} must be a string")
    return value


class JsonRpc:
    """One connection. `describe` turns an exception into the error that the other side is told."""

    def __init__(
        self, methods: Mapping[str, Method], send: Callable[[bytes], None], describe: Callable[[Exception], RpcError]
    ) -> None:
        self._methods = methods
        self._send = send
        self._describe = describe
        self._sent = 0
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._running: dict[Any, asyncio.Task[None]] = {}

    def take(self, line: bytes) -> None:
        """A line from the other side. What cannot be read gets an error."""
        if not line.strip():
            return
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, RpcError(PARSE_ERROR, "this is no JSON"))
            return
        if not isinstance(message, dict):
            self._fail(None, RpcError(INVALID_REQUEST, "a message is one JSON object in one line"))
            return
        given = cast("dict[str, Any]", message)
        if "method" in given:
            self._start(given)
        elif "id" in given and ("result" in given or "error" in given):
            self._settle(given)
        else:
            self._fail(given.get("id"), RpcError(INVALID_REQUEST, "neither a request nor an answer"))

    def notify(self, method: str, params: Params) -> None:
        self._write({"method": method, "params": params})

    def request(self, method: str, params: Params) -> asyncio.Future[Any]:
        """Its result. Cancelled, the other side is told so; an error of the other side is raised."""
        self._sent += 1
        number = self._sent
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: self._forget(number, done))
        self._write({"id": number, "method": method, "params": params})
        return answer

    async def close(self) -> None:
        """The other side has gone: nothing is answered any more, and nothing waited for."""
        for answer in list(self._open.values()):
            answer.cancel()
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start(self, message: dict[str, Any]) -> None:
        number, name, params = message.get("id"), message["method"], message.get("params")
        if name == CANCEL_REQUEST:
            self._stop(params)
            return
        try:
            if not isinstance(name, str) or not isinstance(params, dict | None):
                raise RpcError(INVALID_REQUEST, "method must be a string and params an object")
            if name not in self._methods:
                raise RpcError(UNKNOWN_METHOD, f"unknown method {name}")
        except RpcError as problem:
            # A notification is never answered.
            if "id" in message:
                self._fail(number, problem)
            return
        task = asyncio.create_task(self._carry_out(self._methods[name], cast("Params", params or {}), message))
        key = number if isinstance(number, str | int) else object()
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def _carry_out(self, method: Method, params: Params, message: dict[str, Any]) -> None:
        try:
            # Nothing may come between the result and its being sent: what it sets in motion follows it.
            result = await method(params)
        except asyncio.CancelledError:
            if "id" in message:
                self._fail(message["id"], RpcError(CANCELLED, "cancelled"))
        except Exception as problem:
            told = self._describe(problem)
            if "id" in message:
                self._fail(message["id"], told)
        else:
            if "id" in message:
                self._write({"id": message["id"], "result": result})

    def _stop(self, params: Any) -> None:
        number: Any = cast("Params", params).get("requestId") if isinstance(params, dict) else None
        if isinstance(number, str | int) and (task := self._running.get(number)):
            task.cancel()

    def _settle(self, message: dict[str, Any]) -> None:
        answer = self._open.get(message["id"]) if isinstance(message["id"], int) else None
        if answer is None or answer.done():
            return
        if "error" not in message:
            answer.set_result(message["result"])
            return
        error: Any = message["error"]
        told = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
        code = told.get("code")
        answer.set_exception(
            RpcError(code if isinstance(code, int) else INTERNAL_ERROR, str(told.get("message", error)))
        )

    def _forget(self, number: int, answer: asyncio.Future[Any]) -> None:
        del self._open[number]
        if answer.cancelled():
            self.notify(CANCEL_REQUEST, {"requestId": number})

    def _fail(self, number: Any, problem: RpcError) -> None:
        self._write({"id": number, "error": {"code": problem.code, "message": problem.message}})

    def _write(self, message: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        # Half of a character, as a model may stream it, is no UTF-8.
        self._send(text.encode("utf-8", "replace") + b"\n")


class LineStreams:
    """Lines in from one file descriptor and out to another, by threads: any kind of stream will do, and a side that
    does not read holds up nothing. `took` is called in the event loop with each line, and with None at the end."""

    def __init__(self, source: int, target: int, took: Callable[[bytes | None], None]) -> None:
        self._source = source
        self._target = target
        self._took = took
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writing = threading.Thread(target=self._write, daemon=True)
        self._writing.start()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line: bytes) -> None:
        self._waiting.put(line)

    async def flush(self) -> None:
        """Until everything has left, but not for ever."""
        self._waiting.put(None)
        await asyncio.to_thread(self._writing.join, FLUSH_SECONDS)

    def _read(self) -> None:
        rest = bytearray()
        try:
            while chunk := os.read(self._source, CHUNK):
                *lines, begun = chunk.split(b"\n")
                for line in lines:
                    self._hand_over(bytes(rest + line))
                    rest.clear()
                # Of a line without an end the beginning is kept: it will be no JSON, and that is said.
                if len(rest) <= LONGEST_MESSAGE:
                    rest += begun
        except OSError:
            log.info("nothing can be read any more")
        if rest:
            self._hand_over(bytes(rest))
        self._hand_over(None)

    def _hand_over(self, line: bytes | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._took, line)
        except RuntimeError:
            log.info("the event loop has ended")

    def _write(self) -> None:
        try:
            while (line := self._waiting.get()) is not None:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._target, left) :]
        except OSError:
            # Nobody reads any more; the end of the input will follow.
            self._hand_over(None)

"""Messages as lines of JSON on two file descriptors."""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, cast

from duckflow.rpc import Message, RpcError, line_of
from duckflow.whole_text import parse_json

log = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
LONGEST_MESSAGE = 64 * 1024 * 1024
CHUNK = 64 * 1024
FLUSH_SECONDS = 2.0


def read_message(line: bytes) -> dict[str, Any]:
    """Reads a message from a line. Raises an RpcError if the line is no message."""
    try:
        message = parse_json(line)
    except ValueError:
        raise RpcError(PARSE_ERROR, "this is no JSON") from None
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a message is one JSON object in one line")
    fields = cast("dict[str, Any]", message)
    is_answer = "id" in fields and ("result" in fields or "error" in fields)
    if not isinstance(fields.get("method"), str) and not is_answer:
        raise RpcError(INVALID_REQUEST, "neither a request nor an answer")
    return fields


class MessageStreams:
    """Reads and writes in threads, so that any kind of stream works, and Duckflow goes on even if the other program
    reads nothing. `took` is called in the event loop with each line, and with None at the end. Messages are sent in
    order."""

    def __init__(self, source: int, target: int, took: Callable[[bytes | None], None]) -> None:
        self._source = source
        self._target = target
        self._took = took
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writing = threading.Thread(target=self._write, daemon=True)
        self._writing.start()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Message) -> None:
        self._waiting.put(line_of(message))

    async def flush(self) -> None:
        """Waits until everything has been sent, up to a time limit."""
        self._waiting.put(None)
        await asyncio.to_thread(self._writing.join, FLUSH_SECONDS)

    def _read(self) -> None:
        unfinished_line = bytearray()
        try:
            while chunk := os.read(self._source, CHUNK):
                *lines, line_start = chunk.split(b"\n")
                for line in lines:
                    self._hand_over(bytes(unfinished_line + line))
                    unfinished_line.clear()
                # Only the beginning of an endless line is kept. It is not valid JSON, so it gets an error.
                if len(unfinished_line) <= LONGEST_MESSAGE:
                    unfinished_line += line_start
        except OSError:
            log.info("nothing can be read any more")
        if unfinished_line:
            self._hand_over(bytes(unfinished_line))
        self._hand_over(None)

    def _hand_over(self, line: bytes | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._took, line)
        except RuntimeError:
            log.info("the event loop has ended")

    def _write(self) -> None:
        try:
            while (line := self._waiting.get()) is not None:
                remaining_bytes = memoryview(line)
                while remaining_bytes:
                    remaining_bytes = remaining_bytes[os.write(self._target, remaining_bytes) :]
        except OSError:
            # Nobody reads any more; the end of the input will follow.
            self._hand_over(None)

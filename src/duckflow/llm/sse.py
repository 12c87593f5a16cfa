"""Server-sent events, read piece by piece; what is no event is kept aside."""

import json
from typing import Any, cast

LARGEST = 16 * 1024 * 1024
FIELDS = (b"event:", b"id:", b"retry:", b":")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TooLarge(Exception):
    """More came without an event than any reply needs."""


class EventReader:
    """Turns bytes into the JSON objects of `data:` lines.

    `done` is set by `[DONE]`. `stray` holds what came before the first event, for endpoints that answer with one
    JSON body instead of a stream.
    """

    def __init__(self) -> None:
        self.done = False
        self.count = 0
        self.stray = bytearray()
        self._buffer = b""
        self._pending = ""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        lines = (self._buffer + data).replace(b"\r\n", b"\n").split(b"\n")
        self._buffer = lines.pop()
        if len(self._buffer) + len(self.stray) > LARGEST:
            raise TooLarge
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[dict[str, Any]]:
        """What an unended last line holds."""
        last, self._buffer = self._buffer, b""
        event = self._line(last) if last else None
        return [] if event is None else [event]

    def _line(self, line: bytes) -> dict[str, Any] | None:
        line = line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r")
        if line.startswith(b"data:"):
            return self._data(line[5:].decode("utf-8", "replace").strip())
        if not line:
            self._pending = ""
        elif not self.count and not line.startswith(FIELDS):
            self.stray += line + b"\n"
        return None

    def _data(self, text: str) -> dict[str, Any] | None:
        if text == "[DONE]":
            self.done = True
            return None
        # A line is tried by itself first: some servers forget the empty line between events, few split one over lines.
        event = _object(text)
        if event is None and self._pending:
            event = _object(self._pending + text)
        if event is None:
            self._pending = (self._pending + text)[:LARGEST]
            return None
        self._pending = ""
        self.count += 1
        return event


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None

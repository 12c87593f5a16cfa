"""Reads a streamed reply: server-sent events, their pieces, and the whole reply they add up to."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from itertools import groupby
from typing import Any

from duckflow.http import HttpAnswer, HttpError
from duckflow.llm.failures import Failures
from duckflow.llm.provider import PHASE, CallDelta, Delta, Finish, Thought, ThoughtCollector, Thoughts
from duckflow.llm.settings import LlmSettings
from duckflow.llm.wires.wire import Told
from duckflow.state.data import as_table, as_text, first_table, tables
from duckflow.state.message import ToolCall
from duckflow.whole_text import PieceJoiner, read_json

LARGEST = 16 * 1024 * 1024
MOST_LINES = 64
"""The largest number of lines over which one event may be split."""
FIELDS = (b"event:", b"id:", b"retry:", b":")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Turns bytes into the JSON objects of `data:` lines. `done` becomes True at `[DONE]`. `stray` holds the bytes
    before the first event, for endpoints that answer with one JSON body instead of a stream."""

    def __init__(self) -> None:
        self.done = False
        self.flooded = False
        """True if more bytes came without an event than any reply needs."""
        self.count = 0
        self.stray = bytearray()
        self._buffer = bytearray()
        self._pending: list[str] = []
        self._joiner = PieceJoiner()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        first_line, *other_lines = data.split(b"\n")
        self._buffer += first_line
        if len(self._buffer) + len(self.stray) > LARGEST:
            self.flooded = True
        if self.flooded or not other_lines:
            return []
        lines = [bytes(self._buffer), *other_lines[:-1]]
        self._buffer = bytearray(other_lines[-1])
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[dict[str, Any]]:
        """Reads a last line that has no line end, and returns its event."""
        return self.feed(b"\n")

    def _line(self, line: bytes) -> dict[str, Any] | None:
        line = line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r")
        if line.startswith(b"data:"):
            return self._data(line[5:].decode("utf-8", "replace").strip())
        if not line:
            self._pending = []
        elif not self.count and not line.startswith(FIELDS):
            self.stray += line + b"\n"
        return None

    def _data(self, text: str) -> dict[str, Any] | None:
        if text == "[DONE]":
            self.done = True
            return None
        # A line is parsed alone first: some servers forget the empty line between events, and few split an event over
        # lines.
        event = as_table(self._joiner.read(text))
        if not event and self._pending:
            event = as_table(self._joiner.read("".join((*self._pending, text))))
        if not event:
            self._pending = [*self._pending, text] if len(self._pending) < MOST_LINES else []
            return None
        self._pending = []
        self.count += 1
        return event


CALL_FIELDS = ("index", "id", "type", "function")


class CallCollector:
    """Joins the pieces of a reply's tool calls by index, or by id if an endpoint always sends the same index."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._places: dict[Any, int] = {}

    def take(self, pieces: Any) -> list[CallDelta]:
        """Adds these pieces of calls, and returns them as pieces of the reply (CallDelta)."""
        return [self._piece(piece, number) for number, piece in enumerate(tables(pieces)) if piece]

    def _piece(self, piece: dict[str, Any], number: int) -> CallDelta:
        index, call_id = piece.get("index"), str(piece.get("id") or "")
        function = as_table(piece.get("function"))
        name, arguments = str(function.get("name") or ""), function.get("arguments")
        position = self._places.get(number if index is None else index)
        if position is None or (name and self._is_another(self._calls[position], call_id)):
            position = self._places[number if index is None else index] = len(self._calls)
            own_id = f"call_{os.urandom(4).hex()}"
            self._calls.append({"id": "", "own": own_id, "name": "", "arguments": [], "extra": {}})
        call = self._calls[position]
        is_first = bool(name) and not call["name"]
        call["id"], call["name"] = call["id"] or call_id, call["name"] or name
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        call["arguments"].append(text)
        call["extra"] |= {key: value for key, value in piece.items() if key not in CALL_FIELDS and value is not None}
        return CallDelta(text, name if is_first else "")

    @staticmethod
    def _is_another(call: dict[str, Any], call_id: str) -> bool:
        """Says whether a piece with a name begins a new call: its id differs or, without ids, the last call is
        whole."""
        if call_id and call["id"]:
            return call["id"] != call_id
        return not call_id and not call["id"] and read_json("".join(call["arguments"])) is not None

    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                call_id=call["id"] or call["own"],
                name=call["name"] or "unnamed",
                arguments="".join(call["arguments"]),
                extra=call["extra"],
            )
            for call in self._calls
        )


Piece = Delta | Thought | CallDelta


class StreamedReply:
    """Collects text, calls, reason and usage from chunks or from one whole body. Reasoning is not part of the text."""

    def __init__(self) -> None:
        self.ended = False
        self.failed = False
        self.reported: dict[str, Any] = {}
        self.raw = ""
        """The reason why the reply ended, in the endpoint's own word."""
        self._reason: Finish = "stop"
        self._refused = False
        self._texts: list[str] = []
        self._thoughts = Thoughts()
        self._collector = CallCollector()
        self._thinking = ThoughtCollector()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self._collector.calls()

    @property
    def kept(self) -> dict[str, Any]:
        """The fields that the endpoint wants back with the reply: all thoughts if the reply has calls, else only the
        phase (answer or remark)."""
        fields = self._thinking.fields
        return fields if self.calls else {PHASE: fields[PHASE]} if PHASE in fields else {}

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def reason(self) -> Finish:
        return "refusal" if self._refused else self._reason

    def take(self, event: dict[str, Any]) -> list[Piece]:
        """Adds an event of the stream, and returns the pieces of the reply in it."""
        usage = event.get("usage") or as_table(event.get("x_groq")).get("usage")
        if usage:
            self.reported |= as_table(usage)
        choice = first_table(event.get("choices"))
        message = as_table(choice.get("delta") or choice.get("message"))
        text = as_text(message.get("content")) or as_text(choice.get("text"))
        if refusal := as_text(message.get("refusal")):
            self._refused = True
            text += refusal
        text = self._thoughts.pass_on(text) if text else ""
        finish_reason: Finish | None = choice.get("finish_reason")
        if finish_reason:
            self.failed, self.ended = finish_reason == "failed", True
            self._reason, self.raw = finish_reason, str(choice.get("raw", ""))
            text += self._thoughts.rest()
        thought = self._thinking.take(message) + self._thoughts.heard
        self._thoughts.heard = ""
        thought_pieces = [Thought(thought)] if thought else []
        return [*thought_pieces, *self._said(text), *self._collector.take(message.get("tool_calls"))]

    def rest(self) -> list[Piece]:
        """Returns the text that still waits for a tag when an endpoint ends a reply without giving a reason."""
        return self._said(self._thoughts.rest())

    def _said(self, text: str) -> list[Piece]:
        self._texts.append(text)
        return [Delta(text)] if text else []


ERROR_BYTES = 64 * 1024
ERROR_SECONDS = 5.0
USAGE_GRACE_SECONDS = 5.0
"""Seconds to wait for the token usage after the reply is complete."""
DRAIN_SECONDS = 0.05


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Joins neighbouring pieces of one kind, because a short piece costs each listener as much as a long one."""
    for _, group in groupby(pieces, key=lambda piece: (type(piece), piece[1:])):
        first, *further_pieces = group
        yield first._replace(text="".join((first.text, *(piece.text for piece in further_pieces))))


class ReplyListener:
    """Reads one response, whether it streams or comes in one piece. `reply` collects the pieces that came."""

    def __init__(self, response: HttpAnswer, failures: Failures, settings: LlmSettings, translate: Told) -> None:
        self._translate = translate
        self.reply = StreamedReply()
        self._reader = EventReader()
        self._failures = failures
        self._settings = settings
        self._pieces = response.pieces()

    async def pieces(self, deadline: float) -> AsyncGenerator[Piece, None]:
        """Yields the pieces of the reply as they come. Raises a Setback, which ends this attempt, if the response is
        not a whole reply."""
        clock = asyncio.get_running_loop().time
        latest_end = clock() + self._settings.reply_seconds
        async with aclosing(self._pieces):
            while not self._reader.done and (data := await self._next(min(deadline, latest_end))) is not None:
                for piece in _joined(piece for event in self._reader.feed(data) for piece in self._take(event)):
                    yield piece
                if self._reader.flooded:
                    raise self._failures.garbage("")
                patience = USAGE_GRACE_SECONDS if self.reply.ended else self._settings.between_chunks_seconds
                deadline = clock() + patience
            if self._reader.done:
                await self._drain()
        for piece in self._last_pieces():
            yield piece

    async def _next(self, deadline: float) -> bytes | None:
        """Returns the next bytes; None at the end, or when the stream stops after the reply was complete."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(self._pieces, None)
        except TimeoutError:
            if self.reply.ended:
                return None
            raise self._failures.timed_out(round(loop.time() - start, 1)) from None
        except HttpError:
            if self.reply.ended:
                return None
            raise self._failures.broken() from None

    async def _drain(self) -> None:
        """Reads the end of a finished stream, which has mostly arrived already, so that the connection can be
        reused."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await anext(self._pieces, None)
        except (TimeoutError, HttpError):
            pass

    def _take(self, event: dict[str, Any]) -> list[Piece]:
        event = self._translate(event)
        if error := event.get("error"):
            raise self._failures.of_error(error, json.dumps(event, ensure_ascii=False))
        pieces = self.reply.take(event)
        if self.reply.failed:
            raise self._failures.broken()
        return pieces

    def _last_pieces(self) -> list[Piece]:
        """Returns the pieces that can be read only after the stream has ended."""
        pieces = [piece for event in self._reader.finish() for piece in self._take(event)]
        if not self._reader.count and self._reader.stray.strip():
            pieces += self._whole(self._reader.stray.decode("utf-8", "replace"))
        elif not self._reader.count and self._reader.done:
            raise self._failures.garbage("")
        elif not self.reply.ended and not self._reader.done:
            raise self._failures.broken()
        return [*pieces, *self.reply.rest()]

    def _whole(self, answer: str) -> list[Piece]:
        """Reads the reply of an endpoint that does not stream."""
        event = as_table(read_json(answer))
        if not {"choices", "candidates", "error"} & event.keys():
            is_cut_off = not event and answer.lstrip().startswith("{")
            raise self._failures.broken() if is_cut_off else self._failures.garbage(answer)
        return self._take(event)


async def error_text(response: HttpAnswer) -> str:
    """Returns the body of an error response, up to a limit of bytes and seconds."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_SECONDS), aclosing(response.pieces()) as pieces:
            async for body_piece in pieces:
                body += body_piece
                if len(body) > ERROR_BYTES:
                    break
    except (TimeoutError, HttpError):
        pass
    return bytes(body[:ERROR_BYTES]).decode("utf-8", "replace")

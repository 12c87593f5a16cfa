"""A fake model that plays scripted replies, for tests and demonstrations."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from duckflow.errors import ContextTooLong, ModelError, ProviderRefused, ProviderUnreachable, UsageError
from duckflow.llm.provider import CallDelta, Chunk, Delta, Finish, Finished, Request, Thought, measure
from duckflow.llm.settings import Price
from duckflow.state.message import ToolCall, Usage
from duckflow.whole_text import parse_json

ERRORS: dict[str, type[ModelError]] = {
    "unreachable": ProviderUnreachable,
    "refused": ProviderRefused,
    "too_long": ContextTooLong,
    "failed": ModelError,
}
WINDOW = 32_768


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply. With `when`, it is used only for a request whose last message contains that text."""

    text: str = ""
    chunk: int = 0
    """Characters in each piece of the stream; 0 means all at once."""
    delay: float = 0.0
    """Seconds before each piece of the stream."""
    finish: Finish = "stop"
    error: ModelError | None = None
    """An error that is raised after the reply's text."""
    when: str = ""
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()
    """The tools that the reply calls."""
    thought: str = ""
    """The thinking that is streamed before the text."""

    def pieces(self) -> list[Delta | Thought]:
        return [*map(Thought, self._cut(self.thought)), *map(Delta, self._cut(self.text))]

    def _cut(self, text: str) -> list[str]:
        size = self.chunk or len(text)
        return [text[start : start + size] for start in range(0, len(text), size)] if text else []


Line = str | Mapping[str, Any] | ScriptedReply


class Scripted:
    """A provider that plays replies: the first unused reply whose `when` fits the request, else the next in order.

    A reply may be a str (its text) or a dict (the JSON of its text). `requests` records the requests. With `native`,
    the model takes tools."""

    def __init__(
        self, replies: Iterable[Line], name: str = "scripted", window: int = WINDOW, native: bool = False
    ) -> None:
        self.requests: list[Request] = []
        self.takes_tools = native
        self.takes_pictures: bool | None = True
        self.least_price: float | None = 0.0
        script = list(map(_reply, replies))
        self._expecting = [reply for reply in script if reply.when]
        self._in_order = deque(reply for reply in script if not reply.when)
        self.model = name
        self.window = window

    @classmethod
    def from_file(cls, path: Path) -> "Scripted":
        """Reads a script from JSONL: each line is a string, or an object with `text` or `json` and other fields."""
        try:
            lines = path.read_text("utf-8-sig").split("\n")
        except (OSError, UnicodeError):
            raise UsageError("model.script_unreadable", path=str(path)) from None
        numbered_lines = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        return cls([_parsed(line, path, number) for number, line in numbered_lines], name=f"scripted:{path.name}")

    def forgo_tools(self) -> None:
        self.takes_tools = False

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        reply = self._choose(request)
        for piece in reply.pieces():
            # Even a delay of 0 lets other tasks run, as they do with a real model.
            await asyncio.sleep(reply.delay)
            yield piece
        for call in reply.calls:
            yield CallDelta(call.arguments, call.name)
        if reply.error is not None:
            raise reply.error
        reply_text = reply.text + "".join(call.arguments for call in reply.calls)
        yield Finished(reply.finish, reply.usage or measure(request, reply_text, {}, Price()), reply.calls)

    async def aclose(self) -> None:
        pass

    def _choose(self, request: Request) -> ScriptedReply:
        last_text = request.messages[-1].text if request.messages else ""
        if expected_reply := next((reply for reply in self._expecting if reply.when in last_text), None):
            self._expecting.remove(expected_reply)
            return expected_reply
        if not self._in_order:
            raise ModelError("model.script_ended", name=self.model, requests=len(self.requests))
        return self._in_order.popleft()


def _reply(line: Line) -> ScriptedReply:
    if isinstance(line, ScriptedReply):
        return line
    return ScriptedReply(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False))


def _parsed(line: str, path: Path, number: int) -> ScriptedReply:
    try:
        value = parse_json(line)
        return ScriptedReply(value) if isinstance(value, str) else _from_fields(cast("dict[str, Any]", value))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError("model.script_line", path=str(path), line=number) from None


def _from_fields(fields: dict[str, Any]) -> ScriptedReply:
    values: dict[str, Any] = {**fields, "chunk": int(fields.get("chunk", 0)), "delay": float(fields.get("delay", 0))}
    if "json" in fields:
        values["text"] = json.dumps(values.pop("json"), ensure_ascii=False)
    if values.get("finish", "stop") not in get_args(Finish):
        raise ValueError
    if kind := values.get("error"):
        values["error"] = ERRORS[kind]("model.scripted_error", kind=kind)
    if usage := values.get("usage"):
        values["usage"] = Usage(**usage)
    values["calls"] = tuple(ToolCall(**call) for call in values.get("calls", ()))
    return ScriptedReply(**values)

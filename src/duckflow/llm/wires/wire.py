"""A wire: how a request is written for an endpoint, how its stream is read, and what is left out after a refusal."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from duckflow import plugins
from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint, Key
from duckflow.llm.facts import FORMATS, Abilities, Facts
from duckflow.llm.provider import Finish, Request
from duckflow.llm.settings import EFFORTS, WIRES, LlmSettings
from duckflow.llm.thoughts import DETAILS
from duckflow.state.message import PromptMessage, ToolSpec

FORMAT_NAMED = (
    r"response.?(?:format|mime|json|schema)|json.?schema|json.?object|json mode|structured.output"
    r"|output_(?:config|format)|grammar|guided"
)
SCHEMA_NAMED = r"schema"
LIMIT_NAMED = r"max_?(completion_|output_?)?tokens"
TOOLS_NAMED = r"\btools?\b|tool.?(use|call|choice)|function.?(call|declaration)|\bfunctions\b"
REQUEST_REFUSED = (400, 404, 405, 415, 422, 500, 501)
VALUES_LISTED = 2
"""A refusal that names so many other efforts tells which there are."""
FOR = "for"
"""Names the call that a kept thought belongs to; empty: the text."""


class WireRequest(NamedTuple):
    """A request with all that a wire has to know to write it."""

    request: Request
    endpoint: Endpoint
    model: str
    facts: Facts
    abilities: Abilities
    settings: LlmSettings

    @property
    def system(self) -> str:
        """All that the system says, for wires that have one place for it."""
        return "\n\n".join(
            message.text for message in self.request.messages if message.role == "system" and message.text
        )

    def turns(self, write: Callable[[PromptMessage], Iterator[Any]]) -> list[tuple[bool, list[Any]]]:
        """What is said in turns, as `write` puts it, and whether the model says it. What the user and the tools say in
        a row is one turn."""
        turns: list[tuple[bool, list[Any]]] = []
        for message in self.request.messages:
            by_model, parts = message.role == "assistant", list(write(message)) if message.role != "system" else []
            if turns and turns[-1][0] == by_model:
                turns[-1][1].extend(parts)
            elif parts:
                turns.append((by_model, parts))
        return turns

    def takes(self, part: str) -> bool:
        return part not in self.abilities.lacks

    @property
    def limit(self) -> int:
        """The most tokens of the reply; 0 where nothing is said about it."""
        limit = self.request.max_tokens or self.settings.max_reply_tokens or 0
        return limit if self.abilities.reply_limit else 0

    @property
    def temperature(self) -> dict[str, float]:
        own, common = self.request.temperature, self.settings.temperature
        temperature = common if own is None else own
        return {"temperature": temperature} if temperature is not None and self.takes("temperature") else {}

    @property
    def effort(self) -> str:
        """The wished effort, or the nearest that was not refused; empty where nothing is said about it."""
        wished = self.settings.effort
        if not wished or not self.takes("effort"):
            return ""
        at = EFFORTS.index(wished)
        nearest = sorted(EFFORTS, key=lambda effort: (abs(EFFORTS.index(effort) - at), -EFFORTS.index(effort)))
        return next((effort for effort in nearest if self.takes(f"effort {effort}")), "")

    def kept(self, message: PromptMessage) -> Mapping[str, Any]:
        """What came with this reply and goes back to where it came from, and nowhere else."""
        kept: Mapping[str, Any] = message.extra.get(self.endpoint.name, {}) if self.takes("thoughts") else {}
        return kept

    def picture_urls(self, message: PromptMessage) -> list[str]:
        return [f"data:{media};base64,{data}" for media, data in self.pictures(message)]

    def pictures(self, message: PromptMessage) -> Iterator[tuple[str, str]]:
        """The media type and the encoded bytes of each picture of a message."""
        import base64

        for picture in message.pictures:
            if data := self.request.pictures.get(picture.digest):
                yield picture.media, base64.b64encode(data).decode()


Told = Callable[[dict[str, Any]], dict[str, Any]]
"""Tells an event of a stream as a chunk of the chat wire, with a Finish as its reason: one reader knows all wires."""


class Wire:
    """One way to speak to an endpoint. `wire_named` finds it by the name of its module."""

    listing = "/models"
    """The path under which the endpoint lists its models."""
    limits: tuple[str, ...] = ("max_tokens",)
    """The names that the limit of a reply may have."""
    formats = FORMATS
    """The ways of asking for JSON that the wire has, the strictest first."""
    parts: Mapping[str, str] = MappingProxyType({})
    """The parts that a request can do without, the least useful first, each with how a refusal names it."""

    def path(self, model: str) -> str:
        raise NotImplementedError

    def headers(self, key: Key) -> dict[str, str]:
        return {"authorization": f"Bearer {key.secret}"}

    def body(self, asked: WireRequest) -> dict[str, Any]:
        raise NotImplementedError

    def reading(self) -> Told:
        """A reader for one stream."""
        raise NotImplementedError

    def elsewhere(self, status: int, answer: str) -> str:
        """The wire that a refusal points to; empty where it points to none."""
        return ""


def wire_named(name: str) -> Wire:
    """A packaged wire, or one of a plugin."""
    if name in WIRES:
        return cast("Wire", import_module(f"duckflow.llm.wires.{name}").WIRE)
    plugin = next((one for one in plugins.wanted(plugins.WIRES) if one.name == name), None)
    if plugin is None:
        raise UsageError("llm.no_wire", wire=name, known=", ".join(WIRES))
    try:
        return cast("Wire", plugin.load())
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise UsageError("plugin.failed", name=name, package=plugin.package, reason=reason) from problem


def reasons(**words: str) -> dict[str, Finish]:
    """What each word of an endpoint for the end of a reply means; the words stand behind their meaning."""
    return {word: cast("Finish", finish) for finish, line in words.items() for word in line.split()}


def described(tool: ToolSpec, parameters: str) -> dict[str, Any]:
    """A tool; `parameters` is what the wire calls their schema."""
    return {"name": tool.name, "description": tool.description, parameters: tool.parameters}


def delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"delta": said}]}


def ended(reason: str, raw: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason, "raw": raw}], **more}


class ThoughtKeeper:
    """Keeps what was thought in a stream until the text or the call comes that it belongs to."""

    def __init__(self) -> None:
        self.thoughts: list[dict[str, Any]] = []

    def given_to(self, owner: str) -> dict[str, Any]:
        thoughts, self.thoughts = [thought | {FOR: owner} for thought in self.thoughts], []
        return {DETAILS: thoughts} if thoughts else {}


def thoughts_for(owner: str, thoughts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kept thoughts that go back before this call, or before the text."""
    mine = [thought for thought in thoughts if thought.get(FOR) == owner]
    return [{name: value for name, value in thought.items() if name != FOR} for thought in mine]


def smaller(wire: Wire, asked: WireRequest, status: int, answer: str, unclear: bool) -> Abilities | None:
    """What to try next after an answer in small letters; None when no smaller request would help. Tools go last of all.
    `unclear`: nothing that is known was meant by it."""
    if status not in REQUEST_REFUSED:
        return None
    abilities = asked.abilities
    if other := wire.elsewhere(status, answer):
        return abilities._replace(wire=other)
    for part, pattern in wire.parts.items():
        if re.search(pattern, answer) and (lower := _without(part, wire, asked, answer)):
            return lower
    if asked.limit and re.search(LIMIT_NAMED, answer):
        return abilities.with_other_limit(answer, wire.limits)
    simpler = abilities.with_simpler_format(wire.formats) if asked.request.schema is not None else None
    if simpler and (re.search(FORMAT_NAMED, answer) or (status != 500 and re.search(SCHEMA_NAMED, answer))):
        return simpler
    if asked.request.tools and re.search(TOOLS_NAMED, answer):
        return abilities._replace(tools="json")
    if not unclear:
        return None
    if sent := [part for part in wire.parts if _changes(abilities.without(part), wire, asked)]:
        return abilities.without(*sent)
    return simpler or (abilities._replace(tools="json") if asked.request.tools and not abilities.tools else None)


def _without(part: str, wire: Wire, asked: WireRequest, answer: str) -> Abilities | None:
    effort = asked.effort if part == "effort" else ""
    listed = [name for name in EFFORTS if name != effort and re.search(rf"\b{name}\b", answer)]
    lower = asked.abilities.without(f"effort {effort}" if effort and len(listed) >= VALUES_LISTED else part)
    return lower if _changes(lower, wire, asked) else None


def _changes(lower: Abilities, wire: Wire, asked: WireRequest) -> bool:
    """Whether the request would be another one at all."""
    return wire.body(asked._replace(abilities=lower)) != wire.body(asked)

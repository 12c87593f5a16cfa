"""A wire is the protocol of an endpoint: it writes requests, reads streams, and drops parts that were refused."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from duckflow import plugins
from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint, Key
from duckflow.llm.facts import FORMATS, Abilities, Facts
from duckflow.llm.provider import DETAILS, Finish, Request
from duckflow.llm.settings import EFFORTS, WIRES, LlmSettings
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
"""A refusal that names at least this many other levels of effort counts as a list of the valid levels."""
FOR = "for"
"""The field with the id of the call that a stored thought belongs to; empty if it belongs to the text."""


class WireRequest(NamedTuple):
    """A request with all data that a wire needs to write it."""

    request: Request
    endpoint: Endpoint
    model: str
    facts: Facts
    abilities: Abilities
    settings: LlmSettings

    @property
    def system(self) -> str:
        """The text of all system messages, for wires that have one place for system text."""
        return "\n\n".join(
            message.text for message in self.request.messages if message.role == "system" and message.text
        )

    def turns(self, write: Callable[[PromptMessage], Iterator[Any]]) -> list[tuple[bool, list[Any]]]:
        """Groups the messages into turns. Each turn has a flag that says whether the model wrote it, and its parts as
        `write` makes them. Consecutive messages of the user and of tools are one turn."""
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
        """The most tokens that the reply may have; 0 if the request sets no limit."""
        limit = self.request.max_tokens or self.settings.max_reply_tokens or 0
        return limit if self.abilities.reply_limit else 0

    @property
    def temperature(self) -> dict[str, float]:
        requested_temperature, default_temperature = self.request.temperature, self.settings.temperature
        temperature = default_temperature if requested_temperature is None else requested_temperature
        return {"temperature": temperature} if temperature is not None and self.takes("temperature") else {}

    @property
    def effort(self) -> str:
        """The effort of the settings, or the nearest level that was not refused; empty if the request names no
        effort."""
        wished_effort = self.settings.effort
        if not wished_effort or not self.takes("effort"):
            return ""
        index = EFFORTS.index(wished_effort)
        efforts = sorted(EFFORTS, key=lambda effort: (abs(EFFORTS.index(effort) - index), -EFFORTS.index(effort)))
        return next((effort for effort in efforts if self.takes(f"effort {effort}")), "")

    def kept(self, message: PromptMessage) -> Mapping[str, Any]:
        """Returns the data that came with this reply from this endpoint and must be sent back to the endpoint."""
        kept_fields: Mapping[str, Any] = message.extra.get(self.endpoint.name, {}) if self.takes("thoughts") else {}
        return kept_fields

    def picture_urls(self, message: PromptMessage) -> list[str]:
        return [f"data:{media};base64,{picture_data}" for media, picture_data in self.pictures(message)]

    def pictures(self, message: PromptMessage) -> Iterator[tuple[str, str]]:
        """Yields the media type and the encoded bytes of each picture of a message."""
        import base64

        for picture in message.pictures:
            if picture_bytes := self.request.pictures.get(picture.digest):
                yield picture.media, base64.b64encode(picture_bytes).decode()


Told = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that translates a wire's event into a chunk as the chat wire sends it, so that one reader suits all wires.
The chunk names the reason why a reply ended in Duckflow's own words (`Finish`)."""


class Wire:
    """The base class of wires. `wire_named` finds a wire by the name of its module, which also stands in `WIRES` of
    `llm/settings.py`."""

    listing = "/models"
    """The path under which the endpoint lists its models."""
    limits: tuple[str, ...] = ("max_tokens",)
    """Names that the field for the limit of a reply may have in this wire."""
    formats = FORMATS
    """The ways of asking for JSON that the wire has, the strictest first."""
    parts: Mapping[str, str] = MappingProxyType({})
    """Optional parts of a request, the least useful first, each with a pattern of the words by which a refusal names
    it."""

    def path(self, model: str) -> str:
        raise NotImplementedError

    def headers(self, key: Key) -> dict[str, str]:
        return {"authorization": f"Bearer {key.secret}"}

    def body(self, asked: WireRequest) -> dict[str, Any]:
        raise NotImplementedError

    def reading(self) -> Told:
        """Returns a new translator for the events of one streamed reply."""
        raise NotImplementedError

    def elsewhere(self, status: int, answer: str) -> str:
        """Returns the name of the wire that a refusal recommends instead; empty if it recommends none."""
        return ""


def wire_named(name: str) -> Wire:
    """Returns the built-in wire of this name, or the wire that a plugin adds under it."""
    if name in WIRES:
        return cast("Wire", import_module(f"duckflow.llm.wires.{name}").WIRE)
    plugin = next((candidate for candidate in plugins.wanted(plugins.WIRES) if candidate.name == name), None)
    if plugin is None:
        raise UsageError("llm.no_wire", wire=name, known=", ".join(WIRES))
    try:
        return cast("Wire", plugin.load())
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise UsageError("plugin.failed", name=name, package=plugin.package, reason=reason) from problem


def reasons(**words: str) -> dict[str, Finish]:
    """Makes a table that translates an endpoint's word for the end of a reply to Duckflow's own word (a Finish). The
    arguments list, for each Finish, the endpoint's words that mean it."""
    return {word: cast("Finish", finish) for finish, line in words.items() for word in line.split()}


def described(tool: ToolSpec, parameters: str) -> dict[str, Any]:
    """Writes a tool for a request. `parameters` is the wire's name for the field with the schema of the arguments."""
    return {"name": tool.name, "description": tool.description, parameters: tool.parameters}


def delta(**message: Any) -> dict[str, Any]:
    return {"choices": [{"delta": message}]}


def ended(reason: str, raw: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason, "raw": raw}], **more}


class ThoughtKeeper:
    """Holds the thoughts of a stream until the text or the call comes that the thoughts belong to."""

    def __init__(self) -> None:
        self.thoughts: list[dict[str, Any]] = []

    def given_to(self, owner: str) -> dict[str, Any]:
        thoughts, self.thoughts = [thought | {FOR: owner} for thought in self.thoughts], []
        return {DETAILS: thoughts} if thoughts else {}


def thoughts_for(owner: str, thoughts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the stored thoughts that are sent back before this call, or, if `owner` is empty, before the text."""
    own_thoughts = [thought for thought in thoughts if thought.get(FOR) == owner]
    return [{name: value for name, value in thought.items() if name != FOR} for thought in own_thoughts]


def smaller(wire: Wire, asked: WireRequest, status: int, answer: str, unclear: bool) -> Abilities | None:
    """Returns the parts of a request to try after a refusal, or None when no smaller request would help. Tools are
    dropped last. `answer` is in lower case; `unclear` means that the refusal fits no known reason."""
    if status not in REQUEST_REFUSED:
        return None
    abilities = asked.abilities
    if other_wire := wire.elsewhere(status, answer):
        return abilities._replace(wire=other_wire)
    for part, pattern in wire.parts.items():
        if re.search(pattern, answer) and (fewer_abilities := _without(part, wire, asked, answer)):
            return fewer_abilities
    if asked.limit and re.search(LIMIT_NAMED, answer):
        return abilities.with_other_limit(answer, wire.limits)
    simpler_format = abilities.with_simpler_format(wire.formats) if asked.request.schema is not None else None
    if simpler_format and (re.search(FORMAT_NAMED, answer) or (status != 500 and re.search(SCHEMA_NAMED, answer))):
        return simpler_format
    if asked.request.tools and re.search(TOOLS_NAMED, answer):
        return abilities._replace(tools="json")
    if not unclear:
        return None
    if sent_parts := [part for part in wire.parts if _changes(abilities.without(part), wire, asked)]:
        return abilities.without(*sent_parts)
    return simpler_format or (abilities._replace(tools="json") if asked.request.tools and not abilities.tools else None)


def _without(part: str, wire: Wire, asked: WireRequest, answer: str) -> Abilities | None:
    effort = asked.effort if part == "effort" else ""
    listed_efforts = [name for name in EFFORTS if name != effort and re.search(rf"\b{name}\b", answer)]
    fewer_abilities = asked.abilities.without(
        f"effort {effort}" if effort and len(listed_efforts) >= VALUES_LISTED else part
    )
    return fewer_abilities if _changes(fewer_abilities, wire, asked) else None


def _changes(lower: Abilities, wire: Wire, asked: WireRequest) -> bool:
    """Says whether the request would change if it were written with these abilities."""
    return wire.body(asked._replace(abilities=lower)) != wire.body(asked)

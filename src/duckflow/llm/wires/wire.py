"""A wire: how a request is written for an endpoint, and how its stream is read."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from duckflow.llm.abilities import FORMATS, Abilities
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import Facts
from duckflow.llm.keys import Key
from duckflow.llm.provider import Finish, Request
from duckflow.llm.settings import EFFORTS, LlmSettings
from duckflow.state.message import PromptMessage

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
    return cast("Wire", import_module(f"duckflow.llm.wires.{name}").WIRE)


def reasons(**words: str) -> dict[str, Finish]:
    """What each word of an endpoint for the end of a reply means; the words stand behind their meaning."""
    return {word: cast("Finish", finish) for finish, line in words.items() for word in line.split()}


def delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"delta": said}]}


def ended(reason: str, raw: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason, "raw": raw}], **more}


def thoughts_for(owner: str, thoughts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kept thoughts that go back before this call, or before the text."""
    mine = [thought for thought in thoughts if thought.get(FOR) == owner]
    return [{name: value for name, value in thought.items() if name != FOR} for thought in mine]

"""The protocol that every model implements, with one streaming method: requests, replies, thoughts and their cost."""

import json
import math
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from duckflow.llm.settings import Price
from duckflow.state.data import Phrase, as_cost, as_count, as_table, tables
from duckflow.state.message import PromptMessage, ToolCall, ToolSpec, Usage

Finish = Literal["stop", "length", "refusal", "filtered", "malformed", "unknown", "failed"]
"""Ways in which a reply can end: regularly; cut off by the token limit; refused by the model; cut off by a filter of
the endpoint; with a tool call in broken form; for an unknown reason; by a failure (such a reply does not count)."""


class Request(NamedTuple):
    """A request. `schema` asks for JSON of that shape; `tools` may be called. Without both, the reply is plain text."""

    messages: tuple[PromptMessage, ...]
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[ToolSpec, ...] = ()
    pictures: Mapping[str, bytes] = MappingProxyType({})
    """The bytes of the messages' pictures, by digest."""


class Delta(NamedTuple):
    """A piece of the reply's text."""

    text: str


class Thought(NamedTuple):
    """A piece of the model's thinking before it replies."""

    text: str


class CallDelta(NamedTuple):
    """A piece of a call's arguments. The first piece of a call names the tool."""

    text: str
    name: str = ""


class Retrying(NamedTuple):
    """The request is sent again after `seconds`. Chunks that came before no longer count."""

    why: Phrase
    seconds: float


class Remark(NamedTuple):
    """A remark about the model, which the user sees once."""

    what: Phrase


class Finished(NamedTuple):
    """The last chunk of a reply, with all of its tool calls."""

    reason: Finish
    usage: Usage
    calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    """Other data that came with the reply and must be sent back with it."""
    raw: str = ""
    """The reason why the reply ended, in the endpoint's own word."""


class Reply(NamedTuple):
    """A whole reply of a model."""

    text: str
    finish: Finish
    prompt_tokens: int = 0
    """The number of tokens of the request as the provider reported it; 0 if it did not."""
    calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    raw: str = ""
    """The reason why the reply ended, in the endpoint's own word."""

    @property
    def broke_off(self) -> bool:
        """Says whether the reply ended neither regularly nor at the token limit. No action of such a reply is carried
        out."""
        return self.finish not in ("stop", "length")


Chunk = Delta | Thought | CallDelta | Retrying | Remark | Finished


class Provider(Protocol):
    """A model that can be talked to.

    `stream` yields pieces of the reply and ends with exactly one Finished, or raises a ModelError. Closing the iterator
    (or cancelling the task) stops the call at once.
    """

    @property
    def model(self) -> str:
        """Name as shown to people, such as `openai:gpt-5-mini` or `local:qwen2.5-coder-1.5b`."""
        ...

    @property
    def window(self) -> int:
        """The number of tokens that fit into one request and its reply."""
        ...

    @property
    def takes_tools(self) -> bool:
        """Says whether requests may offer tools, as far as is known."""
        ...

    @property
    def takes_pictures(self) -> bool | None:
        """Says whether the model can see pictures; None when only a try can tell."""
        ...

    @property
    def least_price(self) -> float | None:
        """Dollars for a million prompt tokens that all come from the cache; None if the price is not known."""
        ...

    def forgo_tools(self) -> None:
        """Stops offering tools to this model, because it ignored them."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Chunk]: ...

    async def aclose(self) -> None: ...


class WithoutTools:
    """A base for providers whose models take neither tools nor pictures and are asked for JSON."""

    takes_tools = False
    takes_pictures: bool | None = False
    least_price: float | None = 0.0

    def forgo_tools(self) -> None:
        pass


CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4


def estimate(text: str) -> int:
    """Estimates the tokens of a text: four ASCII characters count as one token, and so does any other character."""
    ascii_length = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_length / CHARACTERS_PER_TOKEN) + len(text) - ascii_length


def estimate_request(request: Request) -> int:
    """Estimates the tokens of a request: its messages, their pictures, and the tools it offers."""
    tools = sum(estimate(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}") for tool in request.tools)
    picture_tokens = sum(picture.tokens for message in request.messages for picture in message.pictures)
    return tools + picture_tokens + sum(estimate(message.whole) + TOKENS_PER_MESSAGE for message in request.messages)


def measure(request: Request, reply: str, reported: dict[str, Any], price: Price) -> Usage:
    prompt = as_count(reported.get("prompt_tokens"))
    completion = as_count(reported.get("completion_tokens"))
    if not prompt and not completion:
        prompt = estimate_request(request)
        completion = estimate(reply)
    details = as_table(reported.get("prompt_tokens_details"))
    # DeepSeek uses its own name for cached tokens.
    cached_tokens = as_count(details.get("cached_tokens")) or as_count(reported.get("prompt_cache_hit_tokens"))
    cached_tokens, written_tokens = min(prompt, cached_tokens), as_count(details.get("cache_write_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached_tokens,
        cost_usd=as_cost(reported.get("cost")) or charge(price, prompt, completion, cached_tokens, written_tokens),
        calls=1,
    )


def charge(price: Price, prompt: int, completion: int, cached: int, written: int = 0) -> float:
    """Returns the cost in dollars. `prompt` includes the tokens read from the cache and those written into the
    cache."""
    written_price = price.input if price.written is None else price.written
    cached_price = price.input if price.cached is None else price.cached
    new_tokens = max(0, prompt - cached - written)
    return (
        new_tokens * price.input + cached * cached_price + written * written_price + completion * price.output
    ) / 1_000_000


OPEN, CLOSE = "<think>", "</think>"
LONGEST_LEAD = 1000
"""The most characters of space at the beginning of a reply that are held back until its first word comes."""


class Thoughts:
    """Separates a model's thoughts from the reply's text. The thoughts are between tags at the beginning of the
    reply."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        self.heard = ""
        """The thoughts that have come so far."""

    def pass_on(self, text: str) -> str:
        if self._over:
            return text
        self._held += text
        if not self._inside:
            start = self._held.lstrip()
            if not start.startswith(OPEN):
                may_open = OPEN.startswith(start) and len(self._held) < LONGEST_LEAD
                return "" if may_open else self._release(self._held)
            self._inside = True
            self._held = start.removeprefix(OPEN)
        thought, closing_tag, reply = self._held.partition(CLOSE)
        if closing_tag:
            self.heard += thought
            return self._release(reply.lstrip())
        self.heard += thought[: -len(CLOSE)]
        self._held = thought[-len(CLOSE) :]
        return ""

    def rest(self) -> str:
        """Returns the text that waited for a tag that never came. It is called when the reply has ended."""
        return "" if self._inside or self._over else self._release(self._held)

    def _release(self, text: str) -> str:
        self._over = True
        self._held = ""
        return text


THOUGHTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
PHASE = "phase"
"""The field that says whether a text of a reply is the answer or a remark on the way to it."""
GROWING = ("text", "summary", "data")


class ThoughtCollector:
    """Collects a model's thoughts under the names of their fields, because some endpoints want them back with the
    calls."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}

    def take(self, message: dict[str, Any]) -> str:
        """Returns the text that this piece adds. A text that comes under two names is returned once."""
        texts = {name: message[name] for name in THOUGHTS if isinstance(message.get(name), str) and message[name]}
        for name, text in texts.items():
            self.fields[name] = self.fields.get(name, "") + text
        if message.get(PHASE):
            self.fields[PHASE] = message[PHASE]
        for piece in tables(message.get(DETAILS)):
            self._detail(piece)
        return next(iter(texts.values()), "")

    def _detail(self, piece: dict[str, Any]) -> None:
        details: list[dict[str, Any]] = self.fields.setdefault(DETAILS, [])
        earlier_detail = next(
            (detail for detail in details if detail.get("index") == piece.get("index") is not None), None
        )
        if earlier_detail is None or earlier_detail.get("type") != piece.get("type"):
            details.append(dict(piece))
            return
        for name, value in piece.items():
            grows = name in GROWING and isinstance(value, str) and isinstance(earlier_detail.get(name), str)
            earlier_detail[name] = (
                earlier_detail[name] + value if grows else value if value is not None else earlier_detail.get(name)
            )

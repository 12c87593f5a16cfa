"""What every model looks like from inside: one streaming method."""

import json
import math
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from duckflow.llm.settings import Price
from duckflow.state.message import PromptMessage, ToolCall, ToolSpec, Usage
from duckflow.state.noun import as_cost, as_count, as_table
from duckflow.state.phrase import Phrase

Finish = Literal["stop", "length", "refusal", "filtered", "malformed", "unknown", "failed"]
"""How a reply ended: as it should; cut off by the token limit; refused by the model; cut off by a filter of the
endpoint; with a call that the model could not form; for a reason that nobody knows; by a failure (then it is no
reply)."""


class Request(NamedTuple):
    """What is sent. `schema` asks for JSON of that shape; `tools` may be called; without both the reply is text."""

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
    """A piece of what the model thinks before it replies."""

    text: str


class CallDelta(NamedTuple):
    """A piece of a call's arguments; the first one names the tool."""

    text: str
    name: str = ""


class Retrying(NamedTuple):
    """The call is tried again after `seconds`; whatever came so far does not count."""

    why: Phrase
    seconds: float


class Remark(NamedTuple):
    """Something about the model that the user is told once."""

    what: Phrase


class Finished(NamedTuple):
    """The last chunk, with all calls."""

    reason: Finish
    usage: Usage
    calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    """What else came with the reply and is to be sent back with it."""
    raw: str = ""
    """The reason as the endpoint called it."""


class Reply(NamedTuple):
    """A whole reply."""

    text: str
    finish: Finish
    prompt_tokens: int = 0
    calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    raw: str = ""
    """The reason of its end as the endpoint called it."""

    @property
    def broke_off(self) -> bool:
        """It has no end that a reply should have, and not for its length: nothing in it may be done."""
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
        """How many tokens fit into one request and its reply."""
        ...

    @property
    def takes_tools(self) -> bool:
        """Whether tools may be given, as far as is known."""
        ...

    @property
    def takes_pictures(self) -> bool | None:
        """Whether it can see; None when that is not known, and is found out by trying."""
        ...

    @property
    def least_price(self) -> float | None:
        """Dollars for a million tokens of a prompt, if it had them all in its cache; nothing where that is not
        known."""
        ...

    def forgo_tools(self) -> None:
        """Tools were given and not heeded: no more of them from now on."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Chunk]: ...

    async def aclose(self) -> None: ...


class WithoutTools:
    """A provider whose models are only asked for JSON, and see nothing."""

    takes_tools = False
    takes_pictures: bool | None = False
    least_price: float | None = 0.0

    def forgo_tools(self) -> None:
        pass


CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4


def estimate(text: str) -> int:
    """Four ASCII characters make a token, any other character is one."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return math.ceil(plain / CHARACTERS_PER_TOKEN) + len(text) - plain


def estimate_request(request: Request) -> int:
    """What a request takes: its messages, and the tools it offers."""
    tools = sum(estimate(f"{one.name}{one.description}{json.dumps(one.parameters)}") for one in request.tools)
    pictures = sum(picture.tokens for message in request.messages for picture in message.pictures)
    return tools + pictures + sum(estimate(message.whole) + TOKENS_PER_MESSAGE for message in request.messages)


def measure(request: Request, reply: str, reported: dict[str, Any], price: Price) -> Usage:
    prompt = as_count(reported.get("prompt_tokens"))
    completion = as_count(reported.get("completion_tokens"))
    if not prompt and not completion:
        prompt = estimate_request(request)
        completion = estimate(reply)
    details = as_table(reported.get("prompt_tokens_details"))
    # DeepSeek has a name of its own for it.
    cached = as_count(details.get("cached_tokens")) or as_count(reported.get("prompt_cache_hit_tokens"))
    cached, written = min(prompt, cached), as_count(details.get("cache_write_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost_usd=as_cost(reported.get("cost")) or charge(price, prompt, completion, cached, written),
        calls=1,
    )


def charge(price: Price, prompt: int, completion: int, cached: int, written: int = 0) -> float:
    """Dollars. `prompt` counts what was in the cache and what was written into it."""
    dear = price.input if price.written is None else price.written
    cheap = price.input if price.cached is None else price.cached
    fresh = max(0, prompt - cached - written)
    return (fresh * price.input + cached * cheap + written * dear + completion * price.output) / 1_000_000

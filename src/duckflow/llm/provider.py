"""What every model looks like from inside: one streaming method."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from duckflow.state.message import PromptMessage
from duckflow.state.phrase import Phrase
from duckflow.state.usage import Usage

__all__ = ["Chunk", "Delta", "Finished", "PromptMessage", "Provider", "Request", "Retrying"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. `schema` asks for JSON of that shape; without it the reply is plain text."""

    messages: tuple[PromptMessage, ...]
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The call is tried again after `seconds`; whatever came so far does not count."""

    why: Phrase
    seconds: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The last chunk. `length` means the reply was cut off by the token limit."""

    reason: Literal["stop", "length", "refusal"]
    usage: Usage


Chunk = Delta | Retrying | Finished


class Provider(Protocol):
    """A model that can be talked to.

    `stream` yields Deltas and ends with exactly one Finished, or raises a ModelError. Closing the iterator (or
    cancelling the task) stops the call at once.
    """

    @property
    def model(self) -> str:
        """Name as shown to people, such as `openai:gpt-5-mini` or `local:qwen2.5-coder-1.5b`."""
        ...

    @property
    def window(self) -> int:
        """How many tokens fit into one request and its reply."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Chunk]: ...

    async def aclose(self) -> None: ...

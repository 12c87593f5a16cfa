"""One call to the model: streamed, counted, and told to whoever watches."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Protocol

from duckflow.errors import BudgetSpent, ModelError
from duckflow.events.ports import Emit
from duckflow.events.types import StreamReset, TextStreamed, UsageReported, Waiting
from duckflow.llm.provider import Chunk, Delta, Finished, Provider, Request, Retrying
from duckflow.state.agent import AgentState
from duckflow.state.phrase import say


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    text: str
    finish: Literal["stop", "length", "refusal"]


class Shown(Protocol):
    """Picks from the stream what a person may see already."""

    def feed(self, delta: str) -> str: ...


class Caller:
    """The way to the model. It can be pointed to another model between calls."""

    def __init__(self, provider: Provider, emit: Emit, state: AgentState, max_budget_usd: float = 0.0) -> None:
        self.provider = provider
        self._emit = emit
        self._state = state
        self._max_budget_usd = max_budget_usd

    async def call(self, request: Request, shown: Callable[[], Shown], channel: Literal["say", "body"]) -> Reply:
        """The reply, or a ModelError; BudgetSpent before the call when the money is gone."""
        if self._max_budget_usd and self._state.usage.cost_usd >= self._max_budget_usd:
            raise BudgetSpent("budget.spent", limit=self._max_budget_usd)
        self._emit(Waiting(why=say("wait.model", model=self.provider.model)))
        pieces: list[str] = []
        live = shown()
        async with aclosing(_closable(self.provider, request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case Delta():
                        pieces.append(chunk.text)
                        if text := live.feed(chunk.text):
                            self._emit(TextStreamed(text=text, channel=channel))
                    case Retrying():
                        pieces.clear()
                        live = shown()
                        self._emit(StreamReset())
                        self._emit(Waiting(why=chunk.why))
                    case Finished():
                        self._emit(UsageReported(model=self.provider.model, usage=chunk.usage))
                        return Reply("".join(pieces), chunk.reason)
        raise ModelError("model.no_end", model=self.provider.model)


async def _closable(provider: Provider, request: Request) -> AsyncGenerator[Chunk, None]:
    """Closing this closes the connection, whatever kind of iterator the provider gave."""
    stream = provider.stream(request)
    try:
        async for chunk in stream:
            yield chunk
    finally:
        if close := getattr(stream, "aclose", None):
            await close()

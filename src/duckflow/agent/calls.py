"""One call to the model: streamed, counted, and told to whoever watches."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Protocol

from duckflow.agent.session import Session
from duckflow.errors import BudgetSpent, DuckflowError, ModelError
from duckflow.events.types import ModelChosen, StreamReset, TextStreamed, UsageReported, Waiting
from duckflow.llm.provider import Chunk, Delta, Finished, Provider, Request, Retrying
from duckflow.state.phrase import Phrase, say


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    text: str
    finish: Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Connected:
    """A model that is there, and why it was chosen."""

    provider: Provider
    why: Phrase


Connect = Callable[[], Awaitable[Connected]]


class Shown(Protocol):
    """Picks from the stream what a person may see already."""

    def feed(self, delta: str) -> str: ...

    def end(self) -> str:
        """What was held back and may be seen after all."""
        ...


class Caller:
    """The way to the model, connected when it is first needed: the prompt does not wait for it."""

    def __init__(self, session: Session, connect: Connect, max_budget_usd: float = 0.0) -> None:
        self._session = session
        self._connect = connect
        self._max_budget_usd = max_budget_usd
        self._connecting: asyncio.Task[Connected] | None = None
        self._left: list[asyncio.Task[Connected]] = []

    async def ready(self) -> Provider:
        """The provider. Whoever asks while it is being connected waits for the same one; a failure is tried again."""
        if self._connecting is None or _failed(self._connecting):
            self._connecting = asyncio.create_task(self._connected())
        return (await asyncio.shield(self._connecting)).provider

    async def _connected(self) -> Connected:
        self._session.emit(Waiting(why=say("wait.connect")))
        return await self._announced(await self._connect())

    async def _announced(self, connected: Connected) -> Connected:
        self._session.emit(ModelChosen(model=connected.provider.model, why=connected.why))
        return connected

    def switch(self, connect: Connect) -> None:
        """From the next call on, another model."""
        if self._connecting:
            self._left.append(self._connecting)
        self._connect, self._connecting = connect, None

    async def change(self, connected: Connected) -> None:
        """From the next call on, this one, which is there already."""

        async def same() -> Connected:
            return connected

        self.switch(same)
        self._connecting = asyncio.create_task(self._announced(connected))
        await self._connecting

    async def close_left(self) -> None:
        """Let go of the models that were switched away from."""
        left, self._left = self._left, []
        for connecting in left:
            await _leave(connecting)

    async def aclose(self) -> None:
        """Leave every model, also one that is still being connected."""
        if self._connecting:
            self._left.append(self._connecting)
        await self.close_left()

    async def call(self, request: Request, shown: Callable[[], Shown], channel: Literal["say", "body"]) -> Reply:
        """The reply, or a ModelError; BudgetSpent before the call when the money is gone."""
        if self._max_budget_usd and self._session.state.usage.cost_usd >= self._max_budget_usd:
            raise BudgetSpent("budget.spent", limit=self._max_budget_usd)
        provider, emit = await self.ready(), self._session.emit
        emit(Waiting(why=say("wait.model", model=provider.model)))
        pieces: list[str] = []
        live = shown()
        async with aclosing(closable(provider, request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case Delta():
                        pieces.append(chunk.text)
                        if text := live.feed(chunk.text):
                            emit(TextStreamed(text=text, channel=channel))
                    case Retrying():
                        pieces.clear()
                        live = shown()
                        emit(StreamReset())
                        emit(Waiting(why=chunk.why))
                    case Finished():
                        if text := live.end():
                            emit(TextStreamed(text=text, channel=channel))
                        emit(UsageReported(model=provider.model, usage=chunk.usage))
                        return Reply("".join(pieces), chunk.reason)
        raise ModelError("model.no_end", model=provider.model)


async def _leave(connecting: asyncio.Task[Connected]) -> None:
    if not connecting.done():
        connecting.cancel()
    with contextlib.suppress(asyncio.CancelledError, DuckflowError):
        await (await connecting).provider.aclose()


def _failed(task: asyncio.Task[Connected]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def closable(provider: Provider, request: Request) -> AsyncGenerator[Chunk, None]:
    """Closing this closes the connection, whatever kind of iterator the provider gave."""
    stream = provider.stream(request)
    try:
        async for chunk in stream:
            yield chunk
    finally:
        if close := getattr(stream, "aclose", None):
            await close()

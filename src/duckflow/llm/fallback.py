"""A provider that uses another model while the first one cannot be reached, and later tries the first one again."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import cast

from duckflow.errors import DuckflowError, ModelError, ProviderUnreachable, ToolsRefused
from duckflow.llm.provider import Chunk, Provider, Remark, Request, Retrying
from duckflow.state.data import say

PASSING = ("model.busy", "model.busy_until", "model.no_credit")
"""Refusals that concern the endpoint and not the request, so that another model may still answer."""
PATIENCE_SECONDS = 10.0
"""Seconds to wait for a busy endpoint if another endpoint could answer."""
AWAY_SECONDS = 300.0
"""Seconds after which the first model is asked again."""


class WithFallback:
    """A provider that uses the first of its models that answers. The further models are connected only when they are
    needed."""

    def __init__(
        self,
        first: Provider,
        names: Sequence[str],
        find: Callable[[str], Awaitable[Provider]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models = [first]
        self._names = list(names)
        self._find = find
        self._now = now
        self._at = 0
        self._away_until = 0.0

    @property
    def _active(self) -> Provider:
        return self._models[self._at]

    @property
    def model(self) -> str:
        return self._active.model

    @property
    def window(self) -> int:
        return self._active.window

    @property
    def takes_tools(self) -> bool:
        return self._active.takes_tools

    @property
    def takes_pictures(self) -> bool | None:
        return self._active.takes_pictures

    @property
    def least_price(self) -> float | None:
        return self._active.least_price

    def forgo_tools(self) -> None:
        self._active.forgo_tools()

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if self._at and self._now() >= self._away_until:
            self._at = 0
            yield Remark(say("model.fallback_over", model=self.model))
        while True:
            try:
                chunks = cast("AsyncGenerator[Chunk, None]", self._active.stream(request))
                async with aclosing(chunks):
                    async for chunk in chunks:
                        yield chunk
                return
            except ModelError as problem:
                is_temporary = isinstance(problem, ProviderUnreachable) or problem.key in PASSING
                model_before = self.model
                if not is_temporary or not await self._turned():
                    raise
            yield Retrying(say("model.retry.fallback", model=model_before, other=self.model), 0.0)
            yield Remark(say("model.fallback", model=model_before, other=self.model))
            if request.tools and not self.takes_tools:
                # The request was written for a model with tools, so the caller has to write it anew.
                raise ToolsRefused("model.tools_refused", model=self.model)

    async def _turned(self) -> bool:
        """Switches to the next model. Returns False if there is none."""
        while self._at + 1 == len(self._models) and self._names:
            try:
                self._models.append(await self._find(self._names.pop(0)))
            except DuckflowError:
                continue
        if self._at + 1 == len(self._models):
            self._at = 0
            return False
        self._at += 1
        self._away_until = self._now() + AWAY_SECONDS
        return True

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

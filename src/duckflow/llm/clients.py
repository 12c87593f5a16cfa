"""The HTTP client of a model, opened when it is first needed and replaced when a request was cut off on it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx


@dataclass(slots=True)
class _Lent:
    client: httpx.AsyncClient
    users: int = 0
    spoilt: bool = False


class Clients:
    """One client, shared by whoever sends at the same time.

    A request that is cancelled before its answer begins can leave a connection behind that the client neither uses
    again nor closes; a hundred of them, and it waits for a free one for ever. So such a client is let go, and closed
    when nobody uses it any more.
    """

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._current: _Lent | None = None

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[httpx.AsyncClient]:
        lent = self._current = self._current or _Lent(self._make())
        lent.users += 1
        try:
            yield lent.client
        finally:
            lent.users -= 1
            if lent.spoilt and not lent.users:
                await lent.client.aclose()

    def spoil(self, client: httpx.AsyncClient) -> None:
        """A request was cut off on this one before anything came back."""
        if self._current and self._current.client is client:
            self._current.spoilt, self._current = True, None

    async def aclose(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            await current.client.aclose()

"""HTTP clients: how they are made, shared and closed."""

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import httpx

from duckflow import __version__
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.failures import Failures
from duckflow.llm.keys import Key
from duckflow.llm.retry import Setback
from duckflow.llm.wires.wire import wire_named

KEEP_ALIVE_SECONDS = 30.0


def open_client(endpoint: Endpoint, key: Key | None, connect_seconds: float) -> httpx.AsyncClient:
    headers = {"user-agent": f"duckflow/{__version__}", "accept-encoding": "identity"}
    if key:
        headers |= wire_named(endpoint.wire).headers(key)
    return httpx.AsyncClient(
        headers=headers,
        # Loading the certificates takes 30 ms, and plain http has no use for them. Redirects are not followed, so
        # that a client without them never speaks to anything but http.
        verify=endpoint.base_url.startswith("https:"),
        trust_env=not endpoint.is_loopback,
        timeout=httpx.Timeout(None, connect=connect_seconds),
        limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
    )


def setback_of(error: Exception, endpoint: Endpoint, failures: Failures, connect_seconds: float) -> Setback:
    """What a failed exchange means."""
    match error:
        case httpx.ConnectTimeout():
            return failures.timed_out(connect_seconds)
        case httpx.ConnectError():
            return not_connected(error, endpoint, failures)
        case httpx.ProxyError():
            return failures.no_connection("model.proxy_failed", str(error))
        case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
            return failures.no_connection("model.bad_request_address", str(error), again=False)
        case _:
            return failures.broken()


def not_connected(error: Exception, endpoint: Endpoint, failures: Failures) -> Setback:
    """Why there was no connection, by whatever led to it."""
    causes = _causes(error)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return failures.no_connection("model.certificate_refused", str(error), again=False)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        # Nobody starts a server or a proxy while we pause: whoever waits is told at once.
        if endpoint.is_loopback:
            return failures.no_connection("model.nothing_listens", again=False)
        if urlsplit(endpoint.base_url).scheme in getproxies_environment():
            return failures.no_connection("model.proxy_failed", str(error), again=False)
    return failures.no_connection("model.no_connection", str(error))


def _causes(error: BaseException) -> list[BaseException]:
    """An exception with everything that led to it; anyio groups the failures of several addresses."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        cause = waiting.pop()
        if cause in found:
            continue
        found.append(cause)
        waiting += [nearby for nearby in (cause.__cause__, cause.__context__) if nearby is not None]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", cause).exceptions
    return found


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

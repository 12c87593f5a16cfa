"""Serves the page until it is told to stop."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Generator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from duckflow.i18n.words import Words
from duckflow.web.access import Access, ServedAt
from duckflow.web.app import make_app
from duckflow.web.desk import PageDesk
from duckflow.web.ports import Fleets, Models, Shelf
from duckflow.web.visitors import Visitors
from duckflow.web.watched import Watching

BACKLOG = 128
LAST_SECONDS, SILENT_SECONDS = 1, 10.0
MOST_CONNECTIONS, MOST_SILENT = 400, 100
OUTSIDE = ("192.0.2.1", 9)
"""An address that nobody has; nothing is sent there."""


class PatientProtocol(H11Protocol):
    """Ends a connection on which nothing is asked for long, and the oldest of those that are too many: whoever has no
    cookie could keep all of them otherwise."""

    begun = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.begun = self.loop.time()
        protocols = [each for each in self.connections if isinstance(each, PatientProtocol)]
        silent = [each for each in protocols if each.is_silent()]
        if len(silent) > MOST_SILENT:
            min(silent, key=lambda connection: connection.begun).transport.abort()
        self._later(None)

    def is_silent(self) -> bool:
        return not self.cycle or self.cycle.response_complete

    def _later(self, seen: object) -> None:
        self.loop.call_later(SILENT_SECONDS, self._look, seen)

    def _look(self, seen: object) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is seen and self.is_silent():
            self.transport.close()
        else:
            self._later(self.cycle)


class PageServer(uvicorn.Server):
    """Leaves signals to whoever started it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(
    listening: socket.socket,
    shelf: Shelf,
    visitors: Visitors,
    words: Words,
    fleet: Fleets | None = None,
    as_browser: bool = False,
    models: Models | None = None,
) -> None:
    """Serves until it is cancelled. `as_browser`: each browser is spoken to in its own language."""
    watching = Watching(shelf)
    place = place_of(listening)
    desk = PageDesk(shelf, watching, words, fleet, as_browser, models, place.is_loopback)
    app = Access(make_app(desk), place, visitors, words)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        http=PatientProtocol,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
    server = PageServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    finally:
        # Streams end first: nobody waits for them then.
        await watching.aclose()
        server.should_exit = True
        await serving


def place_of(listening: socket.socket) -> ServedAt:
    host, port = listening.getsockname()[:2]
    return ServedAt(host, port)


def reached_at(place: ServedAt) -> ServedAt:
    """Where others on the network find it, when it is served at all addresses of the machine."""
    if not ipaddress.ip_address(place.host).is_unspecified:
        return place
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(OUTSIDE)
            return place._replace(host=asking.getsockname()[0])
        except OSError:
            return place._replace(host="127.0.0.1")


def listen(host: str, port: int, tries: int = 1) -> socket.socket:
    """At that port or one of the next ones; OSError when none is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, port + tries):
        # Named as TCP, so that small answers are sent at once: else each would wait 40 ms for the one before.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(BACKLOG)
            return made
        except OSError:
            made.close()
            if number == port + tries - 1:
                raise
    raise OSError

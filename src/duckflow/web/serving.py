"""The web server for the page: its addresses, its limits on connections, and the files and requests that it serves."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from duckflow.i18n.words import Words
from duckflow.web import doing, fleet, listing, session_requests
from duckflow.web.access import Access, ServedAt
from duckflow.web.listing import followed
from duckflow.web.ports import Fleets, Models, Shelf
from duckflow.web.services import Handler, PageServices, handled
from duckflow.web.visitors import Visitors
from duckflow.web.watched import Watching

PAGE = Path(__file__).parent / "page"
LEAST_PACKED = 2000
ONE = "/api/sessions/{session}"
READING: dict[str, Handler] = {
    "/api/me": session_requests.me,
    "/api/sessions": followed(listing.sessions, listing.mark),
    "/api/search": listing.search,
    "/api/folders": listing.folders,
    "/api/models": doing.models,
    "/api/endpoints": doing.endpoints,
    "/api/fleet": followed(fleet.fleets, fleet.mark),
    "/api/fleet/diff": fleet.diff,
    ONE: session_requests.snapshot,
    f"{ONE}/events": session_requests.events,
    f"{ONE}/record": session_requests.record,
    f"{ONE}/files": session_requests.files,
    f"{ONE}/changes": session_requests.changes,
    f"{ONE}/hunks": doing.hunks,
    f"{ONE}/audit": session_requests.audit,
    f"{ONE}/context": session_requests.context,
    f"{ONE}/chart": session_requests.chart,
    f"{ONE}/export": listing.export,
    f"{ONE}/pictures/{{digest}}": session_requests.picture,
}
DOING: dict[str, Handler] = {
    "/api/sessions": doing.begin,
    "/api/endpoints": doing.add,
    "/api/models/check": doing.check,
    "/api/fleet/start": fleet.start,
    "/api/fleet/answer": fleet.answer,
    "/api/fleet/change": fleet.change,
    f"{ONE}/rename": listing.rename,
    f"{ONE}/fork": listing.fork,
    f"{ONE}/archive": listing.archive,
    f"{ONE}/remove": listing.remove,
    f"{ONE}/say": doing.say,
    f"{ONE}/answer": doing.answer,
    f"{ONE}/interrupt": doing.interrupt,
    f"{ONE}/control": doing.control,
    f"{ONE}/agent": doing.agent,
    f"{ONE}/review": doing.review,
    f"{ONE}/plan": doing.plan,
    f"{ONE}/mode": doing.mode,
    f"{ONE}/undo": doing.undo,
}


def make_app(services: PageServices) -> Starlette:
    async def index(request: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    async def nothing(request: Request, problem: Exception) -> Response:
        return JSONResponse({"error": services.words("serve.nothing")}, 404)

    async def not_so(request: Request, problem: Exception) -> Response:
        return JSONResponse({"error": services.words("serve.not_so")}, 405)

    routes: list[Any] = [Route("/", index)]
    routes += [Route(path, handled(handler, services)) for path, handler in READING.items()]
    routes += [Route(path, handled(handler, services), methods=["POST"]) for path, handler in DOING.items()]
    # Streams are not compressed.
    gzip_middleware = Middleware(GZipMiddleware, minimum_size=LEAST_PACKED, compresslevel=5)
    app = Starlette(routes=routes, middleware=[gzip_middleware], exception_handlers={404: nothing, 405: not_so})
    app.mount("/page", StaticFiles(directory=PAGE))
    return app


BACKLOG = 128
LAST_SECONDS, SILENT_SECONDS = 1, 10.0
MOST_CONNECTIONS, MOST_SILENT = 400, 100
OUTSIDE = ("192.0.2.1", 9)
"""An address that nobody has. It only serves to find out our own address: nothing is sent."""


class PatientProtocol(H11Protocol):
    """Closes a connection that stays silent for long, and the oldest silent connection if there are too many. Otherwise
    somebody without a cookie could occupy all connections."""

    begun = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.begun = self.loop.time()
        protocols = [protocol for protocol in self.connections if isinstance(protocol, PatientProtocol)]
        silent_protocols = [protocol for protocol in protocols if protocol.is_silent()]
        if len(silent_protocols) > MOST_SILENT:
            min(silent_protocols, key=lambda connection: connection.begun).transport.abort()
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
    """A web server that leaves signals to the program that started it."""

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
    """Serves the page until cancelled. With `as_browser`, each browser gets answers in its own language."""
    watching = Watching(shelf)
    served_at = place_of(listening)
    services = PageServices(shelf, watching, words, fleet, as_browser, models, served_at.is_loopback)
    app = Access(make_app(services), served_at, visitors, words, as_browser)
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
    serve_task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serve_task)
    finally:
        # The streams end first, so that the server does not wait for them.
        await watching.aclose()
        server.should_exit = True
        await serve_task


def place_of(listening: socket.socket) -> ServedAt:
    host, port = listening.getsockname()[:2]
    return ServedAt(host, port)


def reached_at(place: ServedAt) -> ServedAt:
    """Returns the address for others on the network, if the page is served at all addresses of the machine."""
    if not ipaddress.ip_address(place.host).is_unspecified:
        return place
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
        try:
            probe_socket.connect(OUTSIDE)
            return place._replace(host=probe_socket.getsockname()[0])
        except OSError:
            return place._replace(host="127.0.0.1")


def listen(host: str, port: int, tries: int = 1) -> socket.socket:
    """Listens at this port or at one of the next ports; raises OSError when none is free."""
    address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, port + tries):
        # IPPROTO_TCP has small answers sent at once; otherwise each would wait 40 ms for the answer before it.
        listener = socket.socket(address_family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(BACKLOG)
            return listener
        except OSError:
            listener.close()
            if number == port + tries - 1:
                raise
    raise OSError

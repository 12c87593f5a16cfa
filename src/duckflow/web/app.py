"""The application behind the lock: its routes."""

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from duckflow.web import doing, fleet, listing, modelling, reading, reviewing, shelving
from duckflow.web.desk import Handler, PageDesk, handled
from duckflow.web.following import followed

PAGE = Path(__file__).parent / "page"
LEAST_PACKED = 2000
ONE = "/api/sessions/{session}"
READING: dict[str, Handler] = {
    "/api/me": reading.me,
    "/api/sessions": followed(listing.sessions, listing.mark),
    "/api/search": shelving.search,
    "/api/folders": shelving.folders,
    "/api/models": modelling.models,
    "/api/endpoints": modelling.endpoints,
    "/api/fleet": followed(fleet.fleets, fleet.mark),
    "/api/fleet/diff": fleet.diff,
    ONE: reading.snapshot,
    f"{ONE}/events": reading.events,
    f"{ONE}/record": reading.record,
    f"{ONE}/files": reading.files,
    f"{ONE}/changes": reading.changes,
    f"{ONE}/hunks": reviewing.hunks,
    f"{ONE}/audit": reading.audit,
    f"{ONE}/context": reading.context,
    f"{ONE}/chart": reading.chart,
    f"{ONE}/export": shelving.export,
    f"{ONE}/pictures/{{digest}}": reading.picture,
}
DOING: dict[str, Handler] = {
    "/api/sessions": doing.begin,
    "/api/endpoints": modelling.add,
    "/api/models/check": modelling.check,
    "/api/fleet/start": fleet.start,
    "/api/fleet/answer": fleet.answer,
    "/api/fleet/change": fleet.change,
    f"{ONE}/rename": shelving.rename,
    f"{ONE}/fork": shelving.fork,
    f"{ONE}/archive": shelving.archive,
    f"{ONE}/remove": shelving.remove,
    f"{ONE}/say": doing.say,
    f"{ONE}/answer": doing.answer,
    f"{ONE}/interrupt": doing.interrupt,
    f"{ONE}/control": doing.control,
    f"{ONE}/agent": doing.agent,
    f"{ONE}/review": reviewing.review,
    f"{ONE}/plan": doing.plan,
    f"{ONE}/mode": doing.mode,
    f"{ONE}/undo": doing.undo,
}


def make_app(desk: PageDesk) -> Starlette:
    async def index(request: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    async def nothing(request: Request, problem: Exception) -> Response:
        return JSONResponse({"error": desk.words("serve.nothing")}, 404)

    async def not_so(request: Request, problem: Exception) -> Response:
        return JSONResponse({"error": desk.words("serve.not_so")}, 405)

    routes: list[Any] = [Route("/", index)]
    routes += [Route(path, handled(handler, desk)) for path, handler in READING.items()]
    routes += [Route(path, handled(handler, desk), methods=["POST"]) for path, handler in DOING.items()]
    # Streams are left as they are.
    packed = Middleware(GZipMiddleware, minimum_size=LEAST_PACKED, compresslevel=5)
    app = Starlette(routes=routes, middleware=[packed], exception_handlers={404: nothing, 405: not_so})
    app.mount("/page", StaticFiles(directory=PAGE))
    return app

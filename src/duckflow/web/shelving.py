"""Whole sessions: named, branched, put away, deleted or saved to a file; and where new ones can begin."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from duckflow.errors import UsageError
from duckflow.web.desk import PageDesk, read_body
from duckflow.web.telling import worded

FORMATS = {"html": "text/html", "md": "text/markdown"}
LONGEST_TITLE, LONGEST_QUESTION = 100, 400


async def rename(desk: PageDesk, request: Request) -> Any:
    title = (await read_body(request)).text("title").strip()[:LONGEST_TITLE]
    if not title:
        raise UsageError("serve.bad", what=title)
    await asyncio.to_thread(desk.shelf.rename, _session(request), title)
    return {"title": title}


async def fork(desk: PageDesk, request: Request) -> Any:
    """Branches a session and goes on with the branch."""
    await read_body(request)
    session_id = await asyncio.to_thread(desk.shelf.fork, _session(request))
    await desk.shelf.go_on(session_id)
    return {"id": session_id}


async def archive(desk: PageDesk, request: Request) -> Any:
    away = (await read_body(request)).flag("away")
    await asyncio.to_thread(desk.shelf.archive, _session(request), away)
    return {}


async def remove(desk: PageDesk, request: Request) -> Any:
    await read_body(request)
    await asyncio.to_thread(desk.shelf.remove, _session(request))
    return {}


async def export(desk: PageDesk, request: Request) -> Response:
    """The session as a file to save. It is sent as a download: nothing in it may run as part of the page."""
    form, session_id = request.query_params.get("format", "html"), _session(request)
    if form not in FORMATS:
        raise UsageError("serve.bad", what=form)
    text = await asyncio.to_thread(desk.shelf.export, session_id, form, desk.words)
    headers = {"content-disposition": f'attachment; filename="duckflow-{session_id}.{form}"'}
    return Response(text, media_type=FORMATS[form], headers=headers)


async def search(desk: PageDesk, request: Request) -> Any:
    """Where in all sessions something was said."""
    question = request.query_params.get("q", "").strip()[:LONGEST_QUESTION]
    return worded(await asyncio.to_thread(desk.shelf.search, question, desk.words) if question else [], desk.words)


async def folders(desk: PageDesk, request: Request) -> Any:
    """The folders below one that is the user's home or lies in it, and those that were worked in last."""
    wanted = request.query_params.get("at", "")
    return worded(await asyncio.to_thread(desk.shelf.folders, wanted), desk.words)


def _session(request: Request) -> str:
    return str(request.path_params["session"])

"""The list of sessions: first those that wait for somebody, then those that run, then all others."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from duckflow.errors import DuckflowError, UsageError
from duckflow.events.ports import Conversation
from duckflow.events.views import SessionSummary
from duckflow.state.data import say
from duckflow.web.services import Handler, PageServices, read_body
from duckflow.web.stream import QUIET_SECONDS, changed_facts
from duckflow.web.telling import sent, worded
from duckflow.web.watched import AGAIN, QUIET, STREAM, WatchedSession

LOOK_SECONDS = 1.0
SHARE = 10
"""The pause after reading a list is this many times longer than the reading took."""
ANYWAY_SECONDS = 15.0
"""A list is read again after these seconds even if its mark is unchanged, because some of its facts are not in
files."""
Mark = Callable[[PageServices], object]


def followed(handler: Handler, mark: Mark) -> Handler:
    """Makes a handler that sends the facts of `handler` once as JSON, or as a stream to a page that accepts one. The
    facts are read again when the mark, a value made from their sources, changes."""

    async def handle(services: PageServices, request: Request) -> Any:
        facts = await handler(services, request)
        if STREAM not in request.headers.get("accept", ""):
            return facts
        return services.watching.streamed(_follow(facts, handler, mark, services, request))

    return handle


async def _follow(
    facts: dict[str, Any], handler: Handler, mark: Mark, services: PageServices, request: Request
) -> AsyncGenerator[bytes]:
    """Streams the facts until the server closes: first all of them, then those that have changed."""
    yield AGAIN + _told(facts)
    seen_mark, pause = await asyncio.to_thread(mark, services), LOOK_SECONDS
    last_read_at = last_told_at = time.monotonic()
    while not await services.watching.closes_within(pause):
        began_at, latest_mark = time.monotonic(), await asyncio.to_thread(mark, services)
        message = b""
        if latest_mark != seen_mark or began_at - last_read_at > ANYWAY_SECONDS:
            seen_mark, last_read_at, facts_before = latest_mark, began_at, facts
            with suppress(DuckflowError):
                facts = await handler(services, request)
            message = _told(changed_facts(facts_before, facts))
        if message or began_at - last_told_at > QUIET_SECONDS:
            last_told_at = began_at
            yield message or QUIET
        pause = max(LOOK_SECONDS, SHARE * (time.monotonic() - began_at))


def _told(facts: dict[str, Any]) -> bytes:
    """Encodes the facts as a message for the page, with the server's time, from which the page counts ages. Returns an
    empty message if there are no facts."""
    return sent({"number": 0, "facts": facts, "now": time.time()}) if facts else b""


FORMATS = {"html": "text/html", "md": "text/markdown"}
LONGEST_TITLE, LONGEST_QUESTION = 100, 400


async def rename(services: PageServices, request: Request) -> Any:
    title = (await read_body(request)).text("title").strip()[:LONGEST_TITLE]
    if not title:
        raise UsageError("serve.bad", what=title)
    if session := await _open(services, request):
        session.conversation.choices.rename(title)
    else:
        await asyncio.to_thread(services.shelf.rename, _session(request), title)
    return {"title": title}


async def _open(services: PageServices, request: Request) -> WatchedSession | None:
    """Returns the session if a process holds it (has it open), else None."""
    return await services.watched(request) if _session(request) in services.shelf.running() else None


async def fork(services: PageServices, request: Request) -> Any:
    await read_body(request)
    return {"id": await branch(services, request)}


async def branch(services: PageServices, request: Request) -> str:
    """Branches a session and continues with the branch. As in the terminal, a session in a turn is not branched."""
    if (session := await _open(services, request)) and session.conversation.in_turn:
        raise UsageError("resume.busy")
    session_id = await asyncio.to_thread(services.shelf.fork, _session(request))
    await services.shelf.go_on(session_id)
    return session_id


async def archive(services: PageServices, request: Request) -> Any:
    is_archived = (await read_body(request)).flag("away")
    await asyncio.to_thread(services.shelf.archive, _session(request), is_archived)
    return {}


async def remove(services: PageServices, request: Request) -> Any:
    await read_body(request)
    await asyncio.to_thread(services.shelf.remove, _session(request))
    return {}


async def export(services: PageServices, request: Request) -> Response:
    """Returns the session as a file to save. It is sent as a download, so that nothing in it runs as part of the
    page."""
    export_format, session_id = request.query_params.get("format", "html"), _session(request)
    if export_format not in FORMATS:
        raise UsageError("serve.bad", what=export_format)
    text = await asyncio.to_thread(services.shelf.export, session_id, export_format, services.words)
    headers = {"content-disposition": f'attachment; filename="duckflow-{session_id}.{export_format}"'}
    return Response(text, media_type=FORMATS[export_format], headers=headers)


async def search(services: PageServices, request: Request) -> Any:
    """Searches all sessions for a text."""
    question = request.query_params.get("q", "").strip()[:LONGEST_QUESTION]
    return worded(
        await asyncio.to_thread(services.shelf.search, question, services.words) if question else [], services.words
    )


async def folders(services: PageServices, request: Request) -> Any:
    """Returns the subfolders of a folder in the user's home, and the folders that were worked in last."""
    wanted_folder = request.query_params.get("at", "")
    return worded(await asyncio.to_thread(services.shelf.folders, wanted_folder), services.words)


def _session(request: Request) -> str:
    return str(request.path_params["session"])


MOST, LONGEST_ABOUT = 200, 120
ORDER = {"waiting": 0, "running": 1, "idle": 2, "old": 3}
JOIN_SECONDS = 3.0


def mark(services: PageServices) -> object:
    return services.shelf.mark()


async def sessions(services: PageServices, request: Request) -> Any:
    summaries = await asyncio.to_thread(services.shelf.all)
    running_ids = services.shelf.running()
    by_id = {summary.session_id: summary for summary in summaries[:MOST]}
    held_entries = await asyncio.gather(
        *(_held(services, session_id, by_id.get(session_id)) for session_id in running_ids)
    )
    seen_ids = {entry["id"] for entry in held_entries if entry}
    held_entries = [entry for entry in held_entries if entry and not services.shelf.is_of_fleet(entry["folder"])]
    session_entries = held_entries + [_old(summary) for key, summary in by_id.items() if key not in seen_ids]
    session_entries.sort(key=lambda entry: (ORDER[entry["state"]], -entry["updated"]))
    ask_count = len(await services.fleet.inbox()) + await services.fleet.to_pick() if services.fleet else 0
    return {"sessions": worded(session_entries, services.words), "fleet_asks": ask_count}


def _old(summary: SessionSummary) -> dict[str, Any]:
    return {
        "id": summary.session_id,
        "title": summary.title or summary.asked,
        "folder": summary.folder,
        "updated": summary.updated,
        "turns": summary.turns,
        "cost": summary.cost_usd,
        "here": summary.here,
        "archived": summary.archived,
        "vitals": None,
        "state": "old",
    }


async def _held(services: PageServices, session_id: str, known: SessionSummary | None) -> dict[str, Any] | None:
    """Returns the present state of a session that a process holds; None if the process does not answer in time."""
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            conversation = await _look(services, session_id)
    except TimeoutError:
        return None
    if conversation is None:
        return None
    state = conversation.state
    summary = SessionSummary(session_id, state.heading, state.title, state.folder, state.turn, 0, 0, False)
    session_entry = _old(known or summary._replace(updated=time.time()))
    is_working = conversation.busy or state.at_work
    waits_for = _waits_for(conversation)
    session_entry |= {
        "title": state.heading,
        "cost": state.usage.cost_usd,
        "turns": state.turn,
        "vitals": state.vitals.model_dump(),
        "state": "waiting" if waits_for else "running" if is_working else "idle",
    }
    return session_entry | waits_for


def _waits_for(talk: Conversation) -> dict[str, Any]:
    """Returns the question that the user has to answer, its subject, and the job that asks it. The draft of a plan
    counts as a question, and so does a question at the end of the model's turn."""
    for question in talk.questions:
        gate, title = question.gate, question.title.model_dump()
        subject = ", ".join([*gate.commands, *(impact.path for impact in gate.impacts)] if gate else [])
        return {"question": title, "about": subject[:LONGEST_ABOUT], "asker": question.job_name}
    plan = talk.state.plan
    draft = say("serve.plan_waits", plan=plan.name).model_dump() if plan and plan.status == "draft" else None
    asked_question = None if talk.in_turn else draft or talk.state.asked
    return {"question": asked_question} if asked_question else {}


async def _look(services: PageServices, session_id: str) -> Conversation | None:
    """Returns the conversation of a session. If no page shows it, leaves it immediately again, so that its process can
    end."""
    session = services.watching.held(session_id)
    if session and session.joined and not session.is_over:
        return session.joined.conversation
    joined_session = await services.shelf.join(session_id)
    if joined_session is None:
        return None
    await joined_session.close()
    return joined_session.conversation

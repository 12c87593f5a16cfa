"""The list of sessions: those that wait for somebody first, then those that run, then the others."""

import asyncio
import time
from typing import Any

from starlette.requests import Request

from duckflow.events.ports import Conversation
from duckflow.events.views import SessionSummary
from duckflow.state.phrase import say
from duckflow.web.desk import PageDesk
from duckflow.web.telling import worded

MOST, LONGEST_ABOUT = 200, 120
ORDER = {"waiting": 0, "running": 1, "idle": 2, "old": 3}
JOIN_SECONDS = 3.0


def mark(desk: PageDesk) -> object:
    return desk.shelf.mark()


async def sessions(desk: PageDesk, request: Request) -> Any:
    known = await asyncio.to_thread(desk.shelf.all)
    running = desk.shelf.running()
    by_id = {one.session_id: one for one in known[:MOST]}
    held = await asyncio.gather(*(_held(desk, session_id, by_id.get(session_id)) for session_id in running))
    seen = {one["id"] for one in held if one}
    held = [one for one in held if one and not desk.shelf.is_of_fleet(one["folder"])]
    listed = held + [_old(one) for key, one in by_id.items() if key not in seen]
    listed.sort(key=lambda one: (ORDER[one["state"]], -one["updated"]))
    asked = await desk.fleet.inbox() if desk.fleet else ()
    return {"sessions": worded(listed, desk.words), "fleet_asks": len(asked)}


def _old(one: SessionSummary) -> dict[str, Any]:
    return {
        "id": one.session_id,
        "title": one.title or one.asked,
        "folder": one.folder,
        "updated": one.updated,
        "turns": one.turns,
        "cost": one.cost_usd,
        "here": one.here,
        "archived": one.archived,
        "vitals": None,
        "state": "old",
    }


async def _held(desk: PageDesk, session_id: str, known: SessionSummary | None) -> dict[str, Any] | None:
    """How it stands there. One that does not answer is shown as what its journal says."""
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            talk = await _look(desk, session_id)
    except TimeoutError:
        return None
    if talk is None:
        return None
    state = talk.state
    named = SessionSummary(session_id, state.heading, state.title, state.folder, state.turn, 0, 0, False)
    entry = _old(known or named._replace(updated=time.time()))
    working = talk.busy or state.at_work
    waits_for = _waits_for(talk)
    entry |= {
        "title": state.heading,
        "cost": state.usage.cost_usd,
        "turns": state.turn,
        "vitals": state.vitals.model_dump(),
        "state": "waiting" if waits_for else "running" if working else "idle",
    }
    return entry | waits_for


def _waits_for(talk: Conversation) -> dict[str, Any]:
    """The question that the user has to answer, what it is about, and the job that asks it. A draft of a plan is one,
    and so is what the model asked at the end of its turn."""
    for question in talk.questions:
        gate, title = question.gate, question.title.model_dump()
        about = ", ".join([*gate.commands, *(impact.path for impact in gate.impacts)] if gate else [])
        return {"question": title, "about": about[:LONGEST_ABOUT], "asker": question.job_name}
    plan = talk.state.plan
    draft = say("serve.plan_waits", plan=plan.name).model_dump() if plan and plan.status == "draft" else None
    asked = None if talk.in_turn else draft or talk.state.asked
    return {"question": asked} if asked else {}


async def _look(desk: PageDesk, session_id: str) -> Conversation | None:
    """Sessions that nobody looks at are joined only for a moment: else their processes would wait for us."""
    watched = desk.watching.held(session_id)
    if watched and watched.joined and not watched.is_over:
        return watched.joined.conversation
    joined = await desk.shelf.join(session_id)
    if joined is None:
        return None
    await joined.close()
    return joined.conversation

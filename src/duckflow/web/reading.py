"""What the page shows of a session."""

import asyncio
import json
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from duckflow import DEFAULT_LANGUAGE, __version__
from duckflow.errors import UsageError
from duckflow.i18n.language import is_language
from duckflow.i18n.words import catalogue
from duckflow.state.picture import read_header
from duckflow.state.question import GateRequest
from duckflow.web.desk import PageDesk, number_of
from duckflow.web.telling import worded

MOST_RECORD = 2000
MOST_FILES = 50
WORDS = (
    "page.", "gate.", "duck.", "plan.", "job.", "vital.", "work.", "five.", "question.", "audit.", "pacemaker.told.",
    "severity.", "review.", "reply.", "fleet.state.", "fleet.row.", "fleet.doing.", "agent.status.",
)  # fmt: skip
"""What the page says itself; the rest is worded here."""
ASKED, PRUNED = "question_asked", "context_pruned"
CHART = ("vitals_changed", "usage_reported", ASKED, PRUNED)
CHANGES = ("turn_began", ASKED, "action_finished", "turn_undone")


async def me(desk: PageDesk, request: Request) -> Any:
    """What the page needs before anything else, and its words."""
    wanted = request.query_params.get("language", "")
    language = wanted if is_language(wanted) else desk.words.language
    texts = {**catalogue(DEFAULT_LANGUAGE), **catalogue(language)}
    words = {key: text for key, text in texts.items() if key.startswith(WORDS)}
    facts = {"version": __version__, "folder": str(Path.cwd()), "fleet": desk.fleet is not None}
    return {"language": language, **facts, "words": words}


async def snapshot(desk: PageDesk, request: Request) -> Any:
    return await (await desk.watched(request)).snapshot()


async def events(desk: PageDesk, request: Request) -> Response:
    """A browser that comes back says the last number it has heard; that counts more than where it once began."""
    desk.watching.require_room()
    watched = await desk.watched(request)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else number_of(request, "after")
    return StreamingResponse(watched.stream(after), media_type="text/event-stream")


async def record(desk: PageDesk, request: Request) -> Any:
    most = min(number_of(request, "most", MOST_RECORD), MOST_RECORD)
    return await (await desk.watched(request)).record(number_of(request, "before"), most)


async def files(desk: PageDesk, request: Request) -> Any:
    """For what is typed after `@`."""
    talk = (await desk.watched(request)).conversation
    return list(await asyncio.to_thread(talk.find_files, request.query_params.get("q", ""), MOST_FILES))


async def context(desk: PageDesk, request: Request) -> Any:
    """The parts of the next request, with their tokens."""
    watched = await desk.watched(request)
    parts: list[dict[str, Any]] = []
    for part in await watched.conversation.context():
        label = watched.words(f"context.{part.name}")
        parts.append({"name": part.name, "label": label, "tokens": part.tokens, "budget": part.budget})
    return parts


async def picture(desk: PageDesk, request: Request) -> Response:
    """One that came with a message."""
    watched = await desk.watched(request)
    data = await asyncio.to_thread(desk.shelf.picture, watched.session_id, str(request.path_params["digest"]))
    header = read_header(data)
    if header is None:
        raise UsageError("serve.nothing")
    return Response(data, media_type=header[0], headers={"cache-control": "private, max-age=86400, immutable"})


async def audit(desk: PageDesk, request: Request) -> Any:
    watched = await desk.watched(request)
    return worded(await asyncio.to_thread(desk.shelf.audit, watched.session_id), watched.words)


async def changes(desk: PageDesk, request: Request) -> Any:
    """The turns that changed files; with a turn, what it did to them: of an old session what was asked about."""
    watched, turn = await desk.watched(request), number_of(request, "turn")
    if turn and watched.writable:
        return {"turn": turn, "diff": worded(await watched.conversation.diff(turn), watched.words)}
    turns = await asyncio.to_thread(_changed, desk, watched.session_id)
    if turn:
        diffs = [diff for one in turns if one["turn"] == turn for diff in one["diffs"]]
        return {"turn": turn, "diff": worded("\n".join(diffs), watched.words)}
    return worded([one | {"diffs": len(one["diffs"])} for one in turns], watched.words)


def _changed(desk: PageDesk, session_id: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for number, kind, body in desk.shelf.of_kinds(session_id, CHANGES):
        event = json.loads(body)
        if kind == "turn_began":
            turns.append({"turn": event["turn"], "number": number, "at": event["at"], "undone": False})
            turns[-1] |= {"files": list[str](), "diffs": list[str]()}
        elif kind == "turn_undone":
            for one in turns:
                one["undone"] = event["back"] if one["turn"] == event["turn"] else one["undone"]
        elif turns and kind == ASKED and (gate := event["question"].get("gate")):
            turns[-1]["diffs"] += [GateRequest.model_validate(gate).file_diff] if gate.get("impacts") else []
        elif turns and kind == "action_finished":
            new = [path for path in event["result"].get("changed", ()) if path not in turns[-1]["files"]]
            turns[-1]["files"] += new
    return [one for one in turns if one["files"]]


async def chart(desk: PageDesk, request: Request) -> Any:
    """Vitals and tokens over time, with what stopped the work."""
    watched = await desk.watched(request)

    def read() -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = []
        now: dict[str, Any] = {"mood": 1.0, "focus": 1.0, "stamina": 1.0, "tokens": 0}
        for number, kind, body in desk.shelf.of_kinds(watched.session_id, CHART):
            event = json.loads(body)
            if kind == "vitals_changed":
                now |= event["vitals"]
            elif kind == "usage_reported":
                usage = event["usage"]
                now["tokens"] += usage["prompt_tokens"] + usage["completion_tokens"]
            asked = "gate" if event.get("question", {}).get("gate") else "duck"
            mark = {"mark": {ASKED: asked, PRUNED: "prune"}[kind]} if kind in (ASKED, PRUNED) else {}
            points.append({"at": event["at"], "number": number, **now, **mark})
        return points

    return await asyncio.to_thread(read)

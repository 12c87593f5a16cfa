"""The requests that read a session for the page."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from duckflow import DEFAULT_LANGUAGE, __version__
from duckflow.errors import UsageError
from duckflow.i18n.words import catalogue, is_language
from duckflow.state.picture import read_header
from duckflow.view.items import (
    ActionItem,
    Item,
    NoticeItem,
    QuestionItem,
    RequestItem,
    TurnItem,
    VitalsItem,
    notice_line,
)
from duckflow.view.view import View
from duckflow.web.services import Handler, PageServices, number_of
from duckflow.web.telling import worded
from duckflow.web.watched import SidePanel

MOST_RECORD = 2000
MOST_FILES = 50
WORDS = (
    "page.", "gate.", "duck.", "plan.", "job.", "vital.", "work.", "five.", "question.", "audit.", "fleet.state.",
    "fleet.row.", "fleet.doing.", "agent.status.",
)  # fmt: skip
"""The words that the page's scripts use themselves. All other texts are worded by the server."""
CHART = ("vitals_changed", "usage_reported", "question_asked", "context_pruned")
CHANGES = ("turn_began", "question_asked", "action_finished", "turn_undone", "proof_tried")
"""The kinds of events that the chart and the list of changes need. Only these are read, because a session may be
long."""


async def me(services: PageServices, request: Request) -> Any:
    """Returns the facts that the page needs before anything else, and its words."""
    wanted_code = request.query_params.get("language", "")
    language = wanted_code if is_language(wanted_code) else services.words.language
    texts = {**catalogue(DEFAULT_LANGUAGE), **catalogue(language)}
    words = {key: text for key, text in texts.items() if key.startswith(WORDS)}
    is_alone = await asyncio.to_thread(services.shelf.alone)
    facts = {"version": __version__, "folder": str(Path.cwd()), "fleet": services.fleet is not None, "alone": is_alone}
    return {"language": language, **facts, "words": words}


async def snapshot(services: PageServices, request: Request) -> Any:
    return await (await services.watched(request)).snapshot()


async def events(services: PageServices, request: Request) -> Response:
    """Streams the events of the session from number `after` on. A browser that reconnects sends the number of the last
    event that it got; this number then counts in place of `after`."""
    session = await services.watched(request)
    last_id = request.headers.get("last-event-id", "")
    after_number = (
        int(last_id) if last_id.isascii() and last_id.isdecimal() and len(last_id) < 16 else number_of(request, "after")
    )
    name = request.query_params.get("panel", "")
    side_panel = SidePanel(name, lambda: PANELS[name](services, request)) if name in PANELS else None
    return services.watching.streamed(session.stream(after_number, side_panel))


async def record(services: PageServices, request: Request) -> Any:
    most_items = min(number_of(request, "most", MOST_RECORD), MOST_RECORD)
    return await (await services.watched(request)).record(number_of(request, "before"), most_items)


async def files(services: PageServices, request: Request) -> Any:
    """Returns the files that match the text after `@` in the input."""
    conversation = (await services.watched(request)).conversation
    return list(await asyncio.to_thread(conversation.find_files, request.query_params.get("q", ""), MOST_FILES))


async def context(services: PageServices, request: Request) -> Any:
    """Returns the parts of the next request to the model, with their tokens."""
    session = await services.watched(request)
    parts: list[dict[str, Any]] = []
    for part in await session.conversation.context():
        part_label = session.words(f"context.{part.name}")
        parts.append({"name": part.name, "label": part_label, "tokens": part.tokens, "budget": part.budget})
    return parts


async def picture(services: PageServices, request: Request) -> Response:
    """Returns a picture that came with a message."""
    session = await services.watched(request)
    data = await asyncio.to_thread(services.shelf.picture, session.session_id, str(request.path_params["digest"]))
    picture_header = read_header(data)
    if picture_header is None:
        raise UsageError("serve.nothing")
    return Response(data, media_type=picture_header[0], headers={"cache-control": "private, max-age=86400, immutable"})


async def audit(services: PageServices, request: Request) -> Any:
    session = await services.watched(request)
    return worded(await asyncio.to_thread(services.shelf.audit, session.session_id), session.words)


async def changes(services: PageServices, request: Request) -> Any:
    """Returns the turns that changed files, or the diff of one turn. In a session that no process holds, only diffs
    that a question has shown are known."""
    session, turn = await services.watched(request), number_of(request, "turn")
    if turn and session.writable:
        return {"turn": turn, "diff": worded(await session.conversation.diff(turn), session.words)}
    turns = await asyncio.to_thread(_changed, services, session.session_id)
    if turn:
        diffs = [diff for turn_entry in turns if turn_entry["turn"] == turn for diff in turn_entry["diffs"]]
        return {"turn": turn, "diff": worded("\n".join(diffs), session.words)}
    return worded([turn_entry | {"diffs": len(turn_entry["diffs"])} for turn_entry in turns], session.words)


def _items(services: PageServices, session_id: str, kinds: Sequence[str]) -> Iterator[Item]:
    view = View()
    for number, event in services.shelf.of_kinds(session_id, kinds):
        yield from view.hear(number, event) if event else ()


def _changed(services: PageServices, session_id: str) -> list[dict[str, Any]]:
    turns: dict[int, dict[str, Any]] = {}
    for item in _items(services, session_id, CHANGES):
        match item:
            case TurnItem(turn=turn):
                turns[turn] = {"turn": turn, "number": item.number, "at": item.at, "taken": list[str]()}
                turns[turn] |= {"files": list[str](), "diffs": list[str](), "proof": None, "shown": ""}
            case NoticeItem(about="undone", turn=turn) if turn in turns:
                other_paths = [path for path in turns[turn]["taken"] if path not in item.paths]
                turns[turn]["taken"] = [*other_paths, *(item.paths if item.subject == "back" else ())]
            case NoticeItem(proof=proof, turn=turn) if turn in turns and proof:
                turns[turn] |= {"proof": proof.model_dump(mode="json"), "shown": notice_line(item, services.words)}
            case QuestionItem(question=question, turn=turn) if turn in turns and question and question.gate:
                turns[turn]["diffs"] += [question.gate.file_diff] if question.gate.impacts else []
            case ActionItem(result=result, turn=turn) if turn in turns and result:
                files = turns[turn]["files"]
                files += [path for path in result.changed if path not in files]
            case _:
                pass
    return [turn for turn in turns.values() if turn["files"]]


async def chart(services: PageServices, request: Request) -> Any:
    """Returns vitals (how well the work goes) and tokens over time, with the events that stopped the work."""
    session = await services.watched(request)

    def read() -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = []
        current_values: dict[str, Any] = {"mood": 1.0, "focus": 1.0, "stamina": 1.0, "tokens": 0}
        for item in _items(services, session.session_id, CHART):
            mark = ""
            match item:
                case VitalsItem(vitals=vitals):
                    current_values |= vitals.model_dump()
                case RequestItem(usage=usage):
                    current_values["tokens"] += usage.prompt_tokens + usage.completion_tokens
                case QuestionItem(question=question) if question:
                    mark = "gate" if question.gate else "duck"
                case NoticeItem(about="pruned"):
                    mark = "prune"
                case _:
                    continue
            points.append({"at": item.at, "number": item.number, **current_values} | ({"mark": mark} if mark else {}))
        return points

    return await asyncio.to_thread(read)


PANELS: dict[str, Handler] = {"changes": changes, "audit": audit, "context": context, "chart": chart}
"""The panels that a page may show beside the conversation."""

"""What a person does on the page."""

import asyncio
import unicodedata
from collections.abc import Awaitable
from typing import Any, cast

from starlette.requests import Request

from duckflow.errors import DuckflowError, UsageError
from duckflow.events.types import Noticed
from duckflow.events.views import Attachment, JobWish, Taken
from duckflow.i18n.words import Words
from duckflow.state.mode import OFFERED
from duckflow.state.phrase import said
from duckflow.web.desk import PageDesk, read_body
from duckflow.web.telling import worded
from duckflow.web.watched import WatchedSession

OWN_WAYS = frozenset({"quit", "exit", "resume", "fork", "new", "clear"})
"""Commands that lead out of a conversation: the page has its own ways."""
NO_YES = frozenset({"no", "edit"})
WISHES = ("pause", "resume", "cancel")
_RUNNING: set[asyncio.Future[Any]] = set()


async def begin(desk: PageDesk, request: Request) -> Any:
    """A new session, or an old one gone on with, in a process of its own."""
    given = await read_body(request)
    if session_id := given.text("session"):
        await desk.shelf.go_on(session_id)
    else:
        mode = given.text("mode")
        session_id = await desk.shelf.begin(given.text("folder"), read_mode(mode) if mode else "", given.text("model"))
    if message := given.text("message"):
        await (await desk.watching.get(session_id, desk.words.language)).conversation.take(message)
    return {"id": session_id}


async def say(desk: PageDesk, request: Request) -> Any:
    given, watched = await read_body(request), await desk.watched(request)
    talk, text = watched.conversation, given.text("text")
    if brought := [Attachment(one.text("name") or "file", data=one.text("data")) for one in given.list("files")]:
        go_on(watched, talk.say(text, brought))
        return {"taken": "message", "told": []}
    if given.flag("later"):
        talk.queue(text)
        return {"taken": "message", "told": []}
    if own := _own_way(text, watched.words):
        return own
    # Words that do not answer the only open question go past it, as in the terminal; a chosen question gets them all.
    answers = given.flag("aimed") or talk.reads_as(text) == "answer"
    return _taken(await talk.take(text, given.text("question_id") if answers else ""), watched.words)


async def answer(desk: PageDesk, request: Request) -> Any:
    given, watched = await read_body(request), await desk.watched(request)
    talk, question_id, choice = watched.conversation, given.text("question_id"), given.text("choice")
    asked = next((one for one in talk.questions if one.question_id == question_id), None)
    if asked and asked.gate and not is_enough(choice, asked.gate.risk):
        return {"taken": "unclear", "told": [watched.words("gate.word")], "question_id": question_id}
    return _taken(await talk.answer(question_id, given.text("text"), choice), watched.words)


async def interrupt(desk: PageDesk, request: Request) -> Any:
    """What was not heard yet comes back, to be said differently."""
    await read_body(request)
    return {"unheard": (await desk.watched(request)).conversation.interrupt()}


async def undo(desk: PageDesk, request: Request) -> Any:
    """Take the last turn back; it is asked about first, as everywhere."""
    given, watched = await read_body(request), await desk.watched(request)
    return _taken(await watched.conversation.take("/redo" if given.flag("again") else "/undo"), watched.words)


async def control(desk: PageDesk, request: Request) -> Any:
    given, watched = await read_body(request), await desk.watched(request)
    if given.text("wish") not in WISHES:
        raise UsageError("serve.bad", what=given.text("wish"))
    watched.conversation.work.control(cast(JobWish, given.text("wish")), given.text("job"))
    return {}


async def agent(desk: PageDesk, request: Request) -> Any:
    """Say something to one agent that runs, or stop it where nothing is said."""
    given, watched = await read_body(request), await desk.watched(request)
    name, text, work = given.text("agent"), given.text("text"), watched.conversation.work
    await (work.tell_agent(name, text) if text else work.stop_agent(name))
    return {}


async def plan(desk: PageDesk, request: Request) -> Any:
    """Carry the draft out."""
    await read_body(request)
    watched = await desk.watched(request)
    go_on(watched, watched.conversation.work.approve_plan())
    return {}


async def mode(desk: PageDesk, request: Request) -> Any:
    given, watched = await read_body(request), await desk.watched(request)
    wanted = read_mode(given.text("mode"))
    watched.conversation.choices.change_mode(wanted)
    return {"mode": wanted}


def is_enough(choice: str, risk: str) -> bool:
    """What is very risky takes a word that was written, here as in the terminal."""
    return not choice or choice in NO_YES or risk != "forbidden"


def read_mode(text: str) -> str:
    if text not in (*map(str, OFFERED),):
        raise UsageError("serve.bad", what=text)
    return text


def _own_way(line: str, words: Words) -> dict[str, Any] | None:
    first, *_ = unicodedata.normalize("NFKC", line).split() or [""]
    if first.startswith("/") and first[1:] in OWN_WAYS:
        return {"taken": "command", "told": [words("serve.own_way", name=first[1:])]}
    return None


def _taken(taken: Taken, words: Words) -> dict[str, Any]:
    told = [worded(phrase.model_dump(), words) for phrase in taken.told]
    return {"taken": taken.meaning, "told": told, "question_id": taken.question_id}


def go_on(watched: WatchedSession, work: Awaitable[Any]) -> None:
    """Nobody waits for it; what comes of it is told by events, and why it could not be done to all pages."""
    task = asyncio.ensure_future(work)
    _RUNNING.add(task)

    def done(task: asyncio.Future[Any]) -> None:
        _RUNNING.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, DuckflowError):
            watched.hear(0, Noticed(what=said(problem)))

    task.add_done_callback(done)

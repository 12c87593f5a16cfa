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
from duckflow.state.changes import Hunk
from duckflow.state.mode import OFFERED
from duckflow.state.phrase import said
from duckflow.web.desk import PageDesk, number_of, read_body
from duckflow.web.listing import branch
from duckflow.web.ports import Models
from duckflow.web.telling import worded
from duckflow.web.watched import WatchedSession

LONGEST_KEY, LONGEST_NAME = 4096, 400


async def models(desk: PageDesk, request: Request) -> Any:
    """The models that can be chosen, with windows and prices; none where no session can be begun."""
    return worded(await desk.models.models() if desk.models else [], desk.words)


async def endpoints(desk: PageDesk, request: Request) -> Any:
    return {"endpoints": worded(await _models(desk).endpoints(), desk.words), "keys_here": desk.keys_here}


async def add(desk: PageDesk, request: Request) -> Any:
    """Only on the machine itself: what is typed elsewhere travels there unencrypted."""
    given, known = await read_body(request), _models(desk)
    if not desk.keys_here:
        raise UsageError("serve.no_keys")
    name, address, model = (given.text(part).strip()[:LONGEST_NAME] for part in ("name", "address", "model"))
    secret = given.text("key")
    if len(secret) > LONGEST_KEY:
        raise UsageError("serve.bad", what=name)
    return worded(await known.add(name, address, secret, model, given.flag("default")), desk.words)


async def check(desk: PageDesk, request: Request) -> Any:
    given, known = await read_body(request), _models(desk)
    return worded(await known.check(given.text("model").strip()[:LONGEST_NAME]), desk.words)


def _models(desk: PageDesk) -> Models:
    if desk.models is None:
        raise UsageError("serve.alone")
    return desk.models


LONGEST_COMMENT = 20_000


async def hunks(desk: PageDesk, request: Request) -> Any:
    """The changes of a turn or a job that stand, with the numbers of their lines."""
    watched = await desk.watched(request)
    turn, job = number_of(request, "turn"), request.query_params.get("job", "")
    return worded([_shown(hunk) for hunk in await watched.conversation.review.hunks(turn, job)], watched.words)


def _shown(hunk: Hunk) -> dict[str, Any]:
    fields = hunk.model_dump(mode="json", exclude={"lines"})
    return fields | {"header": hunk.header, "lines": [line._asdict() for line in hunk.numbered()]}


async def review(desk: PageDesk, request: Request) -> Any:
    """What has come of it is told to all pages with the state."""
    given, watched = await read_body(request), await desk.watched(request)
    port, told = watched.conversation.review, None
    turn, job, path = given.count("turn"), given.text("job"), given.text("path")
    match given.text("what"):
        case "comment":
            side = "old" if given.text("side") == "old" else "new"
            await port.comment(turn, path, given.count("line"), given.text("text")[:LONGEST_COMMENT], side, job)
        case "drop":
            port.drop(given.text("comment"))
        case "mark":
            port.mark(given.text("hunk"), given.flag("reviewed"))
        case "take_back":
            told = await port.take_back(turn, path, given.text("hunk"), job)
        case "put_back":
            told = await port.put_back(given.text("hunk"))
        case "send":
            go_on(watched, port.send(given.text("text")))
        case what:
            raise UsageError("serve.bad", what=what)
    return {"told": worded(told.model_dump(), watched.words) if told else ""}


OWN_WAYS = {"quit": "#/", "exit": "#/", "resume": "#/", "new": "#/new", "clear": "#/new", "fork": "#/s/"}
"""Commands that lead out of a conversation, and where the page goes then."""
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
        mode, language = read_mode(mode) if mode else "", desk.words.language
        session_id = await desk.shelf.begin(given.text("folder"), mode, given.text("model"), language)
    if message := given.text("message"):
        await (await desk.watching.get(session_id, desk.words.language)).conversation.take(message, None)
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
    if name := _own_way(text):
        if desk.shelf.alone():
            raise UsageError("serve.alone")
        branched = await branch(desk, request) if name == "fork" else ""
        return {"taken": "command", "told": [], "goes": OWN_WAYS[name] + branched}
    # Words that do not answer the only open question go past it, as in the terminal; a chosen question gets them all.
    # Words that name no question were typed with none in sight, and answer none.
    answers, language = given.flag("aimed") or talk.reads_as(text) == "answer", watched.words.language
    return _taken(
        await talk.take(text, (given.text("question_id") if answers else "") or None, language), watched.words
    )


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
    command, words = "/redo" if given.flag("again") else "/undo", watched.words
    return _taken(await watched.conversation.take(command, None, words.language), words)


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


def _own_way(line: str) -> str:
    first, *_ = unicodedata.normalize("NFKC", line).split() or [""]
    return first[1:] if first.startswith("/") and first[1:] in OWN_WAYS else ""


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

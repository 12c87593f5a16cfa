"""The requests by which a person acts: about models, reviews, sessions, messages, answers and plans."""

import asyncio
import unicodedata
from collections.abc import Awaitable
from typing import Any, cast

from starlette.requests import Request

from duckflow.errors import DuckflowError, UsageError
from duckflow.events.ports import Conversation
from duckflow.events.types import Noticed
from duckflow.events.views import Attachment, JobWish, Taken
from duckflow.i18n.answers import read_answer
from duckflow.i18n.words import Words
from duckflow.state.changes import Hunk
from duckflow.state.data import said
from duckflow.state.mode import OFFERED
from duckflow.web.listing import branch
from duckflow.web.ports import Models
from duckflow.web.services import Given, PageServices, number_of, read_body
from duckflow.web.telling import worded
from duckflow.web.watched import WatchedSession

LONGEST_KEY, LONGEST_NAME = 4096, 400


async def models(services: PageServices, request: Request) -> Any:
    """Returns the models that can be chosen, with their context windows and prices; none where no session can be
    begun."""
    return worded(await services.models.models() if services.models else [], services.words)


async def endpoints(services: PageServices, request: Request) -> Any:
    known_models = _models(services)
    return {
        "endpoints": worded(await known_models.endpoints(), services.words),
        "keys_here": services.keys_here,
        "lacks_default": await known_models.lacks_default(),
    }


async def add(services: PageServices, request: Request) -> Any:
    """Adds an endpoint. Only a page on this machine may add one: from elsewhere the key would travel unencrypted."""
    body, known_models = await read_body(request), _models(services)
    if not services.keys_here:
        raise UsageError("serve.no_keys")
    name, address, model = (body.text(field).strip()[:LONGEST_NAME] for field in ("name", "address", "model"))
    api_key = body.text("key")
    if len(api_key) > LONGEST_KEY:
        raise UsageError("serve.bad", what=name)
    return worded(await known_models.add(name, address, api_key, model, body.flag("default")), services.words)


async def check(services: PageServices, request: Request) -> Any:
    body, known_models = await read_body(request), _models(services)
    return worded(await known_models.check(body.text("model").strip()[:LONGEST_NAME]), services.words)


def _models(services: PageServices) -> Models:
    if services.models is None:
        raise UsageError("serve.alone")
    return services.models


LONGEST_COMMENT = 20_000


async def hunks(services: PageServices, request: Request) -> Any:
    """Returns the changes of a turn or a job that have not been taken back, with the numbers of their lines."""
    session = await services.watched(request)
    turn, job = number_of(request, "turn"), request.query_params.get("job", "")
    return worded([_shown(hunk) for hunk in await session.conversation.review.hunks(turn, job)], session.words)


def _shown(hunk: Hunk) -> dict[str, Any]:
    fields = hunk.model_dump(mode="json", exclude={"lines"})
    return fields | {"header": hunk.header, "lines": [line._asdict() for line in hunk.numbered()]}


async def review(services: PageServices, request: Request) -> Any:
    """Carries out one act of a review, such as a comment. All pages get the result with the session's state."""
    body, session = await read_body(request), await services.watched(request)
    review_port, outcome = session.conversation.review, None
    turn, job, path = body.count("turn"), body.text("job"), body.text("path")
    match body.text("what"):
        case "comment":
            side = "old" if body.text("side") == "old" else "new"
            await review_port.comment(turn, path, body.count("line"), body.text("text")[:LONGEST_COMMENT], side, job)
        case "drop":
            review_port.drop(body.text("comment"))
        case "mark":
            review_port.mark(body.text("hunk"), body.flag("reviewed"))
        case "take_back":
            outcome = await review_port.take_back(turn, path, body.text("hunk"), job)
        case "put_back":
            outcome = await review_port.put_back(body.text("hunk"))
        case "send":
            go_on(session, review_port.send(body.text("text")))
        case what:
            raise UsageError("serve.bad", what=what)
    return {"told": worded(outcome.model_dump(), session.words) if outcome else ""}


OWN_WAYS = {"quit": "#/", "exit": "#/", "resume": "#/", "new": "#/new", "clear": "#/new", "fork": "#/s/"}
"""The commands that lead out of a conversation, each with the place on the page where it leads."""
NO_YES = frozenset({"no", "edit"})
WISHES = ("pause", "resume", "cancel")
_RUNNING: set[asyncio.Future[Any]] = set()


async def begin(services: PageServices, request: Request) -> Any:
    """Begins a new session, or continues an old one, in its own process."""
    body = await read_body(request)
    if session_id := body.text("session"):
        await services.shelf.go_on(session_id)
        return {"id": session_id}
    mode = body.text("mode")
    mode, language = read_mode(mode) if mode else "", services.words.language
    session_id = await services.shelf.begin(body.text("folder"), mode, body.text("model"), language)
    if message := body.text("message"):
        await (await services.watching.get(session_id, services.words.language)).conversation.take(message, None)
    return {"id": session_id}


async def say(services: PageServices, request: Request) -> Any:
    body, session = await read_body(request), await services.watched(request)
    conversation, text, read = session.conversation, body.text("text"), _drawn(body, session)
    if any(question.secret for question in conversation.questions):
        # What is typed now may be the secret, and a message would go to the model.
        return {"taken": "unclear", "told": [session.words("page.secret_above")]}
    if not read and _approves(conversation, text, body.text("question_id")):
        return {"taken": "unclear", "told": [session.words("plan.unseen")]}
    if read and _is_approval(text):
        go_on(session, conversation.work.approve_plan(read))
        return {"taken": "command", "told": []}
    if attachments := [Attachment(file.text("name") or "file", data=file.text("data")) for file in body.list("files")]:
        go_on(session, conversation.say(text, attachments, read=read))
        return {"taken": "message", "told": []}
    if body.flag("later"):
        conversation.queue(text, read)
        return {"taken": "message", "told": []}
    if name := _own_way(text):
        if services.shelf.alone():
            raise UsageError("serve.alone")
        branch_id = await branch(services, request) if name == "fork" else ""
        return {"taken": "command", "told": [], "goes": OWN_WAYS[name] + branch_id}
    # The message answers a question if the user chose that question, or if it reads like an answer to the only open
    # one. A message that names no question was typed with none in sight, and answers none.
    is_answer, language = body.flag("aimed") or conversation.reads_as(text) == "answer", session.words.language
    question_id = (body.text("question_id") if is_answer else "") or None
    return _taken(await conversation.take(text, question_id, language, read), session.words)


async def answer(services: PageServices, request: Request) -> Any:
    body, session = await read_body(request), await services.watched(request)
    conversation, question_id, choice = session.conversation, body.text("question_id"), body.text("choice")
    asked_question = next(
        (question for question in conversation.questions if question.question_id == question_id), None
    )
    if asked_question and asked_question.gate and not is_enough(choice, asked_question.gate.risk):
        return {"taken": "unclear", "told": [session.words("gate.word")], "question_id": question_id}
    approves = asked_question and _approves(conversation, choice or body.text("text"), question_id)
    if approves and not _drawn(body, session):
        return {"taken": "unclear", "told": [session.words("plan.unseen")], "question_id": question_id}
    if asked_question and asked_question.secret and services.models and not choice:
        services.models.hear_typed(asked_question, body.text("text"))
    return _taken(await conversation.answer(question_id, body.text("text"), choice), session.words)


async def interrupt(services: PageServices, request: Request) -> Any:
    """Interrupts the turn, and returns the messages that the model has not read yet, so that they can be changed."""
    await read_body(request)
    return {"unheard": (await services.watched(request)).conversation.interrupt()}


async def undo(services: PageServices, request: Request) -> Any:
    """Takes the last turn back, or restores a turn that was taken back. As in every front end, the user is asked
    first."""
    body, session = await read_body(request), await services.watched(request)
    command, words = "/redo" if body.flag("again") else "/undo", session.words
    return _taken(await session.conversation.take(command, None, words.language), words)


async def control(services: PageServices, request: Request) -> Any:
    body, session = await read_body(request), await services.watched(request)
    if body.text("wish") not in WISHES:
        raise UsageError("serve.bad", what=body.text("wish"))
    session.conversation.work.control(cast(JobWish, body.text("wish")), body.text("job"))
    return {}


async def agent(services: PageServices, request: Request) -> Any:
    """Says something to a running agent; an empty text stops the agent."""
    body, session = await read_body(request), await services.watched(request)
    name, text, work = body.text("agent"), body.text("text"), session.conversation.work
    await (work.tell_agent(name, text) if text else work.stop_agent(name))
    return {}


async def plan(services: PageServices, request: Request) -> Any:
    """Approves the draft that the page has shown, and carries the plan out. A draft that came meanwhile is refused."""
    body, session = await read_body(request), await services.watched(request)
    read = _drawn(body, session)
    if not read:
        raise UsageError("serve.plan_changed")
    go_on(session, session.conversation.work.approve_plan(read))
    return {}


def _drawn(body: Given, session: WatchedSession) -> str:
    """Returns the fingerprint of the present plan if the page sends the whole of it back, so that the user has seen all
    of it; else an empty text. The session's own process compares it, whose plan may have changed meanwhile."""
    draft = session.conversation.state.plan
    is_drawn = draft is not None and body.has("plan", worded(draft.model_dump(mode="json"), session.words))
    return draft.fingerprint() if draft and is_drawn else ""


def _is_approval(text: str) -> bool:
    return unicodedata.normalize("NFKC", text).split()[:2] == ["/plan", "approve"]


def _approves(talk: Conversation, text: str, question_id: str) -> bool:
    """Says whether the text reads like an approval of the draft of a plan, by itself or as the answer to the question
    whether the plan is to start. The page then brings the draft on screen at once."""
    plan = talk.state.plan
    if plan is None or plan.status != "draft":
        return False
    answer = read_answer(text, language=talk.state.language)
    choice = answer.choice if answer else ""
    for question in talk.questions:
        if question.title.key == "plan.start" and question_id in ("", question.question_id) and choice != "no":
            return True
    return _is_approval(text) or (choice == "yes" and not talk.questions)


async def mode(services: PageServices, request: Request) -> Any:
    body, session = await read_body(request), await services.watched(request)
    wanted_mode = read_mode(body.text("mode"))
    session.conversation.choices.change_mode(wanted_mode)
    return {"mode": wanted_mode}


def is_enough(choice: str, risk: str) -> bool:
    """Says whether a click is enough for this choice. A forbidden action needs a typed word, as in the terminal."""
    return not choice or choice in NO_YES or risk != "forbidden"


def read_mode(text: str) -> str:
    if text not in (*map(str, OFFERED),):
        raise UsageError("serve.bad", what=text)
    return text


def _own_way(line: str) -> str:
    first_word, *_ = unicodedata.normalize("NFKC", line).split() or [""]
    return first_word[1:] if first_word.startswith("/") and first_word[1:] in OWN_WAYS else ""


def _taken(taken: Taken, words: Words) -> dict[str, Any]:
    lines = [worded(phrase.model_dump(), words) for phrase in taken.told]
    return {"taken": taken.meaning, "told": lines, "question_id": taken.question_id}


def go_on(watched: WatchedSession, work: Awaitable[Any]) -> None:
    """Runs the work without waiting for it. Its results arrive as events; a failure is shown on all pages."""
    task = asyncio.ensure_future(work)
    _RUNNING.add(task)

    def done(task: asyncio.Future[Any]) -> None:
        _RUNNING.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, DuckflowError):
            watched.hear(0, Noticed(what=said(problem)))

    task.add_done_callback(done)

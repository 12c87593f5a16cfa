"""Changes are looked through on the page: comments on lines, marks, hunks and files that are taken back."""

from typing import Any

from starlette.requests import Request

from duckflow.errors import UsageError
from duckflow.state.hunk import Hunk
from duckflow.web.desk import PageDesk, number_of, read_body
from duckflow.web.doing import go_on
from duckflow.web.telling import worded

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

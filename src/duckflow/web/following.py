"""Lists as streams: the server looks at them while a page listens, and tells a page what has changed."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from duckflow.errors import DuckflowError
from duckflow.web.desk import Handler, PageDesk
from duckflow.web.stream import QUIET_SECONDS, changed_facts
from duckflow.web.telling import sent
from duckflow.web.watched import AGAIN, QUIET

LOOK_SECONDS = 1.0
SHARE = 10
"""A look that takes long is followed by a pause that is so many times longer."""
ANYWAY_SECONDS = 15.0
"""A list is read again after this time even if its mark is the same: not everything that it shows is kept in files."""
STREAM = "text/event-stream"
Mark = Callable[[PageDesk], object]


def followed(handler: Handler, mark: Mark) -> Handler:
    """The handler's facts: once as JSON, or as a stream for a page that accepts one. Equal marks say that nothing has
    changed in between."""

    async def handle(desk: PageDesk, request: Request) -> Any:
        facts = await handler(desk, request)
        if STREAM not in request.headers.get("accept", ""):
            return facts
        desk.watching.require_room()
        return StreamingResponse(_follow(facts, handler, mark, desk, request), media_type=STREAM)

    return handle


async def _follow(
    facts: dict[str, Any], handler: Handler, mark: Mark, desk: PageDesk, request: Request
) -> AsyncGenerator[bytes]:
    """It ends with the server. The first message has all facts, the next ones those that are others by then."""
    with desk.watching.one_more_list():
        yield AGAIN + _told(facts)
        seen, pause = await asyncio.to_thread(mark, desk), LOOK_SECONDS
        read_at = told_at = time.monotonic()
        while not await desk.watching.closes_within(pause):
            began, latest = time.monotonic(), await asyncio.to_thread(mark, desk)
            message = b""
            if latest != seen or began - read_at > ANYWAY_SECONDS:
                seen, read_at, before = latest, began, facts
                with suppress(DuckflowError):
                    facts = await handler(desk, request)
                message = _told(changed_facts(before, facts))
            if message or began - told_at > QUIET_SECONDS:
                told_at = began
                yield message or QUIET
            pause = max(LOOK_SECONDS, SHARE * (time.monotonic() - began))


def _told(facts: dict[str, Any]) -> bytes:
    """With the server's time, against which ages are counted."""
    return sent({"number": 0, "facts": facts, "now": time.time()}) if facts else b""

"""Models on the page: the list, whether one answers, and keys and addresses of the user's own."""

from typing import Any

from starlette.requests import Request

from duckflow.errors import UsageError
from duckflow.web.desk import PageDesk, read_body
from duckflow.web.ports import Models
from duckflow.web.telling import worded

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

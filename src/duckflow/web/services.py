"""The objects that every request needs (sessions, words, fleets, models), and the reading of a request's values."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words, facts_of, is_language
from duckflow.state.data import as_table
from duckflow.web.ports import Fleets, Models, Shelf
from duckflow.web.watched import WatchedSession, Watching
from duckflow.whole_text import parse_json

LONGEST_BODY = 24 * 1024 * 1024
MOST = 10**6
LONGEST_CODE = 8
STATUS = {
    "serve.nothing": 404,
    "serve.no_fleet": 404,
    "serve.read_only": 409,
    "serve.plan_changed": 409,
    "serve.not_json": 415,
    "serve.too_long": 413,
    "serve.too_many": 429,
    "sessions.unknown": 404,
    "fleet.unknown": 404,
    "fleet.busy": 409,
    "attach.cut": 503,
    "attach.silent": 503,
}


class PageServices(NamedTuple):
    """Everything that a handler needs to answer a request. `words` are in the language of the person who sent it."""

    shelf: Shelf
    watching: Watching
    words: Words
    fleet: Fleets | None = None
    as_browser: bool = False
    """True if the user has chosen no language: then each browser gets its own language."""
    models: Models | None = None
    keys_here: bool = False
    """True if keys may be typed on the page: it is served only to this machine, so the keys do not leave it."""

    async def watched(self, request: Request) -> WatchedSession:
        return await self.watching.get(str(request.path_params["session"]), self.words.language)

    def spoken_to(self, request: Request) -> "PageServices":
        """Returns the services in the browser's language, if the browser asks for a language that Duckflow speaks."""
        language = wanted_language(request.headers.get("accept-language", "")) if self.as_browser else ""
        return self._replace(words=Words(language)) if language else self


def wanted_language(listed: str) -> str:
    """Returns the first language in a browser's list that has a complete catalogue, or an empty text. An incomplete
    catalogue would make a page of two languages."""
    codes = (re.split(r"[-;]", part.strip(), maxsplit=1)[0].lower() for part in listed.split(","))
    known_codes = (code for code in codes if len(code) <= LONGEST_CODE and is_language(code))
    return next((code for code in known_codes if facts_of(code).complete), "")


Handler = Callable[[PageServices, Request], Awaitable[Any]]


def handled(handler: Handler, services: PageServices) -> Callable[[Request], Awaitable[Response]]:
    """Makes an endpoint from a handler: the handler's result is sent as JSON, and a DuckflowError as a sentence."""

    async def handle(request: Request) -> Response:
        page_services = services.spoken_to(request)
        try:
            answer = await handler(page_services, request)
        except ClientDisconnect:
            return Response(status_code=400)
        except DuckflowError as problem:
            error: dict[str, Any] = {"error": page_services.words.error(problem)}
            error |= {"key": True} if problem.key.startswith("model.key_") else {}
            return JSONResponse(error, STATUS.get(problem.key, 400))
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return handle


async def read_body(request: Request) -> "Given":
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise UsageError("serve.not_json")
    body = bytearray()
    async for body_chunk in request.stream():
        body += body_chunk
        if len(body) > LONGEST_BODY:
            raise UsageError("serve.too_long", most=LONGEST_BODY // (1024 * 1024))
    try:
        return Given(as_table(parse_json(body or b"{}")))
    except ValueError:
        raise UsageError("serve.not_json") from None


class Given:
    """The values in the body of a request. Each method reads values of one type; a value of another type counts as
    missing."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        field_value = self._values.get(name, "")
        # Half a surrogate pair cannot be encoded as UTF-8.
        return field_value.encode("utf-8", "replace").decode() if isinstance(field_value, str) else ""

    def has(self, name: str, value: object) -> bool:
        """Says whether the request has exactly this value under this name."""
        return self._values.get(name) == value

    def flag(self, name: str) -> bool:
        return self._values.get(name) is True

    def count(self, name: str) -> int:
        field_value = self._values.get(name)
        return field_value if type(field_value) is int and 0 < field_value < MOST else 0

    def texts(self, name: str) -> "list[str]":
        value: Any = self._values.get(name)
        return [part for part in cast("list[Any]", value) if isinstance(part, str)] if isinstance(value, list) else []

    def list(self, name: str) -> "list[Given]":
        field_value: Any = self._values.get(name)
        elements = cast("list[Any]", field_value) if isinstance(field_value, list) else []
        return [Given(cast("dict[str, Any]", element)) for element in elements if isinstance(element, dict)]


def number_of(request: Request, name: str, default: int = 0) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default

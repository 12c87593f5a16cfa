"""A server at an address, over streamable HTTP. Every message is a POST; answers come as JSON or as a stream of
events."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

import httpx

from duckflow.rpc import GONE, INTERNAL, Message, RpcError
from duckflow.state.data import as_table
from duckflow.whole_text import read_json

log = logging.getLogger(__name__)
LONGEST_EVENT = 16 * 1024 * 1024
CONNECT_SECONDS = 10.0
RETRY_SECONDS = 1.0
LONGEST_RETRY = 60.0
RECONNECTS = 5
PROBE_SECONDS = 3.0
OLDER = (
    "this is an address of the older transport (HTTP with SSE), which is not spoken here: give its address for "
    "streamable HTTP, often /mcp in place of /sse"
)
SHOWN_BODY = 300
REDIRECTED, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 300, 401, 403, 404
NO_POST = (400, 404, 405, 415)
LOGIN_NEEDED = -32098
"""An error code of Duckflow's own: the server wants a login."""
SCOPE = re.compile(r'scope="([^"]*)"')
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Headers = Callable[[bool], Awaitable[Mapping[str, str]]]
"""A function that returns the headers for every request. Its argument is True if the server refused the earlier
headers."""


class EventStream:
    """The events of one response, and the id of the last event, from which a broken stream can be continued."""

    def __init__(self) -> None:
        self.last = ""
        self.retry = RETRY_SECONDS

    async def read(self, response: httpx.Response) -> AsyncIterator[Any]:
        """Yields the messages of the response."""
        lines: list[str] = []
        size = 0
        async for line in _lines(response):
            if not line:
                if event_data := "\n".join(lines):
                    yield read_json(event_data)
                    await asyncio.sleep(0)
                lines, size = [], 0
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "data":
                    size += len(value)
                    if size > LONGEST_EVENT:
                        raise RpcError(INTERNAL, "the server sent an event without end")
                    lines.append(value)
                case "id":
                    self.last = value
                case "retry" if value.isdecimal():
                    self.retry = min(int(value) / 1000, LONGEST_RETRY)
                case _:
                    pass


class HttpTransport:
    """Sends and receives messages. `take` gets every message, `fail` the requests that could not be sent, `ended` the
    reason when the session is over."""

    def __init__(
        self,
        url: str,
        headers: Headers,
        take: Callable[[Any], None],
        fail: Callable[[int | str, RpcError], None],
        ended: Callable[[str], None],
    ) -> None:
        self._url = url
        self._headers = headers
        self._take = take
        self._fail = fail
        self._ended = ended
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=CONNECT_SECONDS))
        self._session = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: set[asyncio.Task[None]] = set()
        self.version = ""
        """The version of the protocol, once it is agreed upon."""
        self.stateless = False
        """True for the protocol of 2026, in which each request describes itself in its headers and there is no session.
        """

    def send(self, message: Message) -> None:
        """Sends a message in the background: an answer may take long, and other messages must not wait for it."""
        carry_task = self._start(self._carry(message))
        if "method" not in message or "id" not in message:
            self._telling.add(carry_task)
            carry_task.add_done_callback(self._telling.discard)

    async def delivered(self) -> None:
        """Waits until every message that expects no answer was delivered, so that the next request does not overtake
        it."""
        await asyncio.gather(*self._telling)

    def listen(self) -> None:
        """Listens to messages that the server sends by itself, if the server offers that."""
        if not self.stateless:
            self._start(self._listen())

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session:
            with contextlib.suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._client.delete(self._url, headers=await self._all_headers({}))
        await self._client.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _carry(self, message: Message) -> None:
        try:
            await self._post(message)
        except (RpcError, httpx.HTTPError) as problem:
            refusal = problem if isinstance(problem, RpcError) else RpcError(GONE, _in_words(problem))
            if "method" in message and "id" in message:
                self._fail(message["id"], refusal)
            else:
                log.info("the server did not take what it was told: %s", refusal)

    async def _post(self, message: Message) -> None:
        """Sends a message, and returns when all answers to it have come. A login that has expired is renewed once."""
        headers = await self._all_headers(message)
        try:
            challenge = await self._sent(message, headers)
            if challenge is None:
                return
            if not (scope := wanted_scope(challenge)):
                renewed_headers = await self._headers(True)
                headers_unchanged = all(headers.get(name) == value for name, value in renewed_headers.items())
                if not headers_unchanged and await self._sent(message, headers | dict(renewed_headers)) is None:
                    return
            raise RpcError(LOGIN_NEEDED, f"it wants a login{f' for {scope}' if scope else ''}", challenge)
        except httpx.HTTPError as problem:
            raise RpcError(GONE, _in_words(problem)) from None

    async def _sent(self, message: Message, headers: Mapping[str, str]) -> str | None:
        """Sends the message. Returns None if the server accepted it, else the server's header about the login that it
        wants."""
        async with self._client.stream("POST", self._url, json=message, headers=headers) as response:
            challenge = response.headers.get("www-authenticate", "")
            if response.status_code == UNAUTHORIZED or (response.status_code == FORBIDDEN and wanted_scope(challenge)):
                return challenge
            await self._refuse(response)
            self._session = response.headers.get("mcp-session-id", "") or self._session
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/event-stream"):
                await self._read_stream(response, message)
                return None
            body = await _limited(response)
        if body.strip() and kind.startswith("application/json"):
            self._take_all(read_json(body))
        elif "id" in message and "method" in message:
            raise RpcError(INTERNAL, f"it answered with {kind or 'nothing'} instead of JSON")
        return None

    async def _refuse(self, response: httpx.Response) -> None:
        """Raises an error for a response that is no success. If the body holds an error, that error is raised."""
        status = response.status_code
        if status < REDIRECTED:
            return
        if status == NOT_FOUND and self._session:
            self._session = ""
            self._ended("its session is over")
        body = await _limited(response)
        if status in NO_POST and not self.version and await self._is_older():
            raise RpcError(INTERNAL, OLDER)
        if error := as_table(as_table(read_json(body)).get("error")):
            code = error.get("code")
            raise RpcError(code if isinstance(code, int) else INTERNAL, str(error.get("message")), error.get("data"))
        raise RpcError(INTERNAL, f"HTTP {status} {' '.join(body.decode('utf-8', 'replace').split())[:SHOWN_BODY]}")

    async def _is_older(self) -> bool:
        """Says whether the server is older than 2025: such a server streams the address to post to."""
        headers = {"accept": "text/event-stream", **await self._headers(False)}
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with (
                asyncio.timeout(PROBE_SECONDS),
                self._client.stream("GET", self._url, headers=headers) as response,
            ):
                async for line in _lines(response):
                    return line.partition(":")[2].strip() == "endpoint"
        return False

    async def _read_stream(self, response: httpx.Response, message: Message) -> None:
        """Reads a stream. If it breaks off before the answer has come, it is continued where it stopped."""
        stream, request_id = EventStream(), message.get("id")
        try:
            if await self._heard(stream, response, request_id):
                return
        except httpx.HTTPError:
            pass
        for _ in range(RECONNECTS):
            if not stream.last:
                break
            await asyncio.sleep(stream.retry)
            headers = await self._all_headers({}) | {"last-event-id": stream.last}
            with contextlib.suppress(httpx.HTTPError):
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    await self._refuse(response)
                    if await self._heard(stream, response, request_id):
                        return
        raise RpcError(GONE, "the server's answer broke off")

    async def _heard(self, stream: EventStream, response: httpx.Response, wanted: Any) -> bool:
        """Passes on the messages of a response. Returns True if the answer to the request `wanted` was among them."""
        async for message in stream.read(response):
            self._take_all(message)
            fields = as_table(message)
            if wanted is not None and fields.get("id") == wanted and "method" not in fields:
                return True
        return False

    async def _listen(self) -> None:
        stream = EventStream()
        with contextlib.suppress(httpx.HTTPError, RpcError):
            while True:
                last_event_header = {"last-event-id": stream.last} if stream.last else {}
                headers = await self._all_headers({}) | last_event_header
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    if not response.headers.get("content-type", "").startswith("text/event-stream"):
                        return
                    await self._heard(stream, response, None)
                await asyncio.sleep(max(stream.retry, RETRY_SECONDS))

    async def _all_headers(self, message: Message) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", **await self._headers(False)}
        if self.version:
            headers["mcp-protocol-version"] = self.version
        if self._session:
            headers["mcp-session-id"] = self._session
        if self.stateless and (method := message.get("method")):
            headers["mcp-method"] = method
            target_name = message.get("params", {}).get(NAMED_BY.get(method, ""), "")
            if isinstance(target_name, str) and target_name.isascii() and target_name.isprintable() and target_name:
                headers["mcp-name"] = target_name
        return headers

    def _take_all(self, messages: Any) -> None:
        for message in cast("list[Any]", messages) if isinstance(messages, list) else [messages]:
            self._take(message)


def wanted_scope(challenge: str) -> str:
    """Returns the missing rights if the server says that the login has too few; else an empty text."""
    match = SCOPE.search(challenge)
    return match[1] if match and "insufficient_scope" in challenge else ""


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """Yields lines, split as the standard for event streams says. A line that grows too long is refused before it is
    complete."""
    line, last_byte = bytearray(), b""
    async for piece in response.aiter_bytes():
        for part in piece.splitlines(keepends=True):
            if part == b"\n" and last_byte == b"\r" and not line:
                last_byte = b""
                continue
            line += part
            if len(line) > LONGEST_EVENT:
                raise RpcError(INTERNAL, "the server sent a line without end")
            last_byte = part[-1:]
            if last_byte in (b"\n", b"\r"):
                yield line.rstrip(b"\r\n").decode("utf-8", "replace")
                line.clear()
    if line:
        yield line.decode("utf-8", "replace")


async def _limited(response: httpx.Response) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LONGEST_EVENT:
            raise RpcError(INTERNAL, "the server sent an answer without end")
    return body


def _in_words(problem: httpx.HTTPError) -> str:
    return str(problem) or type(problem).__name__

"""Downloading a page within limits of size and time, only from the address that was checked."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urljoin

from duckflow.errors import ToolError
from duckflow.http import HttpAnswer, HttpClient, HttpError
from duckflow.tools.settings import WebSettings
from duckflow.tools.web.address import Network, WebAddress, pinned, read_address
from duckflow.tools.web.web_tool import CHARSET

MOST_REDIRECTS = 5
CONNECT_SECONDS = 15.0
PDF = "application/pdf"
TEXT = re.compile(
    r"text/(?!event-stream)[\w.+-]+|application/(?:[\w.-]+\+)?(?:json|xml|yaml|toml)|application/(?:x-)?(?:ndjson|javascript|yaml|sh|tex)"
)
HEADERS = {
    "accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "accept-encoding": "gzip",
}


class Downloaded(NamedTuple):
    """A downloaded page, and the address it came from in the end."""

    address: WebAddress
    kind: str
    """The media type, such as `text/html`; empty if the server does not say."""
    charset: str
    body: bytes


async def download(url: WebAddress, settings: WebSettings, network: Network) -> Downloaded:
    """Returns one page of text, or raises a ToolError that says why not."""
    try:
        async with asyncio.timeout(settings.seconds):
            return await _follow(url, settings.max_bytes, network)
    except TimeoutError:
        for_model = f"{url.host} took longer than {settings.seconds:g} s: nothing was fetched."
        raise ToolError(for_model, "web.too_slow", host=url.host, seconds=settings.seconds) from None
    except HttpError as problem:
        why = (str(problem) or type(problem).__name__)[:200]
        for_model = f"{url.host} could not be fetched: {why}"
        raise ToolError(for_model, "web.failed", host=url.host, reason=why) from None


async def _follow(url: WebAddress, most: int, network: Network) -> Downloaded:
    current_address = url
    for _ in range(MOST_REDIRECTS + 1):
        async with asked(current_address, network) as answer:
            if 300 <= answer.status < 400 and (location := answer.headers.get("location")):
                current_address = _redirected(current_address, location)
                continue
            if not answer.is_success:
                for_model = f"{current_address.url} answered with HTTP {answer.status}."
                raise ToolError(for_model, "web.status", host=current_address.host, status=answer.status)
            kind, charset = _text_kind(current_address, answer.headers.get("content-type", ""))
            return Downloaded(current_address, kind, charset, await read_body(answer, most))
    raise ToolError(f"{url.url} leads from one address to the next without an end.", "web.redirects", host=url.host)


@asynccontextmanager
async def asked(
    address: WebAddress,
    network: Network,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
    own: bool = False,
) -> AsyncGenerator[HttpAnswer]:
    """Sends a request and yields the answer. The connection goes to the IP address that was checked, also through the
    proxy of the environment, so nobody looks the name up a second time. The request and the certificate use the name.
    `own` means the user's own server, which may be anywhere."""
    pinned_address = None if own else await pinned(address, network)
    origin, content = f"{address.scheme}://{address.site}", b"" if body is None else json.dumps(body).encode()
    async with HttpClient(origin, HEADERS, CONNECT_SECONDS, not own, pinned_address, network.trust) as client:
        answer = await client.send("GET" if body is None else "POST", address.path, content, headers)
        try:
            yield answer
        finally:
            answer.close()


def _redirected(at: WebAddress, location: str) -> WebAddress:
    target_address = read_address(urljoin(at.url, location).partition("#")[0])
    if at.same_site(target_address):
        return target_address
    for_model = (
        f"{at.url} leads to another place: {target_address.url} was not fetched. "
        "If it is what you want, fetch it by that address."
    )
    raise ToolError(for_model, "web.elsewhere", host=at.host, other=target_address.site)


def _text_kind(at: WebAddress, content_type: str) -> tuple[str, str]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind and not TEXT.fullmatch(kind) and kind not in ("application/xhtml+xml", PDF):
        for_model = f"{at.url} is {kind}, not text: not fetched."
        raise ToolError(for_model, "web.not_text", host=at.host, kind=kind)
    charset = CHARSET.search(content_type)
    return kind, charset[1] if charset else ""


async def read_body(answer: HttpAnswer, most: int) -> bytes:
    """Reads the body, and raises a ToolError if it is longer than `most` bytes."""
    body_bytes = bytearray()
    is_compressed = "content-encoding" in answer.headers
    if not is_compressed and int(answer.headers.get("content-length", "0") or 0) > most:
        raise too_large(most)
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            body_bytes += piece
            if len(body_bytes) > most:
                raise too_large(most)
    return bytes(body_bytes)


def too_large(most: int) -> ToolError:
    limit = f"{most / 1024 / 1024:.1f}"
    return ToolError(f"It is larger than {limit} MB: not fetched.", "web.too_large", limit=limit)

"""Downloading a page: within a size and a time, from the address that was checked, and nowhere else."""

import asyncio
import os
import re
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urljoin

import httpx

from duckflow import __version__
from duckflow.errors import ToolError
from duckflow.tools.web.address import Network, WebAddress, pinned, read_address
from duckflow.tools.web.settings import WebSettings
from duckflow.tools.web.web_tool import CHARSET

MOST_REDIRECTS = 5
PACKED = ("gzip", "x-gzip", "deflate")
GZIP_OR_ZLIB = 47
TEXT = re.compile(
    r"text/(?!event-stream)[\w.+-]+|application/(?:[\w.-]+\+)?(?:json|xml|yaml|toml)|application/(?:x-)?(?:ndjson|javascript|yaml|sh|tex)"
)
HEADERS = {
    "user-agent": f"duckflow/{__version__}",
    "accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "accept-encoding": "gzip",
}


class Downloaded(NamedTuple):
    """What came, and from where in the end."""

    address: WebAddress
    kind: str
    """Such as `text/html`; nothing where the server does not say."""
    charset: str
    body: bytes


async def download(url: WebAddress, settings: WebSettings, network: Network) -> Downloaded:
    """One page of text, or a ToolError that says why not."""
    try:
        async with asyncio.timeout(settings.seconds):
            return await _follow(url, settings.max_bytes, network)
    except TimeoutError:
        told = f"{url.host} took longer than {settings.seconds:g} s: nothing was fetched."
        raise ToolError(told, "web.too_slow", host=url.host, seconds=settings.seconds) from None
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as problem:
        why = (str(problem) or type(problem).__name__)[:200]
        if isinstance(problem, httpx.ConnectError) and any(name.lower().endswith("_proxy") for name in os.environ):
            why += " (proxies are not used for pages)"
        told = f"{url.host} could not be fetched: {why}"
        raise ToolError(told, "web.failed", host=url.host, reason=why) from None


async def _follow(url: WebAddress, most: int, network: Network) -> Downloaded:
    at = url
    for _ in range(MOST_REDIRECTS + 1):
        async with asked(at, network) as answer:
            if answer.is_redirect:
                at = _redirected(at, answer.headers["location"])
                continue
            if not answer.is_success:
                told = f"{at.url} answered with HTTP {answer.status_code}."
                raise ToolError(told, "web.status", host=at.host, status=answer.status_code)
            kind, charset = _text_kind(at, answer.headers.get("content-type", ""))
            return Downloaded(at, kind, charset, await read_body(answer, most))
    raise ToolError(f"{url.url} leads from one address to the next without an end.", "web.redirects", host=url.host)


@asynccontextmanager
async def asked(
    address: WebAddress,
    network: Network,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
    own: bool = False,
) -> AsyncGenerator[httpx.Response]:
    """The answer to a request. The checked number stands in the place of the name, so that nobody looks it up a second
    time; the request and the certificate are the name's. `own`: the user's own server, which may be anywhere.

    Proxies are not used: behind one, nobody could say which address is asked."""
    number, port = (address.host, address.port) if own else network.dial(await pinned(address, network), address.port)
    url = f"{address.scheme}://{f'[{number}]' if ':' in number else number}:{port}{address.path}"
    # Loading the certificates takes 30 ms, and plain http has no use for them.
    verify = (network.trust or True) if address.scheme == "https" else False
    async with (
        httpx.AsyncClient(headers=HEADERS, trust_env=False, verify=verify, timeout=None) as client,
        client.stream(
            "GET" if body is None else "POST",
            url,
            json=body,
            headers={"host": address.site, **(headers or {})},
            extensions={"sni_hostname": address.host},
        ) as answer,
    ):
        yield answer


def _redirected(at: WebAddress, location: str) -> WebAddress:
    to = read_address(urljoin(at.url, location).partition("#")[0])
    if at.same_site(to):
        return to
    told = (
        f"{at.url} leads to another place: {to.url} was not fetched. If it is what you want, fetch it by that address."
    )
    raise ToolError(told, "web.elsewhere", host=at.host, other=to.site)


def _text_kind(at: WebAddress, given: str) -> tuple[str, str]:
    kind = given.partition(";")[0].strip().lower()
    if kind and not TEXT.fullmatch(kind) and kind != "application/xhtml+xml":
        told = f"{at.url} is {kind}, not text: not fetched."
        raise ToolError(told, "web.not_text", host=at.host, kind=kind)
    charset = CHARSET.search(given)
    return kind, charset[1] if charset else ""


async def read_body(answer: httpx.Response, most: int) -> bytes:
    """Unpacked as it comes, and never more than so many bytes of it."""
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in (*PACKED, "identity", ""):
        raise httpx.DecodingError(f"packed as {packed[:20]}, which was not asked for")
    unpack = zlib.decompressobj(GZIP_OR_ZLIB) if packed in PACKED else None
    body = bytearray()
    if not unpack and int(answer.headers.get("content-length", "0") or 0) > most:
        raise too_large(most)
    async for piece in answer.aiter_raw():
        body += unpack.decompress(piece, most + 1 - len(body)) if unpack else piece
        if len(body) > most:
            raise too_large(most)
    return bytes(body)


def too_large(most: int) -> ToolError:
    limit = f"{most / 1024 / 1024:.1f}"
    return ToolError(f"It is larger than {limit} MB: not fetched.", "web.too_large", limit=limit)

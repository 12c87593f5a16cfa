"""Guards the page: every request passes through here before any other code sees it."""

import base64
import hashlib
import ipaddress
import json
import re
import time
from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from duckflow.i18n.words import Words
from duckflow.web.services import wanted_language
from duckflow.web.visitors import Visitors

READING = frozenset({"GET", "HEAD"})
OWN_SITES = frozenset({"same-origin", "none"})
"""The allowed values of `Sec-Fetch-Site`. A page on another port of this machine is "same-site", and is refused."""
STYLE = (
    ":root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}"
    "main{max-width:34rem;margin:15vh auto;padding:0 1rem}"
)  # fmt: skip
"""The style of the page for visitors who are not let in. It is part of that page, because they get no other file."""
STYLE_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{STYLE_DIGEST}'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
NOT_KEPT = (b"cache-control", b"no-store")
MOST_REQUESTS, REFILL_SECONDS = 60, 0.2
"""The number of requests allowed at once, and the seconds until another request is allowed."""


class ServedAt(NamedTuple):
    """The address at which the page is served. `host` is one address of this machine, or `0.0.0.0` or `::` for all of
    its addresses."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def authority(self) -> str:
        host = ipaddress.ip_address(self.host)
        return f"[{host}]:{self.port}" if host.version == 6 else f"{host}:{self.port}"

    def is_ours(self, authority: str) -> bool:
        """Says whether the `Host` header of a request names this server. A host name could belong to anybody, so only
        addresses count, and `localhost`, which always leads back to this machine."""
        address = ipaddress.ip_address(self.host)
        if authority == self.authority:
            return not address.is_unspecified
        if authority == f"localhost:{self.port}":
            return address.is_loopback or address.is_unspecified
        if not address.is_unspecified:
            return False
        host, _, port = authority.rpartition(":")
        try:
            ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return port == str(self.port)


class Refused(NamedTuple):
    status: int
    key: str


class Allowance:
    """Limits how often something is done: `most` times at once, then one more time every `seconds`."""

    def __init__(self, most: int = MOST_REQUESTS, seconds: float = REFILL_SECONDS) -> None:
        self._most, self._seconds = most, seconds
        self._left, self._at = float(most), time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) / self._seconds)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Access:
    """The ASGI application around the page's application: it refuses requests that may not pass, and adds the security
    headers."""

    def __init__(self, app: Any, place: ServedAt, visitors: Visitors, words: Words, as_browser: bool) -> None:
        self._app = app
        self._place = place
        self._visitors = visitors
        self._words = words
        self._as_browser = as_browser
        self._doing = Allowance()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = _headers(scope["headers"])

        async def guarded(sent: Any) -> None:
            if sent["type"] == "http.response.start":
                response_headers = list(sent.get("headers", ()))
                cache_headers = () if any(name == b"cache-control" for name, _ in response_headers) else (NOT_KEPT,)
                sent = {**sent, "headers": [*response_headers, *HEADERS, *cache_headers]}
            await send(sent)

        if refusal := self._refused(scope, headers):
            await self._answer(guarded, refusal, headers)
        elif scope["path"] == "/":
            await self._enter(scope, guarded, headers)
        else:
            scope = {**scope, "path": scope["path"].removeprefix(f"/{self._visitors.place}")}
            await self._app(scope, receive, guarded)

    def _refused(self, scope: Any, headers: dict[str, list[str]]) -> Refused | None:
        hosts, origins, fetch_sites = (headers.get(name, []) for name in ("host", "origin", "sec-fetch-site"))
        if len(hosts) != 1 or not self._place.is_ours(hosts[0].lower()):
            return Refused(421, "serve.foreign_host")
        if fetch_sites and not OWN_SITES.issuperset(fetch_sites):
            return Refused(403, "serve.foreign_site")
        is_reading = scope["method"] in READING
        if scope["path"] == "/" and is_reading:
            return None
        if not any(map(self._visitors.knows, self._cookies(headers))):
            return Refused(401, "serve.unknown")
        if not is_reading and origins != [f"http://{hosts[0].lower()}"]:
            return Refused(403, "serve.foreign_origin")
        if not scope["path"].startswith(f"/{self._visitors.place}/"):
            return Refused(404, "serve.nothing")
        if not is_reading and not self._doing.take():
            return Refused(429, "serve.too_many")
        return None

    def _cookies(self, headers: dict[str, list[str]]) -> Iterable[str]:
        for line in headers.get("cookie", []):
            for cookie_text in line.split(";"):
                name, _, cookie_value = cookie_text.strip().partition("=")
                if name == self._cookie:
                    yield cookie_value

    @property
    def _cookie(self) -> str:
        return f"duckflow-{self._place.port}"

    async def _enter(self, scope: Any, send: Any, headers: dict[str, list[str]]) -> None:
        tokens = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [""])
        too_many_wrong_tokens, cookie = (
            self._visitors.too_many_wrong_tokens,
            self._visitors.enter(tokens[0], tuple(scope["client"])),
        )
        if cookie is None:
            # The right token always gets in, even after too many wrong tokens. Otherwise anybody could lock the page by
            # guessing.
            refusal = Refused(429, "serve.too_many") if too_many_wrong_tokens else Refused(401, "serve.unknown")
            await self._answer(send, refusal, headers)
            return
        path = f"/{self._visitors.place}/"
        set_cookie = f"{self._cookie}={cookie}; Path={path}; HttpOnly; SameSite=Strict; Max-Age=1209600"
        sent_headers = [(b"location", path.encode()), (b"set-cookie", set_cookie.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": sent_headers})
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, send: Any, refused: Refused, headers: dict[str, list[str]]) -> None:
        """Answers a refused request: a browser gets a page, and the page's own script gets JSON."""
        accepted_languages = ",".join(headers.get("accept-language", [])) if self._as_browser else ""
        words = Words(wanted_language(accepted_languages) or self._words.language)
        if any("text/html" in line for line in headers.get("accept", [])):
            body, mime = _door(words(refused.key), words.language), b"text/html"
        else:
            body, mime = json.dumps({"error": words(refused.key)}, ensure_ascii=False), b"application/json"
        body_bytes = body.encode()
        sent_headers = [(b"content-type", mime + b"; charset=utf-8"), (b"content-length", b"%d" % len(body_bytes))]
        await send({"type": "http.response.start", "status": refused.status, "headers": sent_headers})
        await send({"type": "http.response.body", "body": body_bytes})


def _door(sentence: str, language: str) -> str:
    text = re.sub("`(.*?)`", r"<code>\1</code>", escape(sentence))
    viewport = "<meta name=viewport content='width=device-width, initial-scale=1'>"
    head = f"<meta charset=utf-8>{viewport}<title>Duckflow</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang={language}><head>{head}</head><main><h1>Duckflow</h1><p>{text}</p></main></html>"


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in pairs:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers

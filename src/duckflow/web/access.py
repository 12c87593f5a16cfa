"""The lock of the page: every request passes here before anything else looks at it."""

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
from duckflow.web.desk import wanted_language
from duckflow.web.visitors import Visitors

READING = frozenset({"GET", "HEAD"})
OWN_SITES = frozenset({"same-origin", "none"})
"""What `Sec-Fetch-Site` may say; another port of this machine is the same site, and not us."""
STYLE = (
    ":root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}"
    "main{max-width:34rem;margin:15vh auto;padding:0 1rem}"
)  # fmt: skip
"""Of the page for somebody who is not let in, and so gets none of the page's files."""
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
"""What one may do at once, and how long another one takes to be allowed."""


class ServedAt(NamedTuple):
    """Where it is served. `host` is an address of this machine, or one that stands for all of them."""

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
        """Whether a browser that names this in `Host` has meant us. A name could be anybody's: only addresses can be
        meant, and the name that always leads back to the machine itself."""
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
    """How much may be done: so much at once, and then as fast as it fills up again."""

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
    """Wraps the application (ASGI)."""

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
                given = list(sent.get("headers", ()))
                kept = () if any(name == b"cache-control" for name, _ in given) else (NOT_KEPT,)
                sent = {**sent, "headers": [*given, *HEADERS, *kept]}
            await send(sent)

        if refused := self._refused(scope, headers):
            await self._answer(guarded, refused, headers)
        elif scope["path"] == "/":
            await self._enter(scope, guarded, headers)
        else:
            scope = {**scope, "path": scope["path"].removeprefix(f"/{self._visitors.place}")}
            await self._app(scope, receive, guarded)

    def _refused(self, scope: Any, headers: dict[str, list[str]]) -> Refused | None:
        hosts, origins, sites = (headers.get(name, []) for name in ("host", "origin", "sec-fetch-site"))
        if len(hosts) != 1 or not self._place.is_ours(hosts[0].lower()):
            return Refused(421, "serve.foreign_host")
        if sites and not OWN_SITES.issuperset(sites):
            return Refused(403, "serve.foreign_site")
        reading = scope["method"] in READING
        if scope["path"] == "/" and reading:
            return None
        if not any(map(self._visitors.knows, self._cookies(headers))):
            return Refused(401, "serve.unknown")
        if not reading and origins != [f"http://{hosts[0].lower()}"]:
            return Refused(403, "serve.foreign_origin")
        if not scope["path"].startswith(f"/{self._visitors.place}/"):
            return Refused(404, "serve.nothing")
        if not reading and not self._doing.take():
            return Refused(429, "serve.too_many")
        return None

    def _cookies(self, headers: dict[str, list[str]]) -> Iterable[str]:
        for line in headers.get("cookie", []):
            for one in line.split(";"):
                name, _, value = one.strip().partition("=")
                if name == self._cookie:
                    yield value

    @property
    def _cookie(self) -> str:
        return f"duckflow-{self._place.port}"

    async def _enter(self, scope: Any, send: Any, headers: dict[str, list[str]]) -> None:
        given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [""])
        tired, cookie = self._visitors.tired, self._visitors.enter(given[0], tuple(scope["client"]))
        if cookie is None:
            # Whoever has the right one is let in all the same: else anybody could lock the door by guessing.
            refused = Refused(429, "serve.too_many") if tired else Refused(401, "serve.unknown")
            await self._answer(send, refused, headers)
            return
        path = f"/{self._visitors.place}/"
        kept = f"{self._cookie}={cookie}; Path={path}; HttpOnly; SameSite=Strict; Max-Age=1209600"
        sent = [(b"location", path.encode()), (b"set-cookie", kept.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": sent})
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, send: Any, refused: Refused, headers: dict[str, list[str]]) -> None:
        """A person who opens it in a browser gets a page, the page's own script gets JSON."""
        listed = ",".join(headers.get("accept-language", [])) if self._as_browser else ""
        words = Words(wanted_language(listed) or self._words.language)
        if any("text/html" in line for line in headers.get("accept", [])):
            body, kind = _door(words(refused.key), words.language), b"text/html"
        else:
            body, kind = json.dumps({"error": words(refused.key)}, ensure_ascii=False), b"application/json"
        data = body.encode()
        sent = [(b"content-type", kind + b"; charset=utf-8"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": refused.status, "headers": sent})
        await send({"type": "http.response.body", "body": data})


def _door(sentence: str, language: str) -> str:
    told = re.sub("`(.*?)`", r"<code>\1</code>", escape(sentence))
    viewport = "<meta name=viewport content='width=device-width, initial-scale=1'>"
    head = f"<meta charset=utf-8>{viewport}<title>Duckflow</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang={language}><head>{head}</head><main><h1>Duckflow</h1><p>{told}</p></main></html>"


def _headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in given:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found

"""Who may see the page: whoever had its address once, by a cookie. On disk there are only digests, so that a page finds
its server again after that was started anew, and nobody who reads the file becomes a visitor."""

import contextlib
import hashlib
import ipaddress
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from duckflow.whole_file import write_whole

MOST = 32
DAYS = 14
CONNECTIONS, ESTABLISHED = (Path("/proc/net/tcp"), Path("/proc/net/tcp6")), "01"
TRIES, TRY_SECONDS = 10, 60.0
"""Wrong tokens that are taken for mistakes in that time."""


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Visitors:
    """Of the server at one port. The token leads in, any number of times, for as long as this server runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tries: list[float] = []
        self.token = secrets.token_urlsafe(32)
        self._once: set[str] = set()
        kept = _read(path)
        self.place: str = kept.get("place") or secrets.token_urlsafe(12)
        """The first part of every path. Cookies do not know ports: below a path that nobody else has, no other server
        on this machine is sent ours."""
        oldest = time.time() - DAYS * 86400
        known: dict[str, float] = kept.get("visitors", {})
        self._known = {one: since for one, since in known.items() if since > oldest}

    @property
    def tired(self) -> bool:
        """Of wrong tokens."""
        self._tries = [at for at in self._tries if at > time.monotonic() - TRY_SECONDS]
        return len(self._tries) >= TRIES

    def make_once(self) -> str:
        """A token that leads in once: for a command line, which others on the machine can see."""
        token = secrets.token_urlsafe(32)
        self._once.add(digest(token))
        return token

    def enter(self, token: str, client: tuple[str, int]) -> str | None:
        """A new cookie for a right token. One for a command line is for programs of the same user: others could read it
        there before the browser has started."""
        if not token:
            return None
        if digest(token) in self._once and _is_own(*client):
            self._once.discard(digest(token))
        elif not secrets.compare_digest(digest(token), digest(self.token)):
            self._tries = [*self._tries, time.monotonic()][-TRIES:]
            return None
        cookie = secrets.token_urlsafe(32)
        self._known[digest(cookie)] = time.time()
        self._known = dict(sorted(self._known.items(), key=lambda one: one[1])[-MOST:])
        self._save()
        return cookie

    def knows(self, cookie: str) -> bool:
        """Digests are compared, so that the time it takes tells nothing."""
        return bool(cookie) and digest(cookie) in self._known

    def _save(self) -> None:
        text = json.dumps({"place": self.place, "visitors": self._known})
        write_whole(self._path, text)


def _is_own(host: str, port: int) -> bool:
    """Whether that end of a connection on this machine is of the user we run as; where that cannot be told, it is."""
    packed = ipaddress.ip_address(host).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    end = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
    for table in CONNECTIONS:
        with contextlib.suppress(OSError):
            for row in map(str.split, table.read_text().splitlines()[1:]):
                # Of what is being closed nobody is the owner any more.
                if row[1].endswith(end) and row[3] == ESTABLISHED:
                    return int(row[7]) == os.getuid()
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        return kept if all(isinstance(since, float) for since in kept["visitors"].values()) else {}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}

"""The visitors of the page: everybody who once had its address has a cookie. The file holds only digests of cookies. So
a visitor stays known when the server restarts, but somebody who reads the file does not get in."""

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
"""The number of wrong tokens that are allowed within these seconds."""


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Visitors:
    """The visitors of the server at one port. Its token lets anybody in, any number of times, while this server
    runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tries: list[float] = []
        self.token = secrets.token_urlsafe(32)
        self._once: set[str] = set()
        saved_data = _read(path)
        self.place: str = saved_data.get("place") or secrets.token_urlsafe(12)
        """The first part of every path. Cookies are shared between ports, so this unique path keeps our cookies from
        other servers on this machine."""
        oldest_time = time.time() - DAYS * 86400
        since_by_digest: dict[str, float] = saved_data.get("visitors", {})
        self._known = {cookie_digest: since for cookie_digest, since in since_by_digest.items() if since > oldest_time}

    @property
    def too_many_wrong_tokens(self) -> bool:
        """Says whether too many wrong tokens came lately: ten a minute, from all addresses together."""
        self._tries = [tried_at for tried_at in self._tries if tried_at > time.monotonic() - TRY_SECONDS]
        return len(self._tries) >= TRIES

    def make_once(self) -> str:
        """Returns a token that lets somebody in once. It is for a command line, which others on the machine can see."""
        token = secrets.token_urlsafe(32)
        self._once.add(digest(token))
        return token

    def enter(self, token: str, client: tuple[str, int]) -> str | None:
        """Returns a new cookie for a right token, else None. A token from a command line is accepted only from programs
        of the same user: other users could read it there before the browser has started."""
        if not token:
            return None
        if digest(token) in self._once and _is_own(*client):
            self._once.discard(digest(token))
        elif not secrets.compare_digest(digest(token), digest(self.token)):
            self._tries = [*self._tries, time.monotonic()][-TRIES:]
            return None
        cookie = secrets.token_urlsafe(32)
        self._known[digest(cookie)] = time.time()
        self._known = dict(sorted(self._known.items(), key=lambda entry: entry[1])[-MOST:])
        self._save()
        return cookie

    def knows(self, cookie: str) -> bool:
        """Says whether this is the cookie of a visitor. Digests are compared, so that the time taken reveals
        nothing."""
        return bool(cookie) and digest(cookie) in self._known

    def _save(self) -> None:
        text = json.dumps({"place": self.place, "visitors": self._known})
        write_whole(self._path, text)


def _is_own(host: str, port: int) -> bool:
    """Says whether this end of a local connection belongs to the user we run as; True if that cannot be found out."""
    packed_address = ipaddress.ip_address(host).packed
    words = (packed_address[offset : offset + 4] for offset in range(0, len(packed_address), 4))
    address_and_port = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
    for connection_table in CONNECTIONS:
        with contextlib.suppress(OSError):
            for connection_row in map(str.split, connection_table.read_text().splitlines()[1:]):
                # A connection that is being closed has no owner any more.
                if connection_row[1].endswith(address_and_port) and connection_row[3] == ESTABLISHED:
                    return int(connection_row[7]) == os.getuid()
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        saved_data: dict[str, Any] = json.loads(path.read_text())
        return saved_data if all(isinstance(since, float) for since in saved_data["visitors"].values()) else {}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}

"""Logins to servers at addresses: their tokens are kept, and renewed when they have run out."""

import asyncio
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import httpx

from duckflow.state.json_fields import as_table
from duckflow.store.paths import private_folder
from duckflow.system_keyring import read_keyring, write_keyring
from duckflow.whole_file import write_whole

Table = dict[str, Any]
RENEW_SECONDS = 30.0
EARLY_SECONDS = 60.0


def login_name(url: str) -> str:
    """What a login is called in the keyring."""
    return f"mcp {url}"


class Logins:
    """The logins of the user. Where no keyring keeps them, they lie in files that only the user can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def token_for(self, url: str, refused: bool) -> str:
        """The token for an address; nothing where nobody has logged in, or the login has run out for good."""
        login = await asyncio.to_thread(self._read, url)
        if not login:
            return ""
        if refused or time.time() > login.get("expires_at", float("inf")) - EARLY_SECONDS:
            login = await _renewed(login)
            if login:
                await asyncio.to_thread(self.keep, url, login)
        return str(login.get("access_token", ""))

    def keep(self, url: str, login: Table) -> Path | None:
        """The file that keeps the login, or None where the keyring does."""
        path, text = self._path(url), json.dumps(login)
        if write_keyring(login_name(url), text):
            path.unlink(missing_ok=True)
            return None
        private_folder(self._folder)
        write_whole(path, text)
        return path

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    def _read(self, url: str) -> Table:
        try:
            path = self._path(url)
            return as_table(json.loads(path.read_text() if path.exists() else read_keyring(login_name(url)) or "{}"))
        except (OSError, ValueError):
            return {}


def login_of(tokens: Table, client: Table, endpoint: str, resource: str) -> Table:
    """What has to be known to use and to renew tokens."""
    seconds = tokens.get("expires_in")
    ends = {"expires_at": time.time() + seconds} if isinstance(seconds, int | float) else {}
    kept = {key: client[key] for key in ("client_id", "client_secret", "token_endpoint_auth_method") if client.get(key)}
    return {
        "access_token": tokens.get("access_token", ""),
        "refresh_token": tokens.get("refresh_token", ""),
        "client": kept,
        "endpoint": endpoint,
        "resource": resource,
        **ends,
    }


async def _renewed(login: Table) -> Table:
    """By the refresh token; nothing where that is not to be had."""
    client, endpoint = as_table(login.get("client")), str(login.get("endpoint", ""))
    if not login.get("refresh_token") or not endpoint:
        return {}
    form = {"grant_type": "refresh_token", "refresh_token": login["refresh_token"], "resource": login["resource"]}
    auth = None
    if client.get("token_endpoint_auth_method") == "client_secret_basic" and client.get("client_secret"):
        auth = httpx.BasicAuth(client["client_id"], client["client_secret"])
    else:
        form |= {key: client[key] for key in ("client_id", "client_secret") if client.get(key)}
    try:
        async with httpx.AsyncClient(timeout=RENEW_SECONDS) as http:
            answer = await http.post(endpoint, data=form, auth=auth or httpx.USE_CLIENT_DEFAULT)
            tokens = as_table(answer.raise_for_status().json())
    except (httpx.HTTPError, ValueError):
        return {}
    tokens.setdefault("refresh_token", login["refresh_token"])
    return login_of(tokens, client, endpoint, str(login["resource"]))

"""Logins to servers at addresses: tokens in the keyring of the operating system, renewed when they have run out."""

import asyncio
import json
import time
from typing import Any

import httpx

from duckflow.llm.json_fields import as_table
from duckflow.llm.keys import KEYRING_SERVICE, read_keyring

Table = dict[str, Any]
RENEW_SECONDS = 30.0
EARLY_SECONDS = 60.0


def login_name(url: str) -> str:
    """What a login is called in the keyring."""
    return f"mcp {url}"


async def token_for(url: str, refused: bool) -> str:
    """The token for an address; nothing where nobody has logged in, or the login has run out for good."""
    login = await asyncio.to_thread(_kept, url)
    if not login:
        return ""
    if refused or time.time() > login.get("expires_at", float("inf")) - EARLY_SECONDS:
        login = await _renewed(url, login)
    return str(login.get("access_token", ""))


def keep_login(url: str, login: Table) -> None:
    """An exception of the keyring's own when it cannot be kept."""
    import keyring

    keyring.set_password(KEYRING_SERVICE, login_name(url), json.dumps(login))


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


def _kept(url: str) -> Table:
    try:
        return as_table(json.loads(read_keyring(login_name(url)) or "{}"))
    except ValueError:
        return {}


async def _renewed(url: str, login: Table) -> Table:
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
    renewed = login_of(tokens, client, endpoint, str(login["resource"]))
    await asyncio.to_thread(keep_login, url, renewed)
    return renewed

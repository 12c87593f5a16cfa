"""`duckflow mcp login`: opens the address, waits for the browser or for a pasted address, and stores the token."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from duckflow.cli.web import open_browser
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from duckflow.tools.outside.client import Client
from duckflow.tools.outside.http import LOGIN_NEEDED, SCOPE
from duckflow.tools.outside.login import Landing, Logins, LoginWish, log_in
from duckflow.tools.outside.stdio import filled_in
from duckflow.tools.settings import ServerSettings
from duckflow.ui.streams import print_out


async def login(
    name: str, entry: ServerSettings, variables: Mapping[str, str], words: Words, logins: Logins, scope: str = ""
) -> int:
    """Logs in to a server. `variables` are the user's variables that its address and its client's id may name. `scope`
    names the rights to ask for, in place of those that the server itself names."""
    if not entry.url:
        raise UsageError("mcp.no_address", name=name)
    url = filled_in(entry.url, variables)
    challenge = await _challenge(name, url)
    if scope:
        challenge = f'{SCOPE.sub("", challenge).rstrip(", ") or "Bearer"}, scope="{scope}"'
    login_wish = LoginWish(
        url, challenge, *(filled_in(value, variables) for value in (entry.client_id, entry.client_secret))
    )
    landing_page = Landing(words("mcp.browser_done"))
    await landing_page.open(entry.callback_port)

    async def show(address: str) -> None:
        for line in (words("mcp.open_address"), address, words("mcp.paste")):
            print_out(plain(line))
        await asyncio.to_thread(open_browser, address)

    stop_listening = _listen_for_pasted(landing_page)
    try:
        credentials = await log_in(login_wish, landing_page, show)
    except UsageError:
        raise
    except Exception as problem:
        # The SDK has its own errors for everything that can go wrong on the way.
        raise UsageError("mcp.login_failed", name=name, reason=str(problem) or type(problem).__name__) from None
    finally:
        stop_listening()
        await landing_page.close()
    file = await asyncio.to_thread(logins.keep, url, credentials)
    key = "mcp.logged_in_file" if file else "mcp.logged_in"
    print_out(plain(words(key, name=name, file=str(file))))
    return 0


async def _challenge(name: str, url: str) -> str:
    """Returns the header by which the server asks for a login, or an empty text where it needs no login."""
    client = Client(Path.cwd(), _no_answer, lambda kind: None, lambda why: None)
    client.over_http(url, _no_headers)
    try:
        await client.connect()
        await client.list("tools")
    except RpcError as problem:
        if problem.code != LOGIN_NEEDED:
            raise UsageError("mcp.login_failed", name=name, reason=problem.message) from None
        return str(problem.data or "")
    finally:
        await client.aclose()
    return ""


async def _no_headers(refused: bool) -> dict[str, str]:
    return {}


async def _no_answer(params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "cancel"}


def _listen_for_pasted(landing: Landing) -> Callable[[], None]:
    """Reads the address at which the browser ends from a pasted line: over SSH the browser cannot reach this
    machine."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(sys.stdin, lambda: _take(landing, stop))
    except (OSError, ValueError):
        return lambda: None

    def stop() -> None:
        loop.remove_reader(sys.stdin)

    return stop


def _take(landing: Landing, stop: Callable[[], None]) -> None:
    line = sys.stdin.readline()
    if not line or landing.take(line):
        stop()

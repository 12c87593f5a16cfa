"""A login by OAuth. The protocol's own SDK (the extra `mcp`) finds the login page; Duckflow opens it and waits."""

import asyncio
import contextlib
import hashlib
import importlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx

from duckflow.errors import UsageError
from duckflow.state.data import as_table
from duckflow.system_keyring import read_keyring, write_keyring
from duckflow.tools.outside.client import NEWEST
from duckflow.whole_file import private_folder, write_whole

Table = dict[str, Any]
RENEW_SECONDS = 30.0
EARLY_SECONDS = 60.0


def login_name(url: str) -> str:
    """Returns the name of a login in the keyring."""
    return f"mcp {url}"


class Logins:
    """The user's logins. Where there is no keyring, they are in files that only the user can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def token_for(self, url: str, refused: bool) -> str:
        """Returns the token for an address; empty if nobody has logged in, or the login has expired for good."""
        login = await asyncio.to_thread(self._read, url)
        if not login:
            return ""
        if refused or time.time() > login.get("expires_at", float("inf")) - EARLY_SECONDS:
            login = await _renewed(login)
            if login:
                await asyncio.to_thread(self.keep, url, login)
        return str(login.get("access_token", ""))

    def keep(self, url: str, login: Table) -> Path | None:
        """Keeps a login. Returns the file that holds it, or None where the keyring does."""
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
    """Returns everything that is needed to use and to renew tokens."""
    seconds = tokens.get("expires_in")
    expiry = {"expires_at": time.time() + seconds} if isinstance(seconds, int | float) else {}
    client_fields = {
        key: client[key] for key in ("client_id", "client_secret", "token_endpoint_auth_method") if client.get(key)
    }
    return {
        "access_token": tokens.get("access_token", ""),
        "refresh_token": tokens.get("refresh_token", ""),
        "client": client_fields,
        "endpoint": endpoint,
        "resource": resource,
        **expiry,
    }


async def _renewed(login: Table) -> Table:
    """Renews a login by its refresh token. Returns an empty login if that is not possible."""
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


WAIT_SECONDS = 300.0
LONGEST_REQUEST = 16_384
PATH = "/callback"


class Returned(NamedTuple):
    """The parameters of the address to which the browser is sent at the end."""

    code: str
    state: str | None
    issuer: str | None = None


class Landing:
    """A page on this machine to which the browser is sent at the end of a login. The user may also paste the address
    that the browser was sent to."""

    def __init__(self, said: str) -> None:
        self._said = said
        self._server: asyncio.Server | None = None
        self._returned: asyncio.Future[Returned] = asyncio.get_running_loop().create_future()
        self.address = ""

    async def open(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=LONGEST_REQUEST)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{PATH}"

    def take(self, address: str) -> bool:
        """Takes an address to which a browser was sent. Returns True if this is the end of the login, with a code or an
        error in the address."""
        url_parts = urlsplit(address.strip())
        query = {name: values[0] for name, values in parse_qs(url_parts.query).items()}
        if url_parts.path != PATH or self._returned.done() or not query.keys() & {"code", "error"}:
            return False
        if "code" in query:
            self._returned.set_result(Returned(query["code"], query.get("state"), query.get("iss")))
        else:
            reason = query.get("error_description") or query["error"]
            self._returned.set_exception(UsageError("mcp.login_failed", name=url_parts.netloc, reason=reason))
        return True

    async def returned(self) -> Returned:
        return await asyncio.wait_for(self._returned, WAIT_SECONDS)

    async def close(self) -> None:
        if self._server:
            self._server.close()
            with contextlib.suppress(OSError):
                await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            line = (await reader.readline()).decode("latin-1").split()
            is_login = self.take(f"http://127.0.0.1{line[1]}")
            body = self._said.encode() if is_login else b"?"
            response_head = (
                f"HTTP/1.1 {'200 OK' if is_login else '404 Not Found'}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            )
            writer.write(f"{response_head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()


class LoginWish(NamedTuple):
    """A wish to log in: the server's address, its header about logins, and the client's id and secret at that server,
    if any."""

    url: str
    challenge: str = ""
    client_id: str = ""
    client_secret: str = ""

    @property
    def document(self) -> str | None:
        """Returns the client id if it is the address of a document about Duckflow, rather than an agreed name."""
        return self.client_id if self.client_id.startswith("https://") else None


async def log_in(wanted: LoginWish, landing: Landing, show: Callable[[str], Awaitable[None]]) -> dict[str, Any]:
    """Logs in, and returns the data to keep. `show` gets the address to open. Raises UsageError without the SDK."""
    url = wanted.url
    try:
        auth: Any = await asyncio.to_thread(importlib.import_module, "mcp.client.auth")
        shared_auth: Any = importlib.import_module("mcp.shared.auth")
        http: Any = importlib.import_module("httpx2")
    except ImportError:
        raise UsageError("mcp.no_sdk") from None
    metadata = shared_auth.OAuthClientMetadata(
        client_name="Duckflow",
        redirect_uris=[landing.address],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        # A program on the user's machine can keep no secret. Some servers refuse a registration that does not say so.
        token_endpoint_auth_method="none",
    )

    async def wait() -> Any:
        login_answer = await landing.returned()
        return auth.AuthorizationCodeResult(code=login_answer.code, state=login_answer.state, iss=login_answer.issuer)

    async def challenge(response: Any) -> None:
        # This request may be allowed without a login. But another request was refused, so the user wants to log in: it
        # is treated as refused too.
        if str(response.request.url) == url and "authorization" not in response.request.headers:
            response.status_code, response.headers["www-authenticate"] = 401, wanted.challenge

    store = _Memory()
    if wanted.client_id and not wanted.document:
        client_fields = {"client_id": wanted.client_id, "client_secret": wanted.client_secret or None}
        method = "client_secret_basic" if wanted.client_secret else "none"
        store.client = shared_auth.OAuthClientInformationFull(
            **client_fields, redirect_uris=[landing.address], token_endpoint_auth_method=method
        )
    provider = auth.OAuthClientProvider(url, metadata, store, show, wait, wanted.document)
    identity = {"name": "duckflow", "version": "0"}
    params = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": identity}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"accept": "application/json, text/event-stream"}
    async with http.AsyncClient(auth=provider, timeout=WAIT_SECONDS, event_hooks={"response": [challenge]}) as client:
        answer = await client.post(url, json=message, headers=headers)
    context = provider.context
    if store.tokens is None:
        raise UsageError("mcp.login_failed", name=url, reason=f"HTTP {answer.status_code}")
    server_metadata = getattr(context, "oauth_metadata", None)
    endpoint = (
        str(server_metadata.token_endpoint)
        if server_metadata
        else str(context.get_authorization_base_url(url)) + "/token"
    )
    client_info: dict[str, Any] = store.client.model_dump(mode="json") if store.client else dict[str, Any]()
    return login_of(store.tokens.model_dump(mode="json"), client_info, endpoint, str(context.get_resource_url()))


class _Memory:
    """The place where the SDK keeps its data during a login. Duckflow stores it in the keyring afterwards."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info

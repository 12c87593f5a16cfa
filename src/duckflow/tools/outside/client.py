"""A session with one server, in both versions of the protocol: the handshake, the lists of the server's offers, and
calls."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from duckflow import __version__
from duckflow.programs.launch import Launch
from duckflow.rpc import GONE, METHOD_NOT_FOUND, Peer, RpcError
from duckflow.state.data import as_table, tables
from duckflow.tools.outside.http import LOGIN_NEEDED, Headers, HttpTransport
from duckflow.tools.outside.stdio import StdioTransport

Table = dict[str, Any]
NEWEST = "2025-11-25"
HANDSHAKES = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", NEWEST))
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
UNSUPPORTED_VERSION = -32022
PAGES = 50
ROUNDS = 10
STATE_SECONDS = 0.2
FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0
LISTS = ("tools", "prompts", "resources")
PROGRESS = "notifications/progress"

Elicit = Callable[[Table], Awaitable[Table]]
"""A function that asks the user a server's question, and returns the answer in the form of the protocol."""
Show = Callable[[str], None]


class Client:
    """A client of one server. Call `over_stdio` or `over_http` first, then `connect`. A refusal of the server is raised
    as an RpcError."""

    def __init__(
        self, folder: Path, elicit: Elicit, changed: Callable[[str], None], ended: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._elicit = elicit
        self._changed = changed
        self._ended = ended
        self._peer = Peer(self._send, self._answer, self._told)
        self._transport: StdioTransport | HttpTransport | None = None
        self._shown: dict[int, Show] = {}
        self._meta: Table = {}
        self._listening: asyncio.Task[None] | None = None
        self.offers: Table = {}
        """The server's capabilities."""
        self.version = ""
        self.about: Table = {}
        """The server's name and version."""

    async def over_stdio(self, launch: Launch) -> None:
        self._transport = transport = StdioTransport(self._peer.take_line, self._gone)
        await transport.start(launch)

    def over_http(self, url: str, headers: Headers) -> None:
        self._transport = HttpTransport(url, headers, self._peer.take, self._peer.fail, self._gone)

    async def connect(self) -> None:
        """Connects with a handshake, as most servers expect. If the server refuses the handshake, the newer version of
        the protocol is tried."""
        try:
            await self._initialize()
        except RpcError as refusal:
            if refusal.code in (GONE, LOGIN_NEEDED):
                raise
            try:
                await self._discover()
            except RpcError:
                raise refusal from None

    async def list(self, kind: str) -> list[Table]:
        """Returns all `tools`, `prompts` or `resources`; an empty list if the server does not offer this kind."""
        if kind not in self.offers:
            return []
        entries: list[Table] = []
        cursor: Any = None
        for _ in range(PAGES):
            try:
                page = await self.request(f"{kind}/list", {"cursor": cursor} if cursor else {})
            except RpcError as problem:
                if problem.code == METHOD_NOT_FOUND:
                    break
                raise
            entries += tables(page.get(kind))
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return entries

    async def request(self, method: str, params: Table, show: Show | None = None) -> Table:
        """Returns the result of a request. If the server needs more input, the user is asked, and the request is sent
        again with the answer."""
        input_response: Table = {}
        for _ in range(ROUNDS):
            number = self._peer.next_number()
            meta = self._meta | ({"progressToken": number} if show else {})
            full_params = {**params, **input_response, **({"_meta": meta} if meta else {})}
            if show:
                self._shown[number] = show
            try:
                result: Any = await self._peer.request(method, full_params, number)
            finally:
                self._shown.pop(number, None)
            result_table = as_table(result)
            if result_table.get("resultType") != "input_required":
                return result_table
            input_response = await self._given_input(result_table)
        raise RpcError(GONE, "it went on asking for input")

    async def aclose(self) -> None:
        self._peer.close("it was ended")
        if self._listening:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        if self._transport:
            await self._transport.aclose()

    async def _initialize(self) -> None:
        params = {"protocolVersion": NEWEST, "capabilities": self._capabilities(), "clientInfo": _who()}
        handshake = as_table(await self._peer.request("initialize", params))
        self.version = str(handshake.get("protocolVersion", ""))
        if self.version not in HANDSHAKES:
            raise RpcError(UNSUPPORTED_VERSION, f"it speaks version {self.version or '?'} of the protocol only")
        self._learn(handshake, handshake.get("serverInfo"))
        self._peer.notify("notifications/initialized")
        if isinstance(self._transport, HttpTransport):
            await self._transport.delivered()
            self._transport.listen()

    async def _discover(self) -> None:
        """Connects by the newer version of the protocol: there is no session, and every request says what a handshake
        would have said."""
        self._meta = {
            f"{META}protocolVersion": STATELESS,
            f"{META}clientInfo": _who(),
            f"{META}clientCapabilities": self._capabilities(),
        }
        self.version = STATELESS
        if isinstance(self._transport, HttpTransport):
            self._transport.version, self._transport.stateless = STATELESS, True
        discovery = await self.request("server/discover", {})
        if STATELESS not in discovery.get("supportedVersions", ()):
            raise RpcError(UNSUPPORTED_VERSION, "no common version of the protocol")
        server_info = as_table(discovery.get("_meta")).get(f"{META}serverInfo")
        self._learn(discovery, server_info or discovery.get("serverInfo"))
        changing_kinds = [kind for kind in LISTS if as_table(self.offers.get(kind)).get("listChanged")]
        if changing_kinds:
            self._listening = asyncio.create_task(self._listen(changing_kinds))

    async def _listen(self, kinds: Collection[str]) -> None:
        """Waits for changes by the newer version of the protocol: one request stays open, and the server's
        notifications are its answer. If the request breaks off, it is sent again. Changes in between were missed, so
        the lists are read anew."""
        notifications = {f"{kind}ListChanged": True for kind in kinds}
        wait_seconds = FIRST_WAIT
        while True:
            began_at = asyncio.get_running_loop().time()
            try:
                await self.request("subscriptions/listen", {"notifications": notifications})
            except RpcError as problem:
                if problem.code != GONE:
                    return
            was_connected_long = asyncio.get_running_loop().time() - began_at > LONGEST_WAIT
            wait_seconds = FIRST_WAIT if was_connected_long else min(wait_seconds * 2, LONGEST_WAIT)
            await asyncio.sleep(wait_seconds)
            for kind in kinds:
                self._changed(kind)

    def _learn(self, result: Table, about: Any) -> None:
        self.offers = as_table(result.get("capabilities"))
        self.about = as_table(about)
        if isinstance(self._transport, HttpTransport):
            self._transport.version = self.version

    def _capabilities(self) -> Table:
        return {"roots": {}, "elicitation": {"form": {}}}

    def _send(self, message: Table) -> None:
        if self._transport is None:
            raise RpcError(GONE, "the server is not running")
        self._transport.send(message)

    async def _answer(self, method: str, params: Table) -> Table:
        match method:
            case "ping":
                return {}
            case "roots/list":
                return {"roots": [{"uri": self._folder.as_uri(), "name": self._folder.name or "/"}]}
            case "elicitation/create":
                return await self._elicit(params)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not offered")

    async def _given_input(self, wanted: Table) -> Table:
        answers: Table = {}
        for key, raw_request in as_table(wanted.get("inputRequests")).items():
            request = as_table(raw_request)
            answers[key] = await self._answer(str(request.get("method", "")), as_table(request.get("params")))
        if not answers:
            await asyncio.sleep(STATE_SECONDS)
        state_field = {"requestState": wanted["requestState"]} if "requestState" in wanted else {}
        return {"inputResponses": answers, **state_field}

    def _told(self, method: str, params: Table) -> None:
        if method == PROGRESS and (show_progress := self._shown.get(params.get("progressToken", 0))):
            show_progress(_progress(params))
        elif method.endswith("/list_changed"):
            self._changed(method.split("/")[1])

    def _gone(self, why: str) -> None:
        self._peer.close(why)
        self._ended(why)


def _who() -> Table:
    return {"name": "duckflow", "version": __version__}


def _progress(params: Table) -> str:
    progress, total, message = params.get("progress"), params.get("total"), params.get("message")
    figures = f"{progress:g}/{total:g}" if isinstance(progress, int | float) and isinstance(total, int | float) else ""
    return " ".join(part for part in (figures, str(message or "")) if part) or (f"{progress:g}" if progress else "")

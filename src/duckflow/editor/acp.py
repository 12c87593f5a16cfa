"""The Agent Client Protocol: what an editor can ask of Duckflow, and for which of its sessions.

`initialize` is answered before anything large is loaded; a session loads the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from duckflow import __version__
from duckflow.editor.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    NOT_FOUND,
    JsonRpc,
    LineStreams,
    Params,
    RpcError,
    text_in,
)
from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words

if TYPE_CHECKING:
    from duckflow.editor.session import EditorSession, HeldConversation

log = logging.getLogger(__name__)

PROTOCOL = 1
PAGE = 100


class ListedSession(NamedTuple):
    """A session that can be gone on with; `updated` as ISO 8601 has it."""

    session_id: str
    folder: str
    title: str
    updated: str


class Conversations(Protocol):
    """Where the conversations of editors come from. What cannot be done raises a DuckflowError."""

    async def load(self) -> None:
        """All that a conversation needs; nobody waits for it."""
        ...

    async def begin(self, folder: Path, mcp_servers: Sequence[Any]) -> "HeldConversation": ...

    async def resume(self, session_id: str, folder: Path, mcp_servers: Sequence[Any]) -> "HeldConversation": ...

    def all(self, folder: Path | None) -> Sequence[ListedSession]: ...


class AcpAgent:
    """One editor, any number of sessions."""

    def __init__(self, conversations: Conversations, words: Words) -> None:
        self._conversations = conversations
        self._words = words
        self._sessions: dict[str, EditorSession] = {}
        self._loading: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        methods: dict[str, Callable[[Params], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_option,
        }
        self._rpc = JsonRpc(methods, self._send, self._describe)
        self._lines: LineStreams | None = None

    async def run(self, source: int, target: int) -> None:
        """Until the editor closes its end, or `leave`; then everything that was begun is ended."""
        self._lines = LineStreams(source, target, self._take)
        try:
            await self._over.wait()
        finally:
            sessions, self._sessions = list(self._sessions.values()), {}
            await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
            await self._rpc.close()
            await self._lines.flush()

    def leave(self) -> None:
        self._over.set()

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self.leave()
        elif not self._over.is_set():
            self._rpc.take(line)

    def _send(self, line: bytes) -> None:
        if self._lines:
            self._lines.send(line)

    def _describe(self, problem: Exception) -> RpcError:
        if isinstance(problem, RpcError):
            return problem
        if isinstance(problem, DuckflowError):
            code = NOT_FOUND if problem.key == "sessions.unknown" else INTERNAL_ERROR
            return RpcError(code, self._words.error(problem))
        log.error("a request broke off", exc_info=problem)
        return RpcError(INTERNAL_ERROR, self._words("turn.broke_off"))

    async def _initialize(self, _: Params) -> dict[str, Any]:
        self._loading = asyncio.create_task(self._conversations.load())
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "duckflow", "title": "Duckflow", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _authenticate(self, _: Params) -> dict[str, Any]:
        """Keys are a matter between the user and the models."""
        return {}

    async def _new(self, params: Params) -> dict[str, Any]:
        root = _folder(params)
        session = self._keep(await self._conversations.begin(root, _servers(params)), root)
        session.listen(from_start=False)
        return {"sessionId": session.session_id, **session.choices()}

    async def _load(self, params: Params) -> dict[str, Any]:
        session = await self._opened(params)
        session.listen(from_start=True)
        return session.choices()

    async def _resume(self, params: Params) -> dict[str, Any]:
        session = await self._opened(params)
        session.listen(from_start=False)
        return session.choices()

    async def _opened(self, params: Params) -> "EditorSession":
        """One that is open here already is not opened twice."""
        root, wanted = _folder(params), text_in(params, "sessionId")
        if session := self._sessions.get(wanted):
            return session
        return self._keep(await self._conversations.resume(wanted, root, _servers(params)), root)

    def _keep(self, held: "HeldConversation", root: Path) -> "EditorSession":
        from duckflow.editor.session import EditorSession

        session = EditorSession(held, root, self._rpc)
        self._sessions[session.session_id] = session
        # What follows must come after the answer: editors know the session only then.
        asyncio.get_running_loop().call_soon(session.announce)
        return session

    async def _list(self, params: Params) -> dict[str, Any]:
        folder = _folder(params) if params.get("cwd") else None
        cursor = str(params.get("cursor") or "0")
        if not cursor.isdecimal():
            raise RpcError(INVALID_PARAMS, "this cursor is none of ours")
        listed, start = await asyncio.to_thread(self._conversations.all, folder), int(cursor)
        sessions = [
            {"sessionId": one.session_id, "cwd": one.folder, "title": one.title, "updatedAt": one.updated}
            for one in listed[start : start + PAGE]
        ]
        more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(listed) else {}
        return {"sessions": sessions, **more}

    async def _close(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        del self._sessions[session.session_id]
        await session.close()
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        return await self._session(params).prompt(params.get("prompt"))

    async def _cancel(self, params: Params) -> None:
        self._session(params).cancel()

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        await self._session(params).choose("mode", text_in(params, "modeId"))
        return {}

    async def _set_model(self, params: Params) -> dict[str, Any]:
        await self._session(params).choose("model", text_in(params, "modelId"))
        return {}

    async def _set_option(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        await session.choose(text_in(params, "configId"), text_in(params, "value"))
        return {"configOptions": session.options()}

    def _session(self, params: Params) -> "EditorSession":
        session = self._sessions.get(text_in(params, "sessionId"))
        if session is None:
            raise RpcError(NOT_FOUND, self._words("editor.no_session", session=params["sessionId"]))
        return session


def _folder(params: Params) -> Path:
    folder = Path(text_in(params, "cwd"))
    if not folder.is_absolute():
        raise RpcError(INVALID_PARAMS, "cwd must be an absolute path")
    return folder


def _servers(params: Params) -> Sequence[Any]:
    servers: Any = params.get("mcpServers") or []
    if not isinstance(servers, list):
        raise RpcError(INVALID_PARAMS, "mcpServers must be a list")
    return cast("list[Any]", servers)

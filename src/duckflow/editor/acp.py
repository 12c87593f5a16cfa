"""The Agent Client Protocol: answers the requests of an editor for any of its sessions. `initialize` is answered before
anything large is loaded; the first session loads what is missing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from duckflow import __version__
from duckflow.editor.streams import MessageStreams, read_message
from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words
from duckflow.rpc import BAD_PARAMS, INTERNAL, METHOD_NOT_FOUND, Peer, RpcError
from duckflow.state.data import as_table

if TYPE_CHECKING:
    from duckflow.editor.session import EditorSession, HeldConversation

log = logging.getLogger(__name__)

PROTOCOL = 1
PAGE = 100
NOT_FOUND, CANCELLED = -32002, -32800
CANCEL = "$/cancel_request"
Params = dict[str, Any]


class ListedSession(NamedTuple):
    """A session that can be resumed; `updated` is in ISO 8601."""

    session_id: str
    folder: str
    title: str
    updated: str


class Setting(NamedTuple):
    """The surroundings of a session: the work folder, further folders, and MCP servers that the editor offers."""

    folder: Path
    added: Sequence[str]
    mcp_servers: Sequence[Any]


class Conversations(Protocol):
    """Opens the conversations of editors. Failures raise a DuckflowError."""

    async def load(self) -> None:
        """Loads in the background everything that a conversation needs."""
        ...

    async def has_model(self) -> bool:
        """Says whether a new session would find a model now."""
        ...

    async def begin(self, setting: Setting) -> "HeldConversation": ...

    async def resume(self, session_id: str, setting: Setting) -> "HeldConversation": ...

    def all(self, folder: Path | None) -> Sequence[ListedSession]: ...


class AcpAgent:
    """Serves one editor with any number of sessions."""

    def __init__(self, conversations: Conversations, words: Words) -> None:
        self._conversations = conversations
        self._words = words
        self._sessions: dict[str, EditorSession] = {}
        self._loading: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._methods: dict[str, Callable[[Params], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_option,
        }
        self._peer = Peer(self._send, self._answer, self._told, cancelled=CANCEL)
        self._streams: MessageStreams | None = None

    async def run(self, source: int, target: int) -> None:
        """Answers the editor until it closes the input, or `leave` is called; then ends all sessions."""
        self._streams = MessageStreams(source, target, self._take)
        try:
            await self._over.wait()
        finally:
            sessions, self._sessions = list(self._sessions.values()), {}
            await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
            self._peer.close("the editor has gone")
            await self._streams.flush()

    def leave(self) -> None:
        self._over.set()

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self.leave()
        elif line.strip() and not self._over.is_set():
            try:
                self._peer.take(read_message(line))
            except RpcError as problem:
                error = {"code": problem.code, "message": problem.message}
                self._send({"jsonrpc": "2.0", "id": None, "error": error})

    def _send(self, message: dict[str, Any]) -> None:
        if self._streams:
            self._streams.send(message)

    async def _answer(self, name: str, params: Params) -> Any:
        if name not in self._methods:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {name}")
        try:
            return await self._methods[name](params)
        except DuckflowError as problem:
            usage_code = BAD_PARAMS if isinstance(problem, UsageError) else INTERNAL
            code = NOT_FOUND if problem.key == "sessions.unknown" else usage_code
            raise RpcError(code, self._words.error(problem)) from None
        except asyncio.CancelledError:
            raise RpcError(CANCELLED, "cancelled") from None
        except RpcError:
            raise
        except Exception:
            log.exception("a request broke off")
            raise RpcError(INTERNAL, self._words("turn.broke_off")) from None

    def _told(self, name: str, params: Params) -> None:
        """Handles the editor's notifications. Only `session/cancel` has an effect."""
        session = self._sessions.get(str(params.get("sessionId")))
        if name == "session/cancel" and session:
            session.cancel()

    async def _initialize(self, params: Params) -> dict[str, Any]:
        self._loading = asyncio.create_task(self._conversations.load())
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "duckflow", "title": "Duckflow", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
            },
            "authMethods": [self._set_up_method(params)],
        }

    def _set_up_method(self, params: Params) -> dict[str, Any]:
        """Offers the set-up. An editor that opens terminals appends `args` to the command that it started; in any other
        editor, the user is told what to run."""
        if not _opens_terminals(as_table(params.get("clientCapabilities"))):
            return {
                "id": "init",
                "name": self._words("editor.is_set_up"),
                "description": self._words("editor.no_model"),
            }
        name, description = self._words("editor.auth"), self._words("editor.auth_about")
        return {"id": "init", "name": name, "description": description, "type": "terminal", "args": ["init"], "env": {}}

    async def _authenticate(self, _: Params) -> dict[str, Any]:
        """Succeeds once a model is set up. The terminal that the editor opens asks for keys, and never this process."""
        from duckflow.editor.session import SET_UP_NEEDED

        if not await self._conversations.has_model():
            raise RpcError(SET_UP_NEEDED, self._words("editor.no_model"))
        return {}

    async def _new(self, params: Params) -> dict[str, Any]:
        setting = _setting(params)
        session = self._keep(await self._conversations.begin(setting), setting.folder)
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
        """Returns the session of this id. It is opened if it is not open here yet."""
        setting, wanted_id = _setting(params), text_in(params, "sessionId")
        if session := self._sessions.get(wanted_id):
            return session
        return self._keep(await self._conversations.resume(wanted_id, setting), setting.folder)

    def _keep(self, held: "HeldConversation", root: Path) -> "EditorSession":
        from duckflow.editor.session import EditorSession

        session = EditorSession(held, root, self._peer, self._notify)
        self._sessions[session.session_id] = session
        # Updates must come after the answer, because editors know the session only then.
        asyncio.get_running_loop().call_soon(session.announce)
        return session

    def _notify(self, session_id: str, update: dict[str, Any]) -> None:
        self._peer.notify("session/update", {"sessionId": session_id, "update": update})

    async def _list(self, params: Params) -> dict[str, Any]:
        folder = _folder(params) if params.get("cwd") else None
        cursor = str(params.get("cursor") or "0")
        if not cursor.isdecimal():
            raise RpcError(BAD_PARAMS, "this cursor is none of ours")
        summaries, start = await asyncio.to_thread(self._conversations.all, folder), int(cursor)
        sessions = [
            {"sessionId": entry.session_id, "cwd": entry.folder, "title": entry.title, "updatedAt": entry.updated}
            for entry in summaries[start : start + PAGE]
        ]
        cursor_field = {"nextCursor": str(start + PAGE)} if start + PAGE < len(summaries) else {}
        return {"sessions": sessions, **cursor_field}

    async def _close(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        del self._sessions[session.session_id]
        await session.close()
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        return await self._session(params).prompt(params.get("prompt"))

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


def _opens_terminals(capabilities: dict[str, Any]) -> bool:
    """Says whether the editor can start the agent's command in a terminal. Older editors say so in `_meta`."""
    opens_terminal = as_table(capabilities.get("auth")).get("terminal")
    return opens_terminal not in (None, False) or as_table(capabilities.get("_meta")).get("terminal-auth") is True


def text_in(params: Params, name: str) -> str:
    """Returns a parameter that must exist and be a text."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(BAD_PARAMS, f"{name} must be a string")
    return value


def _folder(params: Params) -> Path:
    folder = Path(text_in(params, "cwd"))
    if not folder.is_absolute():
        raise RpcError(BAD_PARAMS, "cwd must be an absolute path")
    return folder


def _setting(params: Params) -> Setting:
    added_folders, servers = _list_in(params, "additionalDirectories"), _list_in(params, "mcpServers")
    if not all(isinstance(path, str) for path in added_folders):
        raise RpcError(BAD_PARAMS, "additionalDirectories must be a list of paths")
    return Setting(_folder(params), added_folders, servers)


def _list_in(params: Params, name: str) -> list[Any]:
    value: Any = params.get(name) or []
    if not isinstance(value, list):
        raise RpcError(BAD_PARAMS, f"{name} must be a list")
    return cast("list[Any]", value)

"""Duckflow as a server of the Model Context Protocol, with two tools: one starts a conversation, one continues it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, cast

from duckflow import __version__
from duckflow.errors import DuckflowError
from duckflow.events.ports import InnerConversation
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.rpc import BAD_PARAMS, METHOD_NOT_FOUND, Message, Peer, RpcError
from duckflow.server.mcp_turn import McpTurn
from duckflow.state.mode import OFFERED

Table = dict[str, Any]
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
START, REPLY = "duckflow", "duckflow_reply"
TEXT = {"type": "string"}
RESULT = {
    "type": "object",
    "properties": {
        "sessionId": TEXT,
        "content": TEXT,
        "files_changed": {"type": "array", "items": TEXT},
        "evidence": {"type": "array", "items": {"type": "object"}},
        "outcome": TEXT,
    },
    "required": ["sessionId", "content", "files_changed", "evidence"],
}


class Wish(NamedTuple):
    """The arguments of a client's call: the folder, mode and model of a new conversation, or the session to
    continue."""

    cwd: str = ""
    mode: str = ""
    model: str = ""
    session: str = ""


class OpenConversation(NamedTuple):
    """A conversation, and the function that closes it and everything that was started for it."""

    conversation: InnerConversation
    close: Callable[[], Awaitable[None]]


class Opener(Protocol):
    """Opens conversations. Raises a DuckflowError if a conversation cannot be opened."""

    def __call__(self, wish: Wish) -> OpenConversation: ...


class McpServer:
    """Answers a client's lines one by one until the client closes the input. Conversations stay open until then."""

    def __init__(self, open_conversation: Opener, words: Words, write: Callable[[Message], None]) -> None:
        self._open = open_conversation
        self._words = words
        self._peer = Peer(write, self._answer, lambda method, params: None)
        self._conversations: dict[str, OpenConversation] = {}
        self._elicits = False

    async def serve(self, lines: "asyncio.Queue[bytes | None]") -> None:
        """Answers the lines of the queue. A None in the queue means that no further line comes."""
        try:
            while (line := await lines.get()) is not None:
                self._peer.take_line(line)
                # Calls that need no work are answered even if the input ends right after them.
                await asyncio.sleep(0)
        finally:
            self._peer.close("the client has gone")
            for open_conversation in self._conversations.values():
                await open_conversation.close()

    async def _answer(self, method: str, params: Table) -> Table:
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self._tools()}
            case "tools/call":
                return await self._call(params)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not offered")

    def _initialize(self, params: Table) -> Table:
        capabilities: Any = params.get("capabilities")
        self._elicits = isinstance(capabilities, dict) and "elicitation" in cast("Table", capabilities)
        asked_version = params.get("protocolVersion")
        return {
            "protocolVersion": asked_version if asked_version in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "duckflow", "version": __version__},
        }

    def _tools(self) -> list[Table]:
        words = self._words
        prompt_field = {"prompt": {**TEXT, "description": words("serve.prompt")}}
        session_field = {"sessionId": {**TEXT, "description": words("serve.session")}}
        start_fields = prompt_field | {
            "cwd": {**TEXT, "description": words("serve.cwd")},
            "mode": {**TEXT, "enum": [str(mode) for mode in OFFERED], "description": words("serve.mode")},
            "model": {**TEXT, "description": words("serve.model")},
        }
        return [
            {
                "name": name,
                "description": words(f"serve.{name}"),
                "inputSchema": {"type": "object", "properties": properties, "required": required_names},
                "outputSchema": RESULT,
                "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            }
            for name, properties, required_names in (
                (START, start_fields, ["prompt"]),
                (REPLY, session_field | prompt_field, ["sessionId", "prompt"]),
            )
        ]

    async def _call(self, params: Table) -> Table:
        name, arguments = params.get("name"), cast("Table", params.get("arguments") or {})
        if name not in (START, REPLY):
            raise RpcError(BAD_PARAMS, f"there is no tool {name!r}; there are {START} and {REPLY}")
        prompt = str(arguments.get("prompt", "")).strip()
        if not prompt:
            raise RpcError(BAD_PARAMS, "prompt is missing")
        wish = Wish(*(str(arguments.get(key) or "") for key in ("cwd", "mode", "model")))
        if name == REPLY:
            wish = Wish(session=str(arguments.get("sessionId", "")))
        if wish.mode and wish.mode not in [str(mode) for mode in OFFERED]:
            raise RpcError(BAD_PARAMS, f"mode is one of {', '.join(OFFERED)}")
        try:
            conversation = self._conversation(wish)
        except DuckflowError as problem:
            return {"content": [{"type": "text", "text": plain(self._words.error(problem))}], "isError": True}
        return await McpTurn(conversation, self._words, self._elicit(), self._progress(params)).run(prompt)

    def _conversation(self, wish: Wish) -> InnerConversation:
        if known_conversation := self._conversations.get(wish.session):
            return known_conversation.conversation
        open_conversation = self._open(wish)
        self._conversations[open_conversation.conversation.state.session_id] = open_conversation
        return open_conversation.conversation

    def _elicit(self) -> Callable[[Table], Awaitable[Table]] | None:
        async def put(form: Table) -> Table:
            form_answer: Any = await self._peer.request("elicitation/create", form)
            return cast("Table", form_answer) if isinstance(form_answer, dict) else {}

        return put if self._elicits else None

    def _progress(self, params: Table) -> Callable[[str], None]:
        meta: Any = params.get("_meta")
        token = cast("Table", meta).get("progressToken") if isinstance(meta, dict) else None
        steps = 0

        def tell(text: str) -> None:
            nonlocal steps
            steps += 1
            if token is not None:
                progress = {"progressToken": token, "progress": steps, "message": text}
                self._peer.notify("notifications/progress", progress)

        return tell

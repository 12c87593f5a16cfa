"""An editor: the protocol's own SDK as the client, `duckflow acp` as a real process."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from tests.cli.shell import Shell
from tests.forked_program import ForkedProgram

if TYPE_CHECKING:
    # The SDK is slow to import, so it is not imported while tests are collected.
    from acp import Client
    from acp.client.connection import ClientSideConnection
    from acp.connection import StreamEvent
    from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

SECONDS = 60.0
LONGEST_LINE = 16 * 1024 * 1024
Json = dict[str, Any]


class Editor:
    """Notes every update, and answers permission requests with `answers` in order; without any left it leaves them
    open. Nothing that was sent may be unknown to the protocol's schema."""

    def __init__(self, *answers: str) -> None:
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        for answer in answers:
            self.answer(answer)
        self.updates: list[Json] = []
        self.requests: list[Json] = []
        self.errors: list[str] = []
        self.heard = asyncio.Event()
        self._raw: list[Json] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        told = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        raw = self._raw.pop(0)
        if _without_nothing(raw) != told:
            self.errors.append(f"{raw} was read as {told}")
        self.updates.append(told | {"sessionId": session_id})
        self.heard.set()

    async def request_permission(
        self, session_id: str, tool_call: "ToolCallUpdate", options: "list[PermissionOption]", **kwargs: Any
    ) -> "RequestPermissionResponse":
        from acp.schema import RequestPermissionResponse

        call = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        offered = [option.model_dump(mode="json", by_alias=True, exclude_none=True) for option in options]
        self.requests.append({"toolCall": call, "options": offered})
        self.heard.set()
        answer = await self._answers.get()
        outcome = {"outcome": "selected", "optionId": answer} if answer else {"outcome": "cancelled"}
        return RequestPermissionResponse.model_validate({"outcome": outcome})

    def answer(self, option: str) -> None:
        """Answers the next request; None means no answer."""
        self._answers.put_nowait(option)

    def observe(self, event: "StreamEvent") -> None:
        from acp.connection import StreamDirection

        message = event.message
        if event.direction is StreamDirection.INCOMING and message.get("method") == "session/update":
            self._raw.append(message["params"]["update"])

    def all(self, kind: str) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.all(kind))

    def calls(self) -> dict[str, Json]:
        """Returns each tool call after all its updates."""
        calls: dict[str, Json] = {}
        for update in self.updates:
            if "toolCallId" in update:
                calls.setdefault(update["toolCallId"], {}).update(update)
        return calls

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(SECONDS):
            while not true():
                await self.heard.wait()
                self.heard.clear()


class Session:
    """One session of an editor."""

    def __init__(self, connection: "ClientSideConnection", editor: Editor, session_id: str) -> None:
        self.connection = connection
        self.editor = editor
        self.id = session_id

    async def say(self, text: str, *more: Any) -> str:
        """Sends a prompt and returns the reason why the turn stopped."""
        from acp import text_block

        async with asyncio.timeout(SECONDS):
            return (await self.connection.prompt(session_id=self.id, prompt=[text_block(text), *more])).stop_reason


@asynccontextmanager
async def at(shell: Shell, editor: Editor, *arguments: str) -> AsyncGenerator["ClientSideConnection"]:
    """Opens an initialized connection."""
    from acp.client.connection import ClientSideConnection

    (read_input, write_input), (read_output, write_output) = os.pipe(), os.pipe()
    streams = (read_input, write_output, sys.__stderr__.fileno() if sys.__stderr__ else 2)
    program = ForkedProgram(["acp", *arguments], shell.work, shell.environment, streams)
    os.close(read_input)
    os.close(write_output)
    reader, writer = await _streams(read_output, write_input)
    connection = ClientSideConnection(cast("Client", editor), writer, reader, observers=[editor.observe])
    try:
        answer = await connection.initialize(protocol_version=1)
        assert answer.agent_capabilities and answer.agent_capabilities.load_session
        yield connection
    except BaseException:
        program.kill()
        raise
    finally:
        await connection.close()
        writer.close()
        code = await asyncio.to_thread(program.wait, SECONDS)
    assert code == 0, "it ends by itself when its input ends"
    assert editor.errors == []


async def _streams(read: int, write: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Both ends of pipes as the SDK wants them."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb"))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(write, "wb"))
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


@asynccontextmanager
async def opened(shell: Shell, editor: Editor, *arguments: str) -> AsyncGenerator[Session]:
    async with at(shell, editor, *arguments) as connection:
        made = await connection.new_session(cwd=str(shell.work), mcp_servers=[])
        yield Session(connection, editor, made.session_id)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return {name: _without_nothing(one) for name, one in given.items() if one is not None}
    return [_without_nothing(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

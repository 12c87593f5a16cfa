"""All servers of a conversation, and their tools in its toolbox. The offered tools change only between turns."""

import asyncio
import fnmatch
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from duckflow.events.ports import Ask
from duckflow.rpc import RpcError
from duckflow.state.data import tables, text_of
from duckflow.state.phrase import Phrase
from duckflow.tools.outside.content import Content, KeptOutputs, TakePicture, join, read_block, read_resource
from duckflow.tools.outside.elicitation import elicit
from duckflow.tools.outside.outside_tool import OutsideTool, operation_names
from duckflow.tools.outside.search_tools import CallTool, FindTools, ReadKept
from duckflow.tools.outside.server import BroughtServer, OutsideServer, Tokens, no_token
from duckflow.tools.settings import McpSettings, ServerSettings
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox

Table = dict[str, Any]
APART_SECONDS = 0.05


class OutsideContext(NamedTuple):
    """The parts of a conversation that its servers need."""

    folder: Path
    outputs: Path
    ask: Ask
    notice: Callable[[Phrase], None]
    tokens_in: Callable[[str], int]
    tokens: Tokens = no_token
    take: TakePicture | None = None
    """A function that keeps a picture with the conversation."""


class OutsideServers:
    """The servers of a conversation. None runs before `start`; `offer` puts their tools into the toolbox."""

    def __init__(self, settings: McpSettings, around: OutsideContext) -> None:
        self.settings = settings
        self._around = around
        self._kept = KeptOutputs(around.outputs, settings.output_characters, around.take)
        self.servers: dict[str, OutsideServer] = {}
        self._tools: list[OutsideTool] = []
        self._offered: dict[str, str] = {}
        self.searched = False
        """True if there are too many tools to describe, so that the model searches for them."""

    def start(
        self, entries: Mapping[str, ServerSettings], brought: Mapping[str, BroughtServer] = MappingProxyType({})
    ) -> None:
        """Starts servers in the background. If a name is taken, the earlier server keeps it: the user's own come first.
        `brought` holds the servers of the work folder."""
        new_entries = {name: settings for name, settings in entries.items() if name not in self.servers}
        surroundings = self._around
        for number, (name, settings) in enumerate(new_entries.items()):
            brought_server = brought.get(name)
            server = OutsideServer(
                name,
                settings,
                surroundings.folder,
                self._elicit,
                surroundings.notice,
                surroundings.tokens,
                brought_server,
            )
            self.servers[name] = server
            # They start one after the other: starting many at once would slow down typing.
            server.start(number * APART_SECONDS)

    async def restart_brought(self) -> None:
        """Restarts the servers of the work folder, when what they may do there has changed."""
        await asyncio.gather(*(server.restart() for server in self.servers.values() if server.brought))

    async def first_answers(self) -> None:
        """Waits until every server has answered for the first time, or failed, or `wait_seconds` have passed."""
        first_tries = [server.tried.wait() for server in self.servers.values() if server.state == "starting"]
        if first_tries:
            tasks = [asyncio.ensure_future(wait) for wait in first_tries]
            _, late_tasks = await asyncio.wait(tasks, timeout=self.settings.wait_seconds)
            for task in late_tasks:
                task.cancel()

    @property
    def starting(self) -> list[str]:
        return [server.name for server in self.servers.values() if server.state == "starting"]

    def offer(self, toolbox: Toolbox, window: int) -> None:
        """Makes the toolbox offer what the servers offer now. It is called only between turns, because the tools are in
        the cached part of every request."""
        self._tools = self._all_tools()
        texts = {tool.operation: _text(tool) for tool in self._tools}
        self.searched = sum(map(self._around.tokens_in, texts.values())) > self.settings.prompt_share * window
        offers: dict[str, tuple[AnyTool, str, bool]] = {
            tool.operation: (tool, texts[tool.operation], not self.searched) for tool in self._tools
        }
        for tool in self._own_tools():
            offers[tool.operation] = (tool, _text(tool), True)
        for name in self._offered.keys() - offers.keys():
            toolbox.remove(name)
        for name, (tool, text, is_told) in offers.items():
            if self._offered.get(name) != f"{text} {is_told}":
                toolbox.add(tool, is_told)
        self._offered = {name: f"{text} {is_told}" for name, (_, text, is_told) in offers.items()}

    async def read_resource(self, mention: str) -> Content | None:
        """Returns the content of `server:uri`; None where no server of this name is known."""
        name, colon, uri = mention.partition(":")
        server = self.servers.get(name)
        if server is None or not colon or not uri:
            return None
        async with asyncio.timeout(server.settings.call_seconds):
            result = await server.call("resources/read", {"uri": uri})
        return join(
            [read_resource(resource, name, self._kept) for resource in tables(result.get("contents"))], name, self._kept
        )

    async def prompt_text(self, server: OutsideServer, name: str, arguments: Mapping[str, str]) -> str:
        """Returns the text of a server's prompt, ready to be sent as a message."""
        async with asyncio.timeout(server.settings.call_seconds):
            result = await server.call("prompts/get", {"name": name, "arguments": dict(arguments)})
        contents = [message.get("content") for message in tables(result.get("messages"))]
        blocks = [
            block for content in contents for block in tables(content if isinstance(content, list) else [content])
        ]
        parts = [read_block(block, server.name, self._kept).text for block in blocks]
        if not any(parts):
            raise RpcError(-32000, "the prompt is empty")
        return "\n\n".join(filter(None, parts))

    def resources(self) -> list[str]:
        """Returns `server:uri` for every resource that can be mentioned."""
        return [
            f"{server.name}:{uri}"
            for server in self.servers.values()
            for resource in server.lists["resources"]
            if (uri := text_of(resource, "uri"))
        ]

    async def aclose(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self.servers.values()), return_exceptions=True)

    def _elicit(self, name: str) -> Callable[[Table], Any]:
        return lambda params: elicit(self._around.ask, self._around.notice, name, params)

    def _all_tools(self) -> list[OutsideTool]:
        """Returns the tools of all servers, also of those that are down for a moment, because they come back."""
        listed_tools = [
            (server, tool, text_of(tool, "name"))
            for server in self.servers.values()
            if server.state != "off"
            for tool in server.lists["tools"]
            if text_of(tool, "name")
        ]
        permitted_tools = [
            entry for entry in listed_tools if not self._named(entry[0].name, entry[2], self.settings.deny)
        ]
        names = operation_names({(server.name, name): None for server, _, name in permitted_tools})
        return [
            OutsideTool(
                names[server.name, name], server, tool, self._kept, self._named(server.name, name, self.settings.allow)
            )
            for server, tool, name in permitted_tools
        ]

    def _own_tools(self) -> Sequence[AnyTool]:
        if not self._tools:
            return ()
        read_tool = ReadKept(self._kept, self.read_resource)
        if not self.searched:
            return (read_tool,)
        names = dict.fromkeys(tool.server.name for tool in self._tools)
        return (FindTools(lambda: self._tools, names), CallTool(lambda: self._tools), read_tool)

    def _named(self, server: str, tool: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(f"{server}/{tool}", pattern) for pattern in patterns)


def _text(tool: AnyTool) -> str:
    told_text = " ".join([*(tool.told or {}).values(), tool.more])
    return f"{tool.operation} {tool.effect} {told_text} {json.dumps(tool.parameters(), ensure_ascii=False)}"

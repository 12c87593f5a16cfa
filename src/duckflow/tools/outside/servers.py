"""All servers of a conversation, and their tools in its toolbox. The tools that the model is offered change only
between turns. Where there are very many, the model searches for tools and calls them by name."""

import asyncio
import fnmatch
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.events.ports import Ask
from duckflow.rpc import RpcError
from duckflow.state.action import Action
from duckflow.state.data import Phrase, say, tables, text_of
from duckflow.tools.outside.content import Content, KeptOutputs, TakePicture, join, read_block, read_resource
from duckflow.tools.outside.elicitation import elicit
from duckflow.tools.outside.outside_tool import OutsideTool, operation_names
from duckflow.tools.outside.server import BroughtServer, OutsideServer, Tokens, no_token
from duckflow.tools.settings import McpSettings, ServerSettings
from duckflow.tools.tool import AnyTool, Args, Done, Tool
from duckflow.tools.toolbox import Toolbox
from duckflow.whole_text import read_json

Table = dict[str, Any]
APART_SECONDS = 0.05


class OutsideContext(NamedTuple):
    """The parts of a conversation that its servers use."""

    folder: Path
    outputs: Path
    ask: Ask
    notice: Callable[[Phrase], None]
    tokens_in: Callable[[str], int]
    tokens: Tokens = no_token
    take: TakePicture | None = None
    """A function that keeps a picture with the conversation."""


class OutsideServers:
    """The servers of a conversation. No server runs before `start` is called; `offer` puts their tools into the
    toolbox."""

    def __init__(self, settings: McpSettings, around: OutsideContext) -> None:
        self.settings = settings
        self._around = around
        self._kept = KeptOutputs(around.outputs, settings.output_characters, around.take)
        self.servers: dict[str, OutsideServer] = {}
        self._tools: list[OutsideTool] = []
        self._offered: dict[str, str] = {}
        self.searched = False
        """True if there are too many tools to describe, so that the model must search for them."""

    def start(
        self, entries: Mapping[str, ServerSettings], brought: Mapping[str, BroughtServer] = MappingProxyType({})
    ) -> None:
        """Starts servers in the background. If two servers have the same name, the earlier one keeps it: the user's own
        servers come first. `brought` holds the servers of the work folder."""
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
            # The servers start one after the other: starting many at once would slow down typing.
            server.start(number * APART_SECONDS)

    async def restart_brought(self) -> None:
        """Restarts the servers of the work folder. It is called when their permissions have changed."""
        await asyncio.gather(*(server.restart() for server in self.servers.values() if server.brought))

    async def first_answers(self) -> None:
        """Waits until every server has answered for the first time, or failed, or `wait_seconds` have passed."""
        first_tries = [server.tried.wait() for server in self.servers.values() if server.state == "starting"]
        if first_tries:
            tasks = [asyncio.ensure_future(first_try) for first_try in first_tries]
            _, late_tasks = await asyncio.wait(tasks, timeout=self.settings.wait_seconds)
            for task in late_tasks:
                task.cancel()

    @property
    def starting(self) -> list[str]:
        return [server.name for server in self.servers.values() if server.state == "starting"]

    def offer(self, toolbox: Toolbox, window: int) -> None:
        """Puts the tools that the servers have now into the toolbox. It is called only between turns, because the tools
        are in the cached part of every request."""
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
        for name, (tool, text, told_to_model) in offers.items():
            if self._offered.get(name) != f"{text} {told_to_model}":
                toolbox.add(tool, told_to_model)
        self._offered = {name: f"{text} {told_to_model}" for name, (_, text, told_to_model) in offers.items()}

    async def read_resource(self, mention: str) -> Content | None:
        """Returns the content of `server:uri`; None where no server of this name is known."""
        name, colon, uri = mention.partition(":")
        server = self.servers.get(name)
        if server is None or not colon or not uri:
            return None
        async with asyncio.timeout(server.settings.call_seconds):
            answer = await server.call("resources/read", {"uri": uri})
        return join(
            [read_resource(resource, name, self._kept) for resource in tables(answer.get("contents"))], name, self._kept
        )

    async def prompt_text(self, server: OutsideServer, name: str, arguments: Mapping[str, str]) -> str:
        """Returns the text of a server's prompt, ready to be sent as a message."""
        async with asyncio.timeout(server.settings.call_seconds):
            answer = await server.call("prompts/get", {"name": name, "arguments": dict(arguments)})
        contents = [message.get("content") for message in tables(answer.get("messages"))]
        blocks = [
            block for content in contents for block in tables(content if isinstance(content, list) else [content])
        ]
        texts = [read_block(block, server.name, self._kept).text for block in blocks]
        if not any(texts):
            raise RpcError(-32000, "the prompt is empty")
        return "\n\n".join(filter(None, texts))

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
        """Returns the tools of all servers. Tools of servers that are down for a moment are included, because these
        servers come back."""
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
            OutsideTool(names[server.name, name], server, tool, self._kept, self._allowed(server.name, name))
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

    def _allowed(self, server: str, tool: str) -> bool:
        """Says whether the settings allow a tool. A folder chooses the names of its servers, and `a/b` is not `a`."""
        patterns = self.settings.allow
        return self._named(
            server, tool, [name for name in patterns if fnmatch.fnmatchcase(server, name.partition("/")[0])]
        )

    def _named(self, server: str, tool: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(f"{server}/{tool}", pattern) for pattern in patterns)


def _text(tool: AnyTool) -> str:
    description_text = " ".join([*(tool.told or {}).values(), tool.more])
    return f"{tool.operation} {tool.effect} {description_text} {json.dumps(tool.parameters(), ensure_ascii=False)}"


FOUND = 5
LISTED = 200
WORD = re.compile(r"[a-z0-9]+|[^\x00-\x7f]{2}", re.IGNORECASE)
NAME_WEIGHT = 3


class FindToolsArgs(Args):
    words: str


class FindTools(Tool[FindToolsArgs]):
    """Finds tools of the servers by words. It is offered in place of these tools where their descriptions would fill
    the prompt."""

    operation = "mcp.find"
    effect = "read"
    subject = ("words",)
    args = FindToolsArgs
    led = True
    counts_as = "search"

    def __init__(self, tools: Callable[[], Sequence[OutsideTool]], servers: Iterable[str]) -> None:
        self._tools = tools
        self.more = ", ".join(servers)

    async def run(self, args: FindToolsArgs) -> Done:
        tools = self._tools()
        matching_tools = ranked(args.words, tools)[:FOUND]
        lines = [
            f"{tool.operation}: {tool.about}\n  args: {json.dumps(tool.parameters(), ensure_ascii=False)}"
            for tool in matching_tools
        ]
        if not matching_tools:
            lines = ["Nothing fits. The tools there are:", ", ".join(tool.operation for tool in tools[:LISTED])]
        return Done("\n".join(lines), say("mcp.found", count=len(matching_tools), words=args.words))


def ranked(words: str, tools: Iterable[OutsideTool]) -> list[OutsideTool]:
    """Returns the tools that have a word in common with the query, the best match first. A rare word counts more than
    one that many tools have."""
    wanted_words = set(WORD.findall(words.lower()))
    texts = [(tool, f"{tool.server.name} {tool.name}".lower(), tool.about.lower()) for tool in tools]
    tool_counts = {
        word: sum(word in name or word in description for _, name, description in texts)
        for word in wanted_words
        if len(word) > 1
    }
    word_weights = {word: 1 / count for word, count in tool_counts.items() if count}
    scores = [
        (
            sum(word_weights[word] * (NAME_WEIGHT * (word in name) + (word in description)) for word in word_weights),
            tool,
        )
        for tool, name, description in texts
    ]
    return [tool for score, tool in sorted(scores, key=lambda entry: -entry[0]) if score > 0]


class CallArgs(Args):
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)


class CallTool(Tool[CallArgs]):
    """Calls the tool of the given name. The Gate (the question before risky actions), the journal and the limits on a
    turn see that tool in place of this one."""

    operation = "mcp.call"
    effect = "run"
    args = CallArgs
    led = True
    asked_for = frozenset({"args"})

    def __init__(self, tools: Callable[[], Sequence[OutsideTool]]) -> None:
        self._tools = tools

    def meant(self, action: Action) -> Action:
        tool_name = action.args.get("tool")
        arguments: Any = action.args.get("args") or {}
        if isinstance(arguments, str):
            # Some models write nested arguments as a text.
            arguments = read_json(arguments)
        if not isinstance(arguments, dict) or not any(tool.operation == tool_name for tool in self._tools()):
            return action
        return action.model_copy(update={"operation": tool_name, "args": arguments})

    async def run(self, args: CallArgs) -> Done:
        raise ToolError(
            f"there is no tool {args.tool!r}. Find its name with mcp.find.", "tool.unknown", operation=args.tool
        )

    def reads_only(self, args: CallArgs) -> bool:
        """Returns True, because only a call that names no known tool runs here, and it does nothing."""
        return True


class ReadKeptArgs(Args):
    source: str = Field(min_length=1)
    start: int = Field(default=0, ge=0)


class ReadKept(Tool[ReadKeptArgs]):
    """Shows the rest of a result that was too long, or reads a resource that a result of its server links to. Because
    the server learns which links are read, each link can be read only once per result. Any other address is read only
    where the user mentions it."""

    operation = "mcp.read"
    effect = "read"
    subject = ("source",)
    args = ReadKeptArgs

    def __init__(self, outputs: KeptOutputs, resource: Callable[[str], Awaitable[Content | None]]) -> None:
        """`resource` is a function that returns the content of `server:uri`."""
        self._kept = outputs
        self._resource = resource
        self._asked: dict[str, tuple[str, asyncio.Future[Content | None]]] = {}

    async def run(self, args: ReadKeptArgs) -> Done:
        if server := self._kept.linked.pop(args.source, ""):
            content = asyncio.ensure_future(self._resource(f"{server}:{args.source}"))
            self._asked[args.source] = server, content
        if args.source in self._asked:
            server, content = self._asked[args.source]
            try:
                text, pictures = await asyncio.shield(content) or Content("(no output)")
            except (RpcError, TimeoutError) as problem:
                raise ToolError(f"{args.source}: {problem or 'no answer in time'}", "tool.failed") from None
            return Done(text, say("mcp.read_linked", source=args.source, server=server), pictures=pictures)
        try:
            text = self._kept.read(args.source, args.start)
        except OSError:
            raise ToolError(f"nothing is kept as {args.source!r}", "tool.failed") from None
        return Done(text, say("mcp.read_on", source=args.source, start=args.start))

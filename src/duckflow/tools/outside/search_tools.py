"""Tools for servers that have many tools: the model searches for them and calls them by name. Outputs that were kept,
and linked resources, can be read."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.rpc import RpcError
from duckflow.state.action import Action
from duckflow.state.phrase import say
from duckflow.tools.outside.content import Content, KeptOutputs
from duckflow.tools.outside.outside_tool import OutsideTool
from duckflow.tools.tool import Args, Done, Tool
from duckflow.whole_text import read_json

FOUND = 5
LISTED = 200
WORD = re.compile(r"[a-z0-9]+|[^\x00-\x7f]{2}", re.IGNORECASE)
NAME_WEIGHT = 3


class FindToolsArgs(Args):
    words: str


class FindTools(Tool[FindToolsArgs]):
    """Stands for all tools of the servers where their descriptions would fill the prompt."""

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
        matches = ranked(args.words, tools)[:FOUND]
        lines = [
            f"{tool.operation}: {tool.about}\n  args: {json.dumps(tool.parameters(), ensure_ascii=False)}"
            for tool in matches
        ]
        if not matches:
            lines = ["Nothing fits. The tools there are:", ", ".join(tool.operation for tool in tools[:LISTED])]
        return Done("\n".join(lines), say("mcp.found", count=len(matches), words=args.words))


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
    """Stands for a call of the tool it names: the Gate, the journal and the Pacemaker see that tool."""

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
        """Returns True: a call that names no known tool does nothing."""
        return True


class ReadKeptArgs(Args):
    source: str = Field(min_length=1)
    start: int = Field(default=0, ge=0)


class ReadKept(Tool[ReadKeptArgs]):
    """Reads on in a result that was too long, or reads a resource that a server's own result links to. The server
    learns from the choice, so each link can be fetched only once per result. Any other address is only read where the
    user mentions it."""

    operation = "mcp.read"
    effect = "read"
    subject = ("source",)
    args = ReadKeptArgs

    def __init__(self, outputs: KeptOutputs, resource: Callable[[str], Awaitable[Content | None]]) -> None:
        """`resource` reads `server:uri`."""
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

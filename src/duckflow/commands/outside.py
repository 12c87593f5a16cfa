"""`/mcp` shows the MCP servers and their states. The prompts of these servers are commands: `/server:prompt`."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from duckflow.state.data import quote, shorten, tables, text_of

if TYPE_CHECKING:
    from duckflow.tools.outside.server import OutsideServer
    from duckflow.tools.outside.servers import OutsideServers

HELP = 90
MARKS = {"ready": "✓", "failed": "✗", "login": "✗", "off": "–"}
Prompt = dict[str, Any]


class OutsideCommands:
    """The commands of the servers. If no server is configured, there is only `/mcp`, which says so."""

    def __init__(
        self, find: "Callable[[], OutsideServers] | None" = None, ready: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`ready` starts the servers if no chat or turn has done so yet."""
        self._find = find
        self._ready = ready

    def group(self) -> Group:
        return (Command("mcp", self._mcp, ("restart",)),)

    def commands(self) -> Iterator[Command]:
        for server in self._servers().values():
            for prompt in server.lists["prompts"]:
                if name := text_of(prompt, "name"):
                    description = f"{_usage(prompt)} · {text_of(prompt, 'description', 'title')}".strip(" ·")
                    help_text = quote(shorten(description, HELP))
                    command_name = "_".join(f"{server.name}:{name}".split())
                    yield Command(command_name, partial(self._prompt, server, prompt), own_help=help_text)

    def _servers(self) -> "dict[str, OutsideServer]":
        return self._find().servers if self._find else {}

    async def look(self) -> None:
        """Starts the servers if needed. Running servers report changes by themselves."""
        if self._ready:
            await self._ready()

    async def _mcp(self, context: CommandContext, arguments: str) -> str:
        await self.look()
        words, servers = context.words, self._servers()
        verb, _, name = arguments.partition(" ")
        if not servers:
            return words("mcp.none")
        if not arguments:
            return "\n".join(server_line(server, words) for server in servers.values())
        name = name.strip() if verb == "restart" else arguments
        if name not in servers:
            raise UsageError("mcp.unknown", name=name, known=", ".join(servers))
        server = servers[name]
        if verb == "restart":
            await server.restart()
            await server.tried.wait()
            return server_line(server, words)
        lines = [server_line(server, words)]
        lines += [f"  {text_of(tool, 'name')}: {_brief(tool)}" for tool in server.lists["tools"]]
        lines += [f"  @{name}:{text_of(resource, 'uri')}" for resource in server.lists["resources"]]
        lines += [f"  /{name}:{text_of(prompt, 'name')} {_brief(prompt)}" for prompt in server.lists["prompts"]]
        return "\n".join(lines)

    async def _prompt(self, server: "OutsideServer", prompt: Prompt, context: CommandContext, typed: str) -> str:
        """Sends the prompt's text as a message. Only the words typed after its name count as the user's own."""
        assert self._find
        arguments = tables(prompt.get("arguments"))
        values = _arguments([text_of(argument, "name") for argument in arguments], typed)
        missing_names = [
            name
            for argument in arguments
            if argument.get("required") and (name := text_of(argument, "name")) not in values
        ]
        name = text_of(prompt, "name")
        if missing_names:
            return context.words("mcp.prompt_usage", usage=f"/{server.name}:{name} {_usage(prompt)}")
        try:
            text = await self._find().prompt_text(server, name, values)
        except (RpcError, TimeoutError) as problem:
            return context.words("mcp.broken", name=f"{server.name}:{name}", reason=str(problem))
        await context.conversation.say(text, wish=typed)
        return ""


def server_line(server: "OutsideServer", words: Words) -> str:
    """Describes one server and its state."""
    count_by_kind = {kind: len(entries) for kind, entries in server.lists.items()}
    state = words(f"mcp.state.{server.state}", **count_by_kind, seconds=round(server.seconds, 1), reason=server.why)
    return f"{MARKS.get(server.state, '…')} {server.name}: {state}"


def _usage(prompt: Prompt) -> str:
    names = [(text_of(argument, "name"), argument.get("required")) for argument in tables(prompt.get("arguments"))]
    return " ".join(name.upper() if is_required else f"[{name.upper()}]" for name, is_required in names)


def _brief(table: Prompt) -> str:
    return shorten(text_of(table, "description", "title"), HELP)


def _arguments(names: list[str], typed: str) -> dict[str, str]:
    """Reads arguments word by word; the last argument takes all remaining words. `name=value` names an argument."""
    values: dict[str, str] = {}
    words = typed.split()
    while words:
        name, equals_sign, value = words[0].partition("=")
        if equals_sign and name in names:
            values[name] = value
            words.pop(0)
            continue
        open_names = [candidate for candidate in names if candidate not in values]
        if not open_names:
            break
        value_words = words if len(open_names) == 1 else words[:1]
        values[open_names[0]] = " ".join(value_words)
        words = words[len(value_words) :]
    return values

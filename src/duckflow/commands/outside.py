"""`/mcp`: the servers of others and how they are. Their prompts are commands: `/server:prompt`."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from duckflow.state.noun import shorten, tables, text_of
from duckflow.state.phrase import quote

if TYPE_CHECKING:
    from duckflow.tools.outside.server import OutsideServer
    from duckflow.tools.outside.servers import OutsideServers

HELP = 90
MARKS = {"ready": "✓", "failed": "✗", "login": "✗", "off": "–"}
Prompt = dict[str, Any]


class OutsideCommands:
    """Where no server is named there is only the command that says so."""

    def __init__(
        self, find: "Callable[[], OutsideServers] | None" = None, ready: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`ready` starts the servers where no chat or turn has done so yet."""
        self._find = find
        self._ready = ready

    def group(self) -> Group:
        return (Command("mcp", self._mcp, ("restart",)),)

    def commands(self) -> Iterator[Command]:
        for server in self._servers().values():
            for prompt in server.lists["prompts"]:
                if name := text_of(prompt, "name"):
                    about = f"{_usage(prompt)} · {text_of(prompt, 'description', 'title')}".strip(" ·")
                    help_text = quote(shorten(about, HELP))
                    typed = "_".join(f"{server.name}:{name}".split())
                    yield Command(typed, partial(self._prompt, server, prompt), own_help=help_text)

    def _servers(self) -> "dict[str, OutsideServer]":
        return self._find().servers if self._find else {}

    async def look(self) -> None:
        """Servers that run tell by themselves what changes."""
        if self._ready:
            await self._ready()

    async def _mcp(self, context: CommandContext, rest: str) -> str:
        await self.look()
        words, servers = context.words, self._servers()
        wish, _, name = rest.partition(" ")
        if not servers:
            return words("mcp.none")
        if not rest:
            return "\n".join(server_line(server, words) for server in servers.values())
        name = name.strip() if wish == "restart" else rest
        if name not in servers:
            raise UsageError("mcp.unknown", name=name, known=", ".join(servers))
        server = servers[name]
        if wish == "restart":
            await server.restart()
            await server.tried.wait()
            return server_line(server, words)
        lines = [server_line(server, words)]
        lines += [f"  {text_of(one, 'name')}: {_brief(one)}" for one in server.lists["tools"]]
        lines += [f"  @{name}:{text_of(one, 'uri')}" for one in server.lists["resources"]]
        lines += [f"  /{name}:{text_of(one, 'name')} {_brief(one)}" for one in server.lists["prompts"]]
        return "\n".join(lines)

    async def _prompt(self, server: "OutsideServer", prompt: Prompt, context: CommandContext, typed: str) -> str:
        """Its text is said as if it had been typed."""
        assert self._find
        arguments = tables(prompt.get("arguments"))
        given = _arguments([text_of(one, "name") for one in arguments], typed)
        missing = [name for one in arguments if one.get("required") and (name := text_of(one, "name")) not in given]
        name = text_of(prompt, "name")
        if missing:
            return context.words("mcp.prompt_usage", usage=f"/{server.name}:{name} {_usage(prompt)}")
        try:
            text = await self._find().prompt_text(server, name, given)
        except (RpcError, TimeoutError) as problem:
            return context.words("mcp.broken", name=f"{server.name}:{name}", reason=str(problem))
        await context.conversation.say(text)
        return ""


def server_line(server: "OutsideServer", words: Words) -> str:
    """One server and how it is."""
    counts = {kind: len(found) for kind, found in server.lists.items()}
    told = words(f"mcp.state.{server.state}", **counts, seconds=round(server.seconds, 1), reason=server.why)
    return f"{MARKS.get(server.state, '…')} {server.name}: {told}"


def _usage(prompt: Prompt) -> str:
    names = [(text_of(one, "name"), one.get("required")) for one in tables(prompt.get("arguments"))]
    return " ".join(name.upper() if required else f"[{name.upper()}]" for name, required in names)


def _brief(table: Prompt) -> str:
    return shorten(" ".join(text_of(table, "description", "title").split()), HELP)


def _arguments(names: list[str], typed: str) -> dict[str, str]:
    """Word by word, the last one takes the rest; `name=value` names it."""
    given: dict[str, str] = {}
    words = typed.split()
    while words:
        name, equals, value = words[0].partition("=")
        if equals and name in names:
            given[name] = value
            words.pop(0)
            continue
        left = [one for one in names if one not in given]
        if not left:
            break
        taken = words if len(left) == 1 else words[:1]
        given[left[0]] = " ".join(taken)
        words = words[len(taken) :]
    return given

"""Every slash command by its name; a part of the program that adds some makes a table with one group more."""

import difflib
from collections.abc import Iterator

from duckflow.commands import choices, memory, plan, undo
from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.sessions import EXPORT
from duckflow.commands.status import CONTEXT, RECORD, SESSION, STATUS

GROUPS: tuple[Group, ...] = (
    STATUS,
    CONTEXT,
    plan.GROUP,
    choices.GROUP,
    undo.GROUP,
    RECORD,
    memory.GROUP,
    SESSION,
    EXPORT,
)


class Commands:
    """The commands of one chat."""

    def __init__(self, *more: Group) -> None:
        listing = Command("help", self._help)
        self._commands = {command.name: command for group in ((listing,), *GROUPS, *more) for command in group}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    async def run(self, counter: CommandContext, line: str) -> str:
        """What to show. An unknown command names the nearest one."""
        name, _, rest = line[1:].strip().partition(" ")
        if name in self._commands:
            shown = self._commands[name].run(counter, rest.strip())
            return shown if isinstance(shown, str) else await shown
        near = difflib.get_close_matches(name, self._commands, n=1)
        if near:
            return counter.words("command.near", name=name, near=near[0])
        return counter.words("command.unknown", name=name)

    def _help(self, counter: CommandContext, _: str) -> str:
        width = max(map(len, self._commands))
        lines = [f"/{command.name:<{width}} {counter.words(command.help_key)}" for command in self]
        return "\n".join([*lines, "", counter.words("help.keys")])

"""Every slash command by its name; a part of the program that adds some makes a table with one group more."""

import difflib
from collections.abc import Iterator

from duckflow.commands import back, memory, plan, undo
from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.sessions import EXPORT
from duckflow.commands.status import CHOICES, CONTEXT, RECORD, SESSION, STATUS
from duckflow.errors import DuckflowError
from duckflow.events.ports import Ask, InnerConversation
from duckflow.i18n.words import Words

GROUPS: tuple[Group, ...] = (
    STATUS,
    CONTEXT,
    plan.GROUP,
    CHOICES,
    undo.GROUP,
    back.GROUP,
    RECORD,
    memory.GROUP,
    SESSION,
    EXPORT,
)


class Commands:
    """The commands of one chat."""

    def __init__(self, words: Words, *more: Group) -> None:
        self._words = words
        listing = Command("help", self._help)
        self._commands = {command.name: command for group in ((listing,), *GROUPS, *more) for command in group}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    async def run(self, conversation: InnerConversation, ask: Ask, line: str) -> str:
        """What to show. An unknown command names the nearest one."""
        name, _, rest = line[1:].strip().partition(" ")
        if name in self._commands:
            try:
                shown = self._commands[name].run(CommandContext(conversation, self._words, ask), rest.strip())
                return shown if isinstance(shown, str) else await shown
            except DuckflowError as problem:
                return self._words.error(problem)
        near = difflib.get_close_matches(name, self._commands, n=1)
        if near:
            return self._words("command.near", name=name, near=near[0])
        return self._words("command.unknown", name=name)

    def _help(self, context: CommandContext, _: str) -> str:
        width = max(map(len, self._commands))
        lines = [f"/{command.name:<{width}} {context.words(command.help_key)}" for command in self]
        return "\n".join([*lines, "", context.words("help.keys")])

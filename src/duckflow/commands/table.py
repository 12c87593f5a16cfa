"""All slash commands by their names. A part of the program that adds commands makes a table with one more group."""

import difflib
from collections.abc import Iterator, Sequence

from duckflow.commands import back, memory, plan, review, undo
from duckflow.commands.command import Command, CommandContext, CommandSource, Group
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
    review.GROUP,
    undo.GROUP,
    back.GROUP,
    RECORD,
    memory.GROUP,
    SESSION,
    EXPORT,
)


class Commands:
    """The commands of one chat."""

    def __init__(self, words: Words, *added: Group, sources: Sequence[CommandSource] = ()) -> None:
        self._words = words
        self._sources = sources
        help_command = Command("help", self._help)
        self._own = {command.name: command for group in ((help_command,), *GROUPS, *added) for command in group}

    @property
    def _commands(self) -> dict[str, Command]:
        """Returns the commands by name. A source cannot replace a built-in command."""
        return {command.name: command for source in self._sources for command in source.commands()} | self._own

    def __iter__(self) -> Iterator[Command]:
        commands = self._commands
        return iter([*self._own.values(), *(commands[name] for name in commands if name not in self._own)])

    async def knows(self, line: str) -> bool:
        name = line[1:].split(" ")[0]
        if name not in self._commands:
            for source in self._sources:
                await source.look()
        return name in self._commands

    async def run(self, conversation: InnerConversation, ask: Ask, line: str, language: str = "") -> str:
        """Runs a command and returns the text to show, in the given language or else in the session's. For an unknown
        command, the text names the nearest one."""
        words = Words(language) if language else self._words
        words.emoji = self._words.emoji
        answer = await self._shown(conversation, ask, line, words)
        if language not in ("", words.language):
            # The command itself has changed the language.
            self._words.language = words.language
        return answer

    async def _shown(self, conversation: InnerConversation, ask: Ask, line: str, words: Words) -> str:
        name, _, arguments = line[1:].strip().partition(" ")
        if name not in self._own:
            for source in self._sources:
                await source.look()
        if command := self._commands.get(name):
            try:
                answer = command.run(CommandContext(conversation, words, ask), arguments.strip())
                return answer if isinstance(answer, str) else await answer
            except DuckflowError as problem:
                return words.error(problem)
        near_names = difflib.get_close_matches(name, self._commands, n=1)
        if near_names:
            return words("command.near", name=name, near=near_names[0])
        return words("command.unknown", name=name)

    def _help(self, context: CommandContext, _: str) -> str:
        width = max(map(len, self._own))
        lines = [f"/{command.name:<{width}}  {context.words.phrase(command.help)}" for command in self]
        brought_names = {command.name for source in self._sources for command in source.commands()}
        lines += [context.words("command.taken", name=name) for name in sorted(brought_names & self._own.keys())]
        return "\n".join(lines)

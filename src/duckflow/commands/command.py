"""What a slash command is, what it is given, and what it may ask of the chat besides showing a text."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from duckflow.commands.desk import Desk
from duckflow.events.ports import Ask
from duckflow.i18n.words import Words


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The conversation, the words, and a way to ask back."""

    desk: Desk
    words: Words
    ask: Ask


class Quit(Exception):
    """The user wants to leave."""


class Switch(Quit):
    """The user wants to leave for another session, or for a branch of one."""

    def __init__(self, journal: Path, fork: bool = False) -> None:
        self.journal = journal
        self.fork = fork
        super().__init__(str(journal))


class Say(Exception):
    """The command stands for words of the user."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Command:
    """A name, and what it does with the words after it: it gives back what to show.

    The one line of help is `command.NAME` in the catalogue; `words` are offered when the user completes the line.
    """

    name: str
    run: Callable[[CommandContext, str], str | Awaitable[str]]
    words: tuple[str, ...] = ()

    @property
    def help_key(self) -> str:
        return f"command.{self.name}"


Group = tuple[Command, ...]

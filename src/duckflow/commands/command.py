"""What a slash command is, and what it is given."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duckflow.events.ports import Ask, InnerConversation
from duckflow.i18n.words import Words


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The conversation, the words, and a way to ask back."""

    conversation: InnerConversation
    words: Words
    ask: Ask


@dataclass(frozen=True, slots=True)
class Command:
    """A name, and what it does with the words after it: it gives back the lines to show.

    The one line of help is `command.NAME` in the catalogue; `words` are offered when the user completes the line.
    """

    name: str
    run: Callable[[CommandContext, str], str | Awaitable[str]]
    words: tuple[str, ...] = ()

    @property
    def help_key(self) -> str:
        return f"command.{self.name}"


Group = tuple[Command, ...]

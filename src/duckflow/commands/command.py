"""What a slash command is, and what it is given."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from duckflow.events.ports import Ask, InnerConversation
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase, say


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The conversation, the words, and a way to ask back."""

    conversation: InnerConversation
    words: Words
    ask: Ask


@dataclass(frozen=True, slots=True)
class Command:
    """A name, and what it does with the words after it: it gives back the lines to show.

    The one line of help is `command.NAME` in the catalogue, unless it brings its `own_help`; `words` are offered when
    the user completes the line.
    """

    name: str
    run: Callable[[CommandContext, str], str | Awaitable[str]]
    words: tuple[str, ...] = ()
    own_help: Phrase | None = None

    @property
    def help(self) -> Phrase:
        return self.own_help or say(f"command.{self.name}")


Group = tuple[Command, ...]


class CommandSource(Protocol):
    """Commands that come and go while the program runs. Those of the program itself go before them."""

    def commands(self) -> Iterable[Command]:
        """Those known now; asked at every key, so nothing is looked for here."""
        ...

    async def look(self) -> None:
        """Before one of them is run: look for all there are, and ask the user where that needs a yes."""
        ...

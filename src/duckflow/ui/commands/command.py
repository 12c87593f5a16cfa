"""What a slash command is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duckflow.ui.counter import Counter


@dataclass(frozen=True, slots=True)
class Command:
    """A name, and what it does with the words after it: it gives back what to show.

    The one line of help is `command.NAME` in the catalogue; `words` are offered when the user completes the line.
    """

    name: str
    run: Callable[[Counter, str], str | Awaitable[str]]
    words: tuple[str, ...] = ()

    @property
    def help_key(self) -> str:
        return f"command.{self.name}"


Group = tuple[Command, ...]

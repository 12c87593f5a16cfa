"""What is said about a call: a finding, or what else it runs and must be looked at too."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import CommandFinding


@dataclass(frozen=True, slots=True)
class Runs:
    """The call runs another program with these words."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class RunsText:
    """The call hands this text to a shell."""

    text: str
    arguments: tuple[Word, ...] = ()


Opinion = CommandFinding | Runs | RunsText
Rule = Callable[[Invocation], Iterator[Opinion]]

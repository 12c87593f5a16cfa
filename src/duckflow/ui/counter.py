"""Where a slash command is given, and what it may ask of the chat besides showing a text."""

from dataclasses import dataclass
from pathlib import Path

from duckflow.events.ports import Ask
from duckflow.ui.desk import Desk
from duckflow.ui.i18n.words import Words


@dataclass(frozen=True, slots=True)
class Counter:
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

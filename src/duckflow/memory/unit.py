"""Messages in the context, each looked at once, and those that stay together."""

from collections.abc import Iterable
from dataclasses import dataclass

from duckflow.memory.score import worth
from duckflow.memory.terms import indexed
from duckflow.state.message import Message


@dataclass(slots=True)
class Entry:
    """A message in the context, looked at once."""

    number: int
    message: Message
    tokens: float
    base: float
    new_words: int
    result: bool = False
    whole: bool = True


@dataclass(slots=True)
class Unit:
    """Messages that stay together: a call with its results, or one thing said."""

    entries: list[Entry]
    tokens: float

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.tokens += entry.tokens

    def worth(self, latest: int) -> float:
        """The mean of its messages, each by its length."""
        together = 0.0
        for one in self.entries:
            together += worth(one.base, one.new_words, one.tokens, latest - one.number) * one.tokens
        return together / self.tokens


class Focus:
    """What the user wants to keep above all, in words."""

    def __init__(self, text: str) -> None:
        self._words = set(indexed(text).lower().split())

    def weight(self, unit: Unit) -> float:
        if not self._words:
            return 1.0
        shared = self._words & set(" ".join(indexed(one.message.text) for one in unit.entries).lower().split())
        return 1.0 + 4 * len(shared) / len(self._words)


def together(entries: Iterable[Entry]) -> list[Unit]:
    """A result goes with the call right before it."""
    units: list[Unit] = []
    for entry in entries:
        if entry.result and units and units[-1].entries[-1].number == entry.number - 1:
            units[-1].add(entry)
        else:
            units.append(Unit([entry], entry.tokens))
    return units

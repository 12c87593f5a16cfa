"""What is kept or dropped together, and what the talk is about now."""

import math
from collections.abc import Iterable

from duckflow.memory.terms import terms
from duckflow.state.message import Message

RECENCY = 0.3
RECENT = 60
"""Messages after which recency has fallen to a third."""


class HistoryEntry:
    """A message in the context, looked at once."""

    def __init__(self, number: int, message: Message, tokens: float) -> None:
        self.number = number
        self.message = message
        self.tokens = tokens
        self.base = 0.0
        self.new_words = 0
        self.whole = True

    @property
    def result(self) -> bool:
        return self.message.role == "tool"


class Unit:
    """Messages that stay together: a call with its results, or one thing said."""

    def __init__(self, entry: HistoryEntry) -> None:
        self.entries = [entry]
        self.tokens = entry.tokens

    def add(self, entry: HistoryEntry) -> None:
        self.entries.append(entry)
        self.tokens += entry.tokens

    def worth(self, latest: int) -> float:
        """The mean of its messages, each by its length."""
        together = 0.0
        for one in self.entries:
            together += worth(one.base, one.new_words, one.tokens, latest - one.number) * one.tokens
        return together / self.tokens


def together(entries: Iterable[HistoryEntry]) -> list[Unit]:
    """A result goes with the call right before it."""
    units: list[Unit] = []
    for entry in entries:
        if entry.result and units and units[-1].entries[-1].number == entry.number - 1:
            units[-1].add(entry)
        else:
            units.append(Unit(entry))
    return units


def worth(base: float, new_words: int, tokens: float, age: int) -> float:
    """Per token, so that two short facts win against one long tale; by the root, so that length is no fault."""
    return (base + RECENCY * math.exp(-age / RECENT)) * (new_words + 0.1) / math.sqrt(max(tokens, 1.0))


class Focus:
    """Weighs what stays by how much it has to do with the words."""

    def __init__(self, text: str) -> None:
        self._words = terms(text)

    def weight(self, unit: Unit) -> float:
        shared = self._words & terms(" ".join(one.message.text for one in unit.entries))
        return 1.0 + 4 * len(shared) / max(1, len(self._words))

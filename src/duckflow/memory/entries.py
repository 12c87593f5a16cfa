"""Messages in the context: each looked at once, and which of them stay together or stay always."""

from dataclasses import dataclass

from duckflow.memory.clip import clip
from duckflow.memory.score import worth
from duckflow.memory.terms import indexed
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
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


@dataclass(slots=True)
class Pins:
    """Numbers of the messages that stay word for word."""

    first: int = -1
    current: int = -1

    def take(self, number: int, message: Message) -> None:
        if message.role == "user":
            self.current = number
            if self.first < 0:
                self.first = number

    def __contains__(self, number: int) -> bool:
        return number in (self.first, self.current)


def cut(entry: Entry, tokens: float) -> None:
    """Keep its head and tail."""
    if entry.tokens > tokens + MESSAGE_OVERHEAD:
        text = clip(entry.message.text, tokens, entry.tokens)
        entry.message = entry.message.model_copy(update={"text": text})
        entry.tokens = estimate(text) + MESSAGE_OVERHEAD
        entry.whole = False

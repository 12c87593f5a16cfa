"""Messages in the context: each by itself, and in the units that stay or go together."""

from collections.abc import Iterable, Sequence

from duckflow.memory.score import compute_worth
from duckflow.memory.tokens import MESSAGE_OVERHEAD, clip, estimate
from duckflow.state.message import Message
from duckflow.state.noun import shorten

LINE = 40
"""Tokens below which head and tail say nothing: what is cut further is only named."""
NAMED = 100


class HistoryEntry:
    """A message in the context, looked at once."""

    def __init__(self, number: int, message: Message) -> None:
        self.number = number
        self.original = message
        self.message = message
        pictures = sum(picture.tokens for picture in message.pictures)
        self.tokens = estimate(_as_sent(message)) + MESSAGE_OVERHEAD + pictures
        self.size = self.tokens
        """What the whole message takes."""
        self.base = 0.0
        self.new_words = 0
        self.cut: int | None = None
        """The tokens it was cut to."""

    @property
    def result(self) -> bool:
        return self.original.role == "tool"

    def cut_to(self, tokens: float) -> float:
        """Its head and tail, or its first line, and how much that saves. It never gets longer; pictures go first."""
        if tokens + MESSAGE_OVERHEAD >= self.tokens or (self.cut is not None and self.cut <= tokens):
            return 0.0
        text = self.original.whole
        whole = tokens > LINE and not self.original.pictures
        short = clip(text, tokens, self.size) if whole else _named(text)
        saved = self.tokens - estimate(short) - MESSAGE_OVERHEAD
        if saved <= 0:
            return 0.0
        self.message = self.original.model_copy(update={"text": short, "pictures": (), "decision": None, "wire": None})
        self.tokens -= saved
        self.cut = int(tokens)
        return saved

    def worth(self, latest: int) -> float:
        """Of one that was cut only the share that is left."""
        return compute_worth(self.base, self.new_words * self.tokens / self.size, self.tokens, latest - self.number)


def _as_sent(message: Message) -> str:
    """What it takes room for in a request: a Decision that came as JSON goes back as JSON."""
    if message.decision is None or message.wire is not None:
        return message.whole
    from duckflow.forms.json_form import as_written

    return as_written(message.decision)


def _named(text: str) -> str:
    first = text.partition("\n")[0]
    return f"[left out: {shorten(first, NAMED)} … {len(text)} characters]"


class Unit:
    """Messages that stay together: a call with its results, or one thing said."""

    def __init__(self, entry: HistoryEntry) -> None:
        self.entries = [entry]

    @property
    def tokens(self) -> float:
        return sum(entry.tokens for entry in self.entries)

    def several(self) -> list[HistoryEntry]:
        """The results, where there are more than one."""
        results = [entry for entry in self.entries if entry.result]
        return results if len(results) > 1 else []

    def texts(self) -> list[str]:
        return [entry.original.whole for entry in self.entries]

    def worth(self, latest: int) -> float:
        """The mean of its messages, each by its length."""
        return sum(one.worth(latest) * one.tokens for one in self.entries) / self.tokens


def group_entries(entries: Iterable[HistoryEntry]) -> list[Unit]:
    """A result goes with the call before it, whatever Duckflow itself has said in between. Those with the latest
    messages come last."""
    units: list[Unit] = []
    for entry in entries:
        place = len(units) - 1
        while entry.result and place >= 0 and units[place].entries[0].message.role == "system":
            place -= 1
        if entry.result and place >= 0:
            units.append(units.pop(place))
            units[-1].entries.append(entry)
        else:
            units.append(Unit(entry))
    return units


def lower_to(sizes: Sequence[float], excess: float) -> float:
    """The size to which all larger ones must come down to save so much; nothing when that is not enough."""
    together = 0.0
    ordered = sorted(sizes, reverse=True)
    for count, size in enumerate(ordered, 1):
        together += size
        lowered = (together - excess) / count
        if lowered >= (ordered[count] if count < len(ordered) else 0.0):
            return lowered
    return 0.0

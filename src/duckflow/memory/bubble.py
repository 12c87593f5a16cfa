"""Bubble: the part of the conversation that is in the prompt."""

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from duckflow.memory.clip import clip
from duckflow.memory.digest import Past
from duckflow.memory.score import HistoryEntry, Unit, group_entries
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.state.context import Context
from duckflow.state.message import Message

if TYPE_CHECKING:
    from duckflow.memory.score import Scores

Range = tuple[int, int]
UNSCORED = 1000
"""Tokens below which there is nothing to choose from."""
TOLD_ANEW = 500
"""Messages that are looked at when what is said of the past has to be found out again."""


class Pruned(NamedTuple):
    """What a pruning did."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    upto: int
    tokens_before: int
    tokens_after: int


class Pins:
    """Numbers of the messages that stay word for word."""

    def __init__(self) -> None:
        self.first = -1
        self.current: set[int] = set()

    def take(self, number: int, message: Message) -> None:
        if message.role == "user":
            self.current = self.current | {number} if message.meanwhile else {number}
            if self.first < 0:
                self.first = number

    def __contains__(self, number: int) -> bool:
        return number == self.first or number in self.current


class Bubble:
    """Follows the conversation: each message is counted and scored once; history itself is never changed.

    All figures are estimated tokens; whoever asks divides the budget by the model's factor."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._scores: Scores | None = None
        self._unscored: list[HistoryEntry] = []
        self._entries: list[HistoryEntry] = []
        self._taken = 0
        self._aside = 0
        self._forgotten = 0
        self._tokens = 0.0
        self._pins = Pins()
        self._past = Past()

    @property
    def tokens(self) -> float:
        return self._tokens + self._past.tokens

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        return self._entries

    def add(self, message: Message) -> None:
        """The next message of the conversation."""
        number = self._taken
        self._taken += 1
        self._pins.take(number, message)
        self._put(number, message)

    def follow(self, messages: Sequence[Message], aside: Sequence[Range] = (), forgotten: Sequence[int] = ()) -> None:
        """Take what is new, and drop what was set aside or forgotten since."""
        for number in range(self._taken, len(messages)):
            self.add(messages[number])
        if len(aside) > self._aside:
            ranges = aside[self._aside :]
            self._aside = len(aside)
            self._only(
                one for one in self._entries if one.number == self._pins.first or not _within(one.number, ranges)
            )
        if len(forgotten) > self._forgotten:
            gone = set(forgotten)
            self._forgotten = len(forgotten)
            self._only(one for one in self._entries if one.number not in gone)
            self._tell_anew(messages, aside, gone)

    def restore(self, messages: Sequence[Message], context: Context, aside: Sequence[Range] = ()) -> None:
        """As it was after a pruning: those kept of the first messages; what came later is taken by `follow`."""
        upto = min(context.upto, len(messages))
        chosen = set(context.kept)
        self._entries, self._tokens, self._taken = [], 0.0, upto
        for number in range(upto):
            self._pins.take(number, messages[number])
            if number in chosen:
                self._put(number, messages[number])
        self._shorten_results()
        self._tell_anew(messages, aside, set(context.forgotten))

    def fit(self, budget: float) -> Pruned | None:
        """Prune when the budget is nearly full."""
        if self._tokens + self._past.tokens <= budget * self._settings.full_at:
            return None
        return self.prune(budget, self._settings.prune_to)

    def prune(self, budget: float, share: float, focus: str = "") -> Pruned | None:
        """Drop what is worth least until this share of the budget is left. Nothing, when that would not shrink it."""
        before, shown = self._tokens, {entry.number for entry in self._entries}
        self._shorten_results()
        self._keep(self._chosen(budget, share, focus))
        dropped = sorted(shown - {entry.number for entry in self._entries})
        if self._tokens >= before:
            return None
        return Pruned(
            kept=tuple(entry.number for entry in self._entries),
            dropped=tuple(dropped),
            upto=self._taken,
            tokens_before=round(before),
            tokens_after=round(self._tokens + self._past.tokens),
        )

    def view(self, budget: float) -> list[Message]:
        """The messages for a prompt, never above the budget: where pruning was not enough, they are cut."""
        self._past.describe(budget * self._settings.past_share)
        entries = self._entries
        if self._tokens + self._past.tokens > budget * self._settings.full_at:
            entries = self._cut_to(budget)
        shown = [entry.message for entry in entries]
        if self._past.text and entries is self._entries:
            place = next((place for place, one in enumerate(entries) if one.number > self._pins.first), len(shown))
            shown.insert(place, self._past.message())
        return shown

    def summarise(self, summaries: Sequence[str]) -> None:
        """What the model says of the messages that are left out."""
        self._past.summarise(summaries)

    def _put(self, number: int, message: Message) -> None:
        entry = HistoryEntry(number, message, estimate(message.text) + MESSAGE_OVERHEAD)
        self._entries.append(entry)
        self._unscored.append(entry)
        self._tokens += entry.tokens
        if self._tokens > UNSCORED:
            self._score()

    def _score(self) -> None:
        """Each message once; not before there may be something to choose from."""
        from duckflow.memory.score import Scores

        self._scores = self._scores or Scores()
        for entry in self._unscored:
            entry.base, entry.new_words = self._scores.score(entry.message, entry.tokens)
        self._unscored = []

    def _tell_anew(self, messages: Sequence[Message], aside: Sequence[Range], gone: Collection[int]) -> None:
        """What is said of the messages that are left out, from the latest of them."""
        shown = {entry.number for entry in self._entries}
        left_out = [
            number
            for number in range(max(0, self._taken - TOLD_ANEW), self._taken)
            if not (number in shown or number in gone or _within(number, aside))
        ]
        self._past.tell_anew((messages[number] for number in left_out), self._taken - len(shown))

    def _keep(self, kept: Iterable[HistoryEntry]) -> None:
        """Only these stay; the others are remembered by what they were about."""
        chosen = {entry.number for entry in kept}
        self._past.take([entry.message for entry in self._entries if entry.number not in chosen])
        self._only(entry for entry in self._entries if entry.number in chosen)

    def _only(self, kept: Iterable[HistoryEntry]) -> None:
        self._entries = list(kept)
        self._tokens = sum(entry.tokens for entry in self._entries)

    def _chosen(self, budget: float, share: float, focus: str) -> list[HistoryEntry]:
        self._score()
        units = group_entries(self._entries)
        recent = self._first_recent(units, budget)
        kept: list[Unit] = []
        rest: list[tuple[float, Unit]] = []
        weight = _weighing(focus)
        for unit in units:
            if unit.entries[0].number >= recent or unit.entries[0].number in self._pins:
                kept.append(unit)
            else:
                rest.append((unit.worth(self._taken) * weight(unit), unit))
        room = budget * share - self._past.tokens - sum(unit.tokens for unit in kept)
        for _, unit in sorted(rest, key=lambda one: one[0], reverse=True):
            if unit.tokens <= room:
                room -= unit.tokens
                kept.append(unit)
        return [entry for unit in kept for entry in unit.entries]

    def _first_recent(self, units: list[Unit], budget: float) -> int:
        """Where the latest exchanges begin; the very last one is always among them."""
        room, messages = budget * self._settings.recent_share, self._settings.recent_messages
        begin = self._taken
        for unit in reversed(units):
            room -= unit.tokens
            messages -= len(unit.entries)
            if begin < self._taken and (room < 0 or messages < 0):
                break
            begin = unit.entries[0].number
        return begin

    def _shorten_results(self) -> None:
        """Results that are no longer recent keep their head and tail."""
        for entry in self._entries[: -self._settings.recent_messages]:
            if entry.result and entry.tokens > self._settings.result_tokens:
                self._tokens -= entry.tokens
                _cut(entry, self._settings.result_tokens)
                self._tokens += entry.tokens

    def _cut_to(self, budget: float) -> list[HistoryEntry]:
        """The way out when even what must stay is too much: pins and the latest, each cut to a share of the room."""
        last = self._entries[-1].number
        must = [copy(one) for one in self._entries if one.number in self._pins or one.number == last]
        for entry in must:
            _cut(entry, budget * 0.9 / len(must) - MESSAGE_OVERHEAD)
        room = budget * 0.9 - sum(entry.tokens for entry in must)
        numbers = {entry.number for entry in must}
        for entry in reversed(self._entries):
            if entry.number not in numbers:
                room -= entry.tokens
                if room < 0:
                    break
                must.append(entry)
        cut = sorted(must, key=lambda entry: entry.number)
        # A result without the call it belongs to says nothing.
        return [
            one
            for place, one in enumerate(cut)
            if not one.result or one.number == last or (place and cut[place - 1].number == one.number - 1)
        ]


def _weighing(focus: str) -> Callable[[Unit], float]:
    if not focus.strip():
        return lambda unit: 1.0
    from duckflow.memory.score import Focus

    return Focus(focus).weight


def _within(number: int, ranges: Iterable[Range]) -> bool:
    return any(start <= number < end for start, end in ranges)


def _cut(entry: HistoryEntry, tokens: float) -> None:
    if entry.tokens > tokens + MESSAGE_OVERHEAD:
        text = clip(entry.message.text, tokens, entry.tokens)
        entry.message = entry.message.model_copy(update={"text": text})
        entry.tokens = estimate(text) + MESSAGE_OVERHEAD
        entry.whole = False

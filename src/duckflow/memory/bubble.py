"""Bubble: the part of the conversation that is in the prompt."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from duckflow.memory.clip import clip
from duckflow.memory.digest import Digest
from duckflow.memory.score import Novelty, base_score
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.memory.unit import Entry, Focus, Unit, together
from duckflow.state.message import Message

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning did."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    upto: int
    tokens_before: int
    tokens_after: int


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


class Bubble:
    """Follows the conversation: each message is counted and scored once; history itself is never changed.

    All figures are estimated tokens; whoever asks divides the budget by the model's factor."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._novelty = Novelty()
        self._entries: list[Entry] = []
        self._taken = 0
        self._aside = 0
        self._tokens = 0.0
        self._pins = Pins()
        self._past = Digest()
        self._leaving: list[Message] = []
        self._past_text = ""
        self._past_tokens = 0.0
        self._described = -1.0
        self._summaries: Sequence[str] = ()

    @property
    def tokens(self) -> float:
        return self._tokens + self._past_tokens

    @property
    def entries(self) -> Sequence[Entry]:
        return self._entries

    def add(self, message: Message) -> None:
        """The next message of the conversation."""
        number = self._taken
        self._taken += 1
        self._pins.take(number, message)
        self._put(number, message)

    def follow(self, messages: Sequence[Message], aside: Sequence[Range] = ()) -> None:
        """Take what is new, and drop what was set aside since."""
        for number in range(self._taken, len(messages)):
            self.add(messages[number])
        if len(aside) > self._aside:
            ranges = aside[self._aside :]
            self._aside = len(aside)
            kept = (one for one in self._entries if one.number == self._pins.first or not _within(one.number, ranges))
            self._only(kept)

    def restore(self, messages: Sequence[Message], kept: Iterable[int], upto: int) -> None:
        """As it was after a pruning: those kept of the first `upto` messages; what came later is taken by `follow`."""
        upto = min(upto, len(messages))
        chosen = set(kept)
        self._entries, self._tokens, self._taken, self._past = [], 0.0, upto, Digest()
        for number in range(upto):
            self._pins.take(number, messages[number])
            if number in chosen:
                self._put(number, messages[number])
        self._past.take(messages[number] for number in range(max(0, upto - 500), upto) if number not in chosen)
        self._past.messages = upto - len(self._entries)
        self._shorten_results()
        self._leaving, self._described = [], -1.0

    def fit(self, budget: float) -> Pruned | None:
        """Prune when the budget is nearly full."""
        if self._tokens + self._past_tokens <= budget * self._settings.full_at:
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
            tokens_after=round(self._tokens + self._past_tokens),
        )

    def view(self, budget: float) -> list[Message]:
        """The messages for a prompt, never above the budget: where pruning was not enough, they are cut."""
        self._describe_past(budget)
        entries = self._entries
        if self._tokens + self._past_tokens > budget * self._settings.full_at:
            entries = self._cut_to(budget)
        shown = [entry.message for entry in entries]
        if self._past_text and entries is self._entries:
            place = next((place for place, one in enumerate(entries) if one.number > self._pins.first), len(shown))
            shown.insert(place, Message(message_id="past", role="system", text=self._past_text, at=0.0))
        return shown

    def summarise(self, summaries: Sequence[str]) -> None:
        """What the model says of the messages that are left out."""
        self._summaries, self._described = tuple(summaries), -1.0

    def forget(self, words: str) -> None:
        """What holds these words is not told of any more."""
        self._past.forget(words)
        self._leaving = [one for one in self._leaving if words.casefold() not in one.text.casefold()]
        self._summaries = tuple(one for one in self._summaries if words.casefold() not in one.casefold())
        self._described = -1.0

    def _put(self, number: int, message: Message) -> None:
        tokens = estimate(message.text) + MESSAGE_OVERHEAD
        new_words = self._novelty.take(message.text)
        result = message.role == "tool"
        self._entries.append(Entry(number, message, tokens, base_score(message, tokens), new_words, result))
        self._tokens += tokens

    def _keep(self, kept: Iterable[Entry]) -> None:
        """Only these stay; the others are remembered by what they were about."""
        chosen = {entry.number for entry in kept}
        self._leaving += [entry.message for entry in self._entries if entry.number not in chosen]
        self._only(entry for entry in self._entries if entry.number in chosen)

    def _only(self, kept: Iterable[Entry]) -> None:
        self._entries = list(kept)
        self._tokens = sum(entry.tokens for entry in self._entries)

    def _chosen(self, budget: float, share: float, focus: str) -> list[Entry]:
        units = together(self._entries)
        recent = self._first_recent(units, budget)
        kept: list[Unit] = []
        rest: list[tuple[float, Unit]] = []
        wanted = Focus(focus)
        for unit in units:
            if unit.entries[0].number >= recent or unit.entries[0].number in self._pins:
                kept.append(unit)
            else:
                rest.append((unit.worth(self._taken) * wanted.weight(unit), unit))
        room = budget * share - self._past_tokens - sum(unit.tokens for unit in kept)
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

    def _describe_past(self, budget: float) -> None:
        """Done when a prompt is built, so that taking a message in never waits for it."""
        if not self._leaving and self._described == budget:
            return
        self._past.take(self._leaving)
        self._leaving, self._described = [], budget
        self._past_text = ""
        if self._past.messages:
            room = budget * self._settings.past_share - MESSAGE_OVERHEAD
            self._past_text = past_text(self._past, self._summaries, room)
        self._past_tokens = estimate(self._past_text) + MESSAGE_OVERHEAD if self._past_text else 0.0

    def _cut_to(self, budget: float) -> list[Entry]:
        """The way out when even what must stay is too much: pins and the latest, each cut to a share of the room."""
        last = self._entries[-1].number
        must = [replace(one) for one in self._entries if one.number in self._pins or one.number == last]
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


def _within(number: int, ranges: Iterable[Range]) -> bool:
    return any(start <= number < end for start, end in ranges)


def _cut(entry: Entry, tokens: float) -> None:
    if entry.tokens > tokens + MESSAGE_OVERHEAD:
        text = clip(entry.message.text, tokens, entry.tokens)
        entry.message = entry.message.model_copy(update={"text": text})
        entry.tokens = estimate(text) + MESSAGE_OVERHEAD
        entry.whole = False


def past_text(past: Digest, summaries: Sequence[str], room: float) -> str:
    """What is said of the messages that are left out: the model's summaries, then the computed facts."""
    told = [f"[{past.messages} earlier messages are left out here; memory.recall finds them word for word]"]
    if summaries:
        told.append(clip("\n".join(summaries), room / 2))
    told.append(past.text(room - sum(map(estimate, told)) - len(told)))
    return "\n".join(filter(None, told))

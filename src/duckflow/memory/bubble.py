"""Bubble: the messages of the conversation that are in the prompt."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from typing import NamedTuple

from duckflow.memory.digest import Digest
from duckflow.memory.entries import HistoryEntry, Scores, group_entries
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import LEAST_BUDGET, MESSAGE_OVERHEAD, clip, estimate
from duckflow.state.agent import Context
from duckflow.state.message import PAST, Message

Range = tuple[int, int]
UNSCORED = 1000
"""The number of tokens below which messages are not scored, because all of them fit."""
TAIL = 50
MOST_TOKENS = 800
"""The largest number of tokens of a note on left-out messages."""
TOLD_ANEW = 500
"""The number of latest messages from which the note on left-out messages is made again."""


class Pruned(NamedTuple):
    """The result of a pruning of the context: which messages stayed, were cut, or were dropped."""

    kept: tuple[int, ...]
    cut: dict[int, int]
    """The number of tokens that each shortened message was cut to, by its number."""
    dropped: tuple[int, ...]
    upto: int
    tokens_before: int
    tokens_after: int


class Pins:
    """Numbers of the messages that stay word for word: the user's first instruction, and the current one with the
    user's later additions."""

    def __init__(self) -> None:
        self.first = -1
        self._current: list[int] = []

    def take(self, number: int, message: Message) -> None:
        if message.role == "user":
            self._current = [*self._current, number] if message.meanwhile else [number]
            if self.first < 0:
                self.first = number

    def __contains__(self, number: object) -> bool:
        return number == self.first or number in self._current


class PastNote:
    """A note in place of messages that were left out. `place` is the number of the message before which the note
    stands."""

    def __init__(self, place: int, text: str) -> None:
        self.place = place
        self.message = Message(message_id=f"{PAST}{place}", role="system", text=text, at=0.0)
        self.tokens = estimate(text) + MESSAGE_OVERHEAD


class Past:
    """The messages that have left the context. The note on them is written only when a prompt is built."""

    def __init__(self) -> None:
        self.notes: list[PastNote] = []
        self._digest = Digest()
        self._place = 0
        self._leaving: list[Message] = []
        self._summaries: Sequence[str] = ()

    @property
    def tokens(self) -> float:
        return sum(note.tokens for note in self.notes)

    def leave(self, place: int, messages: Iterable[Message]) -> None:
        """Takes in messages that leave the context. `place` is the number of the first of them."""
        has_left_messages = self._leaving or self._digest.messages
        self._place = min(place, self._place) if has_left_messages else place
        self._leaving += messages

    def describe(self, room: float) -> None:
        """Writes the note on the messages that have left since the last note, within `room` tokens."""
        if self._leaving:
            self._digest.take(self._leaving)
            self._leaving = []
            self._tell(room)

    def tell_anew(self, place: int, digest: Digest, room: float) -> None:
        """Writes the note again; the digest covers all messages that are left out."""
        self._place, self._digest, self._leaving = place, digest, []
        self._tell(room)

    def summarise(self, summaries: Sequence[str], place: int) -> None:
        """Takes in the model's summaries. A new summary is shown at `place`; from the next pruning on it is shown with
        the earlier ones."""
        if summaries and summaries[-1] not in self._summaries and self.notes:
            self.notes.append(PastNote(place, summaries[-1]))
        self._summaries = tuple(summaries)

    def _tell(self, room: float) -> None:
        text = _told(self._digest, self._summaries, min(room, MOST_TOKENS) - MESSAGE_OVERHEAD)
        self.notes = [PastNote(self._place, text)] if self._digest.messages else []


def _told(digest: Digest, summaries: Sequence[str], room: float) -> str:
    paragraphs = [f"[{digest.messages} earlier messages are left out here]"]
    if summaries:
        paragraphs.append(clip("\n".join(summaries), room / 2))
    paragraphs.append(digest.text(room - sum(map(estimate, paragraphs)) - len(paragraphs)))
    return "\n".join(filter(None, paragraphs))


class Bubble:
    """The messages that are shown in the prompt. Each is counted and scored once; history itself is never changed.

    Until a pruning, the Bubble only grows at its end. All figures are estimated tokens. So the caller first divides the
    budget by the number of real tokens for one estimated token."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._scores: Scores | None = None
        self._unscored: list[HistoryEntry] = []
        self._entries: list[HistoryEntry] = []
        self._taken = 0
        self._aside = 0
        self._forgotten = 0
        self._tokens = 0.0
        self._budget = float(LEAST_BUDGET)
        self._pins = Pins()
        self._past = Past()

    @property
    def tokens(self) -> float:
        return self._tokens + self._past.tokens

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        return self._entries

    def add(self, message: Message) -> None:
        """Adds the next message of the conversation."""
        number = self._taken
        self._taken += 1
        self._pins.take(number, message)
        self._put(number, message)

    def follow(self, messages: Sequence[Message], aside: Sequence[Range] = (), forgotten: Sequence[int] = ()) -> None:
        """Adds new messages, and drops messages that were set aside or forgotten since the last call."""
        for number in range(self._taken, len(messages)):
            self.add(messages[number])
        if len(aside) > self._aside:
            ranges = aside[self._aside :]
            self._aside = len(aside)
            self._only(
                entry
                for entry in self._entries
                if entry.number == self._pins.first or not _within(entry.number, ranges)
            )
        if len(forgotten) > self._forgotten:
            forgotten_numbers = set(forgotten)
            self._forgotten = len(forgotten)
            self._only(entry for entry in self._entries if entry.number not in forgotten_numbers)
            self._tell_anew(messages, aside, forgotten_numbers)

    def restore(self, messages: Sequence[Message], context: Context, aside: Sequence[Range] = ()) -> None:
        """Restores the state after a pruning: only the messages that the pruning left. `follow` adds later messages."""
        message_count = min(context.upto, len(messages))
        kept_numbers = set(context.kept)
        self._entries, self._tokens, self._taken = [], 0.0, message_count
        for number in range(message_count):
            self._pins.take(number, messages[number])
            if number in kept_numbers:
                self._put(number, messages[number])
        for entry in self._entries:
            if entry.number in context.cut:
                entry.cut_to(context.cut[entry.number])
        self._only(self._entries)
        self._tell_anew(messages, aside, set(context.forgotten))

    def is_full(self, budget: float) -> bool:
        return self.tokens > budget * self._settings.full_at

    def fit(self, budget: float) -> Pruned | None:
        """Prunes the messages if they nearly fill the budget."""
        self._budget = budget
        return self.prune(budget, self._settings.prune_to) if self.is_full(budget) else None

    def prune(self, budget: float, share: float, focus: str = "") -> Pruned | None:
        """Cuts and drops the messages of the least value until the rest takes only this share of the budget. Returns
        None if nothing was saved."""
        from duckflow.memory.pruning import Pruning, squeeze

        self._score()
        tokens_before = self.tokens
        target_tokens = budget * share - self._past.tokens
        kept_entries = Pruning(self._entries, self._pins, self._settings).run(budget, target_tokens, focus)
        if sum(entry.tokens for entry in kept_entries) > budget * (self._settings.full_at - self._settings.past_share):
            kept_entries = squeeze(kept_entries, self._pins, target_tokens)
        kept_numbers = {entry.number for entry in kept_entries}
        dropped_entries = [entry for entry in self._entries if entry.number not in kept_numbers]
        self._only(kept_entries)
        if dropped_entries:
            self._past.leave(dropped_entries[0].number, (entry.original for entry in dropped_entries))
        if self.tokens >= tokens_before:
            return None
        return Pruned(
            kept=tuple(entry.number for entry in self._entries),
            cut={entry.number: entry.cut for entry in self._entries if entry.cut is not None},
            dropped=tuple(entry.number for entry in dropped_entries),
            upto=self._taken,
            tokens_before=round(tokens_before),
            tokens_after=round(self.tokens),
        )

    def view(self, budget: float) -> list[Message]:
        """Returns the messages for a prompt, never above the budget: if pruning was not enough, the messages are
        cut."""
        self._past.describe(budget * self._settings.past_share)
        if self.is_full(budget):
            from duckflow.memory.pruning import squeeze

            squeezed_entries = squeeze(map(copy, self._entries), self._pins, budget * 0.9)
            return [entry.message for entry in squeezed_entries]
        return self._with_notes()

    def summarise(self, summaries: Sequence[str]) -> None:
        """Takes in the model's summaries of the messages that are left out."""
        self._past.summarise(summaries, self._end())

    def _with_notes(self) -> list[Message]:
        """Returns the messages with the notes. A note stands in the place of the messages it describes, but never
        between a call and its results."""
        entries = self._entries
        messages = [entry.message for entry in entries]
        for note in reversed(self._past.notes):
            index = bisect_left(entries, note.place, key=lambda entry: entry.number)
            while index < len(entries) and entries[index].result:
                index += 1
            messages.insert(index, note.message)
        return messages

    def _end(self) -> int:
        """Returns the place where a note can be added: before a call whose results may still come."""
        last_entry = group_entries(self._entries[-TAIL:])[-1].entries[0] if self._entries else None
        return last_entry.number if last_entry and last_entry.message.role == "assistant" else self._taken

    def _put(self, number: int, message: Message) -> None:
        entry = HistoryEntry(number, message)
        self._entries.append(entry)
        self._unscored.append(entry)
        self._tokens += entry.tokens
        if self._tokens > UNSCORED:
            self._score()

    def _score(self) -> None:
        """Scores each message once. Messages are scored only when some may have to be dropped."""
        self._scores = self._scores or Scores()
        for entry in self._unscored:
            entry.base, entry.new_words = self._scores.score(entry.original, entry.size)
        self._unscored = []

    def _tell_anew(self, messages: Sequence[Message], aside: Sequence[Range], forgotten: Collection[int]) -> None:
        """Makes the note on the left-out messages again, from the latest of these messages."""
        shown_numbers = {entry.number for entry in self._entries}
        left_out_numbers = [
            number
            for number in range(max(0, self._taken - TOLD_ANEW), self._taken)
            if not (number in shown_numbers or number in forgotten or _within(number, aside))
        ]
        digest = Digest()
        digest.take(messages[number] for number in left_out_numbers)
        digest.messages = self._taken - len(shown_numbers)
        first_left_out = next((number for number in range(self._taken) if number not in shown_numbers), 0)
        self._past.tell_anew(first_left_out, digest, self._budget * self._settings.past_share)

    def _only(self, entries: Iterable[HistoryEntry]) -> None:
        self._entries = list(entries)
        self._tokens = sum(entry.tokens for entry in self._entries)


def _within(number: int, ranges: Iterable[Range]) -> bool:
    return any(start <= number < end for start, end in ranges)

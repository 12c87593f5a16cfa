"""In which order the context gives way when it is full: older versions of files, long results, single results, and
only then whole exchanges. A call always keeps its results, each at least in a line."""

import re
from collections.abc import Container, Iterable, Sequence

from duckflow.memory.entries import Focus, HistoryEntry, Unit, group_entries, lower_to
from duckflow.memory.settings import MemorySettings

LARGEST = 0.35
"""Of the budget: what one message may take; the rest of it is cut, so that it does not push out all others."""
TOKENS_A_MESSAGE = 1500
"""In a larger budget more of the latest messages are kept as they are: one for so many tokens."""
_READ = re.compile(r"(.+) \(lines (\d+)-(\d+) of ")
_CHANGED = re.compile(r"(?:Changed|Created) (.+?)[ .:]*(?:\(|$)")


class Pruning:
    """Works on entries, in their order; cuts them in place and says which stay."""

    def __init__(self, entries: Sequence[HistoryEntry], pins: Container[int], settings: MemorySettings) -> None:
        self._entries = entries
        self._pins = pins
        self._settings = settings
        self._latest = entries[-1].number + 1 if entries else 0

    def run(self, budget: float, target: float, focus: str) -> list[HistoryEntry]:
        """Each step only as far as there is still too much."""
        units = group_entries(self._entries)
        recent = self._first_recent(units, budget)
        latest = [one for one in units[-1].entries if one.result] if units else []
        self._cut_largest(latest, budget)
        excess = _sum(self._entries) - target
        for entry in older_versions(self._entries):
            if entry.number < recent and excess > 0:
                excess -= entry.cut_to(0)
        old = [one for one in self._entries if one.result and one.number < recent]
        excess -= _lower(old, excess, self._settings.result_tokens)
        older = [one for one in units if one.entries[0].number < recent and not self._pinned(one)]
        if excess > 0:
            excess -= self._cut_remains(older, excess)
            over = _sum(latest) - budget * self._settings.recent_share
            excess -= _lower(latest, min(excess, over), 0)
            excess -= self._cut_single(older, excess)
        return self._whole_units(units, older, target, focus) if excess > 0 else list(self._entries)

    def _first_recent(self, units: Sequence[Unit], budget: float) -> int:
        """Where the latest exchanges begin; the very last one is always among them."""
        room = budget * self._settings.recent_share
        messages = max(self._settings.recent_messages, budget / TOKENS_A_MESSAGE)
        begin = self._latest
        for unit in reversed(units):
            room -= unit.tokens
            messages -= len(unit.entries)
            if begin < self._latest and (room < 0 or messages < 0):
                break
            begin = min(begin, unit.entries[0].number)
        return begin

    def _cut_largest(self, latest: Sequence[HistoryEntry], budget: float) -> None:
        """What is far too long by itself: one message, or the results of the latest exchange together."""
        for entry in self._entries:
            if entry.message.role != "assistant" and entry.number not in self._pins:
                entry.cut_to(budget * LARGEST)
        _lower(latest, _sum(latest) - budget / 2, 0)

    def _cut_remains(self, units: Sequence[Unit], excess: float) -> float:
        """Where a call has several results, the head and tail of a long one say less than a short one that is whole:
        they come down to a line first. How much that saves."""
        remains = [one for unit in units for one in unit.several() if one.cut is not None]
        saved = 0.0
        for entry in sorted(remains, key=lambda one: one.worth(self._latest)):
            if saved < excess:
                saved += entry.cut_to(0)
        return saved

    def _cut_single(self, units: Sequence[Unit], excess: float) -> float:
        """Where a call has several results, those worth least come down to a line, as long as no whole exchange is
        worth less: that will go. How much is saved without the latter."""
        steps: list[tuple[float, HistoryEntry | Unit]] = []
        for unit in units:
            steps.append((max(one.worth(self._latest) for one in unit.entries), unit))
            steps += [(one.worth(self._latest), one) for one in unit.several()]
        saved = 0.0
        for _, step in sorted(steps, key=lambda one: one[0]):
            if excess <= 0:
                break
            less = step.tokens
            if isinstance(step, HistoryEntry):
                less = step.cut_to(0)
                saved += less
            excess -= less
        return saved

    def _pinned(self, unit: Unit) -> bool:
        return any(one.number in self._pins for one in unit.entries)

    def _whole_units(
        self, units: Sequence[Unit], older: Sequence[Unit], target: float, focus: str
    ) -> list[HistoryEntry]:
        """Of the older ones those worth most, as long as they fit."""
        weigh = Focus(focus)
        worth = {id(one): one.worth(self._latest) * weigh.weight(one.texts()) for one in older}
        kept = [unit for unit in units if id(unit) not in worth]
        room = target - sum(unit.tokens for unit in kept)
        for unit in sorted(older, key=lambda one: worth[id(one)], reverse=True):
            if unit.tokens <= room:
                room -= unit.tokens
                kept.append(unit)
        return sorted((entry for unit in kept for entry in unit.entries), key=lambda one: one.number)


def _lower(entries: Sequence[HistoryEntry], excess: float, least: float) -> float:
    """The longest come down, all to the same size, until so much is saved; how much that is."""
    if excess <= 0:
        return 0.0
    size = max(lower_to([one.tokens for one in entries], excess), least)
    return sum(one.cut_to(size) for one in entries)


def older_versions(entries: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """What was read of a file that was read there again, or changed, later; the oldest first. A look at a few lines is
    not replaced by a read of much more: that will be cut before it is."""
    changed: set[str] = set()
    read: dict[str, list[range]] = {}
    found: list[HistoryEntry] = []
    for entry in reversed(entries):
        head = entry.original.text.partition("\n")[0] if entry.result else ""
        if change := _CHANGED.match(head):
            changed.add(change[1])
        elif shown := _READ.match(head):
            path, lines = shown[1], range(int(shown[2]), int(shown[3]) + 1)
            later = read.setdefault(path, [])
            if path in changed or any(_replaces(one, lines) for one in later):
                found.append(entry)
            else:
                later.append(lines)
    return found[::-1]


def _replaces(later: range, lines: range) -> bool:
    return later.start <= lines.start and lines.stop <= later.stop and len(later) <= 2 * len(lines)


def squeeze(entries: Iterable[HistoryEntry], pins: Container[int], budget: float) -> list[HistoryEntry]:
    """The way out when even what must stay is too much: pins and the latest exchange, their results first, come down
    to what there is room for; of the others, the latest that fit."""
    units = group_entries(entries)
    must = [units.pop(), *(one for one in units if any(entry.number in pins for entry in one.entries))] if units else []
    kept = [entry for unit in must for entry in unit.entries]
    _lower([one for one in kept if one.result], _sum(kept) - budget, 0)
    _lower(kept, _sum(kept) - budget, 0)
    room = budget - _sum(kept)
    for unit in reversed(units):
        if unit not in must:
            room -= unit.tokens
            if room < 0:
                break
            kept += unit.entries
    return sorted(kept, key=lambda entry: entry.number)


def _sum(entries: Iterable[HistoryEntry]) -> float:
    return sum(entry.tokens for entry in entries)

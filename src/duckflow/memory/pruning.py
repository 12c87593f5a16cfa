"""Prunes the context when it is full, in this order: older versions of files, long results, single results, and only
then whole exchanges. A call always keeps its results, each at least in a line."""

import re
from collections.abc import Container, Iterable, Sequence

from duckflow.memory.entries import Focus, HistoryEntry, Unit, group_entries, lower_to
from duckflow.memory.settings import MemorySettings

LARGEST = 0.35
"""The share of the budget that one message may take. A longer message is cut, so that it does not push out all
others."""
TOKENS_A_MESSAGE = 1500
"""The budget divided by this number is the number of latest messages that stay whole, unless the settings ask for
more."""
_READ = re.compile(r"(.+) \(lines (\d+)-(\d+) of ")
_CHANGED = re.compile(r"(?:Changed|Created) (.+?)[ .:]*(?:\(|$)")


class Pruning:
    """Prunes entries in their order: it cuts entries in place and returns the entries that stay."""

    def __init__(self, entries: Sequence[HistoryEntry], pins: Container[int], settings: MemorySettings) -> None:
        self._entries = entries
        self._pins = pins
        self._settings = settings
        self._latest = entries[-1].number + 1 if entries else 0

    def run(self, budget: float, target: float, focus: str) -> list[HistoryEntry]:
        """Cuts messages that are too large by themselves, then goes on step by step while the context is too long."""
        units = group_entries(self._entries)
        first_recent = self._first_recent(units, budget)
        latest_results = [entry for entry in units[-1].entries if entry.result] if units else []
        self._cut_largest(latest_results, budget)
        excess = _sum(self._entries) - target
        for entry in older_versions(self._entries):
            if entry.number < first_recent and excess > 0:
                excess -= entry.cut_to(0)
        old_results = [entry for entry in self._entries if entry.result and entry.number < first_recent]
        excess -= _lower(old_results, excess, self._settings.result_tokens)
        older_units = [unit for unit in units if unit.entries[0].number < first_recent and not self._pinned(unit)]
        if excess > 0:
            excess -= self._cut_remains(older_units, excess)
            recent_excess = _sum(latest_results) - budget * self._settings.recent_share
            excess -= _lower(latest_results, min(excess, recent_excess), 0)
            excess -= self._cut_single(older_units, excess)
        return self._whole_units(units, older_units, target, focus) if excess > 0 else list(self._entries)

    def _first_recent(self, units: Sequence[Unit], budget: float) -> int:
        """Returns the number of the message with which the latest exchanges begin; the very last exchange is always
        among them."""
        tokens_left = budget * self._settings.recent_share
        messages = max(self._settings.recent_messages, budget / TOKENS_A_MESSAGE)
        first_number = self._latest
        for unit in reversed(units):
            tokens_left -= unit.tokens
            messages -= len(unit.entries)
            if first_number < self._latest and (tokens_left < 0 or messages < 0):
                break
            first_number = min(first_number, unit.entries[0].number)
        return first_number

    def _cut_largest(self, latest: Sequence[HistoryEntry], budget: float) -> None:
        """Cuts texts that are far too long by themselves: one message, or the results of the latest exchange
        together."""
        for entry in self._entries:
            if entry.message.role != "assistant" and entry.number not in self._pins:
                entry.cut_to(budget * LARGEST)
        _lower(latest, _sum(latest) - budget / 2, 0)

    def _cut_remains(self, units: Sequence[Unit], excess: float) -> float:
        """Replaces each shortened result by one line where a call has several results. Returns the saved tokens. The
        head and tail of a long result say less than a short result that is whole."""
        cut_entries = [entry for unit in units for entry in unit.several() if entry.cut is not None]
        saved_tokens = 0.0
        for entry in sorted(cut_entries, key=lambda entry: entry.worth(self._latest)):
            if saved_tokens < excess:
                saved_tokens += entry.cut_to(0)
        return saved_tokens

    def _cut_single(self, units: Sequence[Unit], excess: float) -> float:
        """Where a call has several results, replaces the least valuable ones by one line each. Returns the saved
        tokens. It stops early if dropping whole exchanges of less value will save enough."""
        steps: list[tuple[float, HistoryEntry | Unit]] = []
        for unit in units:
            steps.append((max(entry.worth(self._latest) for entry in unit.entries), unit))
            steps += [(entry.worth(self._latest), entry) for entry in unit.several()]
        saved_tokens = 0.0
        for _, step in sorted(steps, key=lambda pair: pair[0]):
            if excess <= 0:
                break
            tokens = step.tokens
            if isinstance(step, HistoryEntry):
                tokens = step.cut_to(0)
                saved_tokens += tokens
            excess -= tokens
        return saved_tokens

    def _pinned(self, unit: Unit) -> bool:
        return any(entry.number in self._pins for entry in unit.entries)

    def _whole_units(
        self, units: Sequence[Unit], older: Sequence[Unit], target: float, focus: str
    ) -> list[HistoryEntry]:
        """Keeps the most valuable of the older exchanges, as long as they fit."""
        focus_weights = Focus(focus)
        worth_by_unit = {id(unit): unit.worth(self._latest) * focus_weights.weight(unit.texts()) for unit in older}
        kept_units = [unit for unit in units if id(unit) not in worth_by_unit]
        tokens_left = target - sum(unit.tokens for unit in kept_units)
        for unit in sorted(older, key=lambda unit: worth_by_unit[id(unit)], reverse=True):
            if unit.tokens <= tokens_left:
                tokens_left -= unit.tokens
                kept_units.append(unit)
        return sorted((entry for unit in kept_units for entry in unit.entries), key=lambda entry: entry.number)


def _lower(entries: Sequence[HistoryEntry], excess: float, least: float) -> float:
    """Cuts the longest entries, all to the same size, until `excess` tokens are saved. Returns the tokens that were
    really saved."""
    if excess <= 0:
        return 0.0
    size = max(lower_to([entry.tokens for entry in entries], excess), least)
    return sum(entry.cut_to(size) for entry in entries)


def older_versions(entries: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Returns reads of a file that was changed later, or whose lines were read again later; the oldest first. A read of
    a few lines is not replaced by a read of much more, since the longer one will be cut first."""
    changed_paths: set[str] = set()
    read_ranges: dict[str, list[range]] = {}
    replaced_entries: list[HistoryEntry] = []
    for entry in reversed(entries):
        first_line = entry.original.text.partition("\n")[0] if entry.result else ""
        if change := _CHANGED.match(first_line):
            changed_paths.add(change[1])
        elif read_match := _READ.match(first_line):
            path, lines = read_match[1], range(int(read_match[2]), int(read_match[3]) + 1)
            later_ranges = read_ranges.setdefault(path, [])
            if path in changed_paths or any(_replaces(later_lines, lines) for later_lines in later_ranges):
                replaced_entries.append(entry)
            else:
                later_ranges.append(lines)
    return replaced_entries[::-1]


def _replaces(later: range, lines: range) -> bool:
    return later.start <= lines.start and lines.stop <= later.stop and len(later) <= 2 * len(lines)


def squeeze(entries: Iterable[HistoryEntry], pins: Container[int], budget: float) -> list[HistoryEntry]:
    """Shrinks the context when even the messages that must stay are too long. Pinned messages and the latest exchange
    are cut to the budget, their results first. Other exchanges stay if they fit, the latest first."""
    units = group_entries(entries)
    required_units = (
        [units.pop(), *(unit for unit in units if any(entry.number in pins for entry in unit.entries))] if units else []
    )
    kept_entries = [entry for unit in required_units for entry in unit.entries]
    _lower([entry for entry in kept_entries if entry.result], _sum(kept_entries) - budget, 0)
    _lower(kept_entries, _sum(kept_entries) - budget, 0)
    tokens_left = budget - _sum(kept_entries)
    for unit in reversed(units):
        if unit not in required_units:
            tokens_left -= unit.tokens
            if tokens_left < 0:
                break
            kept_entries += unit.entries
    return sorted(kept_entries, key=lambda entry: entry.number)


def _sum(entries: Iterable[HistoryEntry]) -> float:
    return sum(entry.tokens for entry in entries)

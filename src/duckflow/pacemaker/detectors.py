"""The detectors: each looks for one way of going in circles in the last entries of the ledger."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from duckflow.pacemaker.ledger import LedgerEntry
from duckflow.pacemaker.reason import Escalation, Reason
from duckflow.pacemaker.settings import DetectorSettings, Threshold

Entries = Sequence[LedgerEntry]


class Sighting(NamedTuple):
    """Something seen: how far it has gone, how often it happened, and over how many of the last steps."""

    level: Escalation
    reason: Reason
    key: str
    times: int
    span: int


class Detector(Protocol):
    """`look` is given the last entries, the latest last and at least one."""

    def look(self, entries: Entries) -> Sighting | None: ...


def escalation_at(times: int, threshold: Threshold) -> Escalation:
    if times >= threshold.call:
        return Escalation.CALL
    return Escalation.REPLAN if times >= threshold.replan else Escalation.FINE


def make_sighting(reason: Reason, key: str, times: int, span: int, threshold: Threshold) -> Sighting | None:
    level = escalation_at(times, threshold)
    return Sighting(level, reason, key, times, span) if level else None


def in_a_row(entries: Entries, fits: Callable[[LedgerEntry], bool]) -> int:
    """How many entries at the end fit."""
    count = 0
    for entry in reversed(entries):
        if not fits(entry):
            break
        count += 1
    return count


class SameCallFails:
    """The same call failing in a row, whatever it says. A test run that fails counts here too."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_call_fails

    def look(self, entries: Entries) -> Sighting | None:
        call = entries[-1].call
        times = in_a_row(entries, lambda entry: entry.step.is_error and entry.call == call)
        return make_sighting(Reason.ERROR_CASCADE, "same_call_fails", times, times, self._threshold)


class SameError:
    """The same kind of error again and again, whatever was tried: in a row, or soon again with other steps between."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_error
        self._within = settings.same_error_within

    def look(self, entries: Entries) -> Sighting | None:
        last = entries[-1]
        if not last.failed:
            return None
        near = [entry.outcome == last.outcome for entry in entries[-self._within :]]
        times = sum(near)
        row = in_a_row(entries, lambda entry: entry.outcome == last.outcome)
        if row < self._threshold.replan and times < self._threshold.call - 1:
            return None
        level = Escalation.CALL if times >= self._threshold.call else Escalation.REPLAN
        return Sighting(level, Reason.ERROR_CASCADE, "same_error", times, len(near) - near.index(True))


class SameText:
    """The model saying the same again, with nothing done between."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_text

    def look(self, entries: Entries) -> Sighting | None:
        call = entries[-1].call
        times = in_a_row(entries, lambda entry: entry.step.kind == "talk" and entry.call == call)
        return make_sighting(Reason.STAGNATION, "same_text", times, times, self._threshold)


class SameCall:
    """The same call with the same result in a row."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_call

    def look(self, entries: Entries) -> Sighting | None:
        last = entries[-1]
        times = in_a_row(entries, last.same_as)
        return make_sighting(Reason.STAGNATION, "same_call", times, times, self._threshold)


class Cycle:
    """The same two to five steps round and round."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.cycle
        self._longest = settings.longest_cycle

    def look(self, entries: Entries) -> Sighting | None:
        steps = [(entry.call, entry.outcome) for entry in entries]
        rounds, length = max((count_rounds(steps, length), -length) for length in range(2, self._longest + 1))
        return make_sighting(Reason.STAGNATION, "cycle", rounds, -length * rounds, self._threshold)


def count_rounds(steps: list[tuple[int, int]], length: int) -> int:
    """How many times the last `length` steps stand at the end, one after the other; 0 when they are all the same."""
    last = steps[-length:]
    if len(steps) < 2 * length or last.count(last[0]) == length:
        return 0
    rounds, end = 1, len(steps) - length
    while end >= length and steps[end - length : end] == last:
        rounds, end = rounds + 1, end - length
    return rounds


class Again:
    """The same call with the same result, other steps between, but no edit that could have changed it."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.again
        self._within = settings.again_within

    def look(self, entries: Entries) -> Sighting | None:
        last = entries[-1]
        if last.step.kind == "talk":
            return None
        times = span = 0
        for age, entry in enumerate(reversed(entries[-self._within :]), 1):
            if entry.edited:
                break
            if last.same_as(entry):
                times, span = times + 1, age
        return make_sighting(Reason.STAGNATION, "again", times, span, self._threshold)


class LittleNew:
    """Hardly anything new in the last steps."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.little_new
        self._allowed = settings.little_new_allowed

    def look(self, entries: Entries) -> Sighting | None:
        times = new = 0
        for entry in reversed(entries[-self._threshold.call :]):
            new += entry.new
            if new > self._allowed:
                break
            times += 1
        return make_sighting(Reason.STAGNATION, "little_new", times, times, self._threshold)


def error_detectors(settings: DetectorSettings) -> tuple[Detector, ...]:
    return SameCallFails(settings), SameError(settings)


def stagnation_detectors(settings: DetectorSettings) -> tuple[Detector, ...]:
    """Exact repetition is more specific than little news, so it is asked first."""
    return SameText(settings), SameCall(settings), Cycle(settings), Again(settings), LittleNew(settings)


def longest_look(settings: DetectorSettings) -> int:
    """How many entries the detectors need."""
    return max(
        settings.same_call_fails.call,
        settings.same_error_within,
        settings.same_text.call,
        settings.same_call.call,
        settings.cycle.call * settings.longest_cycle,
        settings.again_within,
        settings.little_new.call,
    )

"""The detectors: each watches for one way of going in circles, and knows how far that has gone."""

from collections import deque
from typing import ClassVar, Protocol

from duckflow.pacemaker.ledger import Entry
from duckflow.pacemaker.reason import Level, Reason
from duckflow.pacemaker.settings import DetectorSettings, Threshold

Same = tuple[int, int]


class Detector(Protocol):
    """Sees every entry of the ledger. `times` is how often it happened, `span` over how many of the last steps."""

    reason: ClassVar[Reason]
    key: ClassVar[str]
    level: Level
    times: int

    def see(self, entry: Entry) -> None: ...

    def span(self) -> int: ...


def reached(times: int, threshold: Threshold) -> Level:
    if times >= threshold.call:
        return Level.CALL
    return Level.REPLAN if times >= threshold.replan else Level.FINE


class SameCallFails:
    """The same call failing in a row, whatever it says. A test run that fails counts here too."""

    reason: ClassVar[Reason] = Reason.ERROR_CASCADE
    key: ClassVar[str] = "same_call_fails"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_call_fails
        self._call = 0
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        if not entry.step.is_error:
            self.times, self.level = 0, Level.FINE
            return
        self.times = self.times + 1 if self.times and entry.call == self._call else 1
        self._call = entry.call
        self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times


class SameError:
    """The same kind of error again and again, whatever was tried: in a row, then also with other steps between."""

    reason: ClassVar[Reason] = Reason.ERROR_CASCADE
    key: ClassVar[str] = "same_error"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_error
        self._recent: deque[int | None] = deque(maxlen=settings.same_error_within)
        self._row = 0
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        if not entry.failed:
            self._recent.append(None)
            self._row, self.times, self.level = 0, 0, Level.FINE
            return
        again = bool(self._recent) and self._recent[-1] == entry.outcome
        self._row = self._row + 1 if again else 1
        self._recent.append(entry.outcome)
        self.times = self._recent.count(entry.outcome)
        self.level = self._reached()

    def span(self) -> int:
        return self._row if self.times == self._row else len(self._recent)

    def _reached(self) -> Level:
        if self.times >= self._threshold.call:
            return Level.CALL
        nearly = self.times == self._threshold.call - 1
        return Level.REPLAN if nearly or self._row >= self._threshold.replan else Level.FINE


class SameCall:
    """The same call with the same result in a row."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "same_call"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_call
        self._last: Same = (0, 0)
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        same = (entry.call, entry.outcome)
        if same != self._last:
            self._last, self.times, self.level = same, 1, Level.FINE
            return
        self.times += 1
        self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times


class Again:
    """The same call with the same result, other steps between, but no edit that could have changed it."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "again"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.again
        self._recent: deque[Same] = deque(maxlen=settings.again_within)
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        self.times, self.level = 0, Level.FINE
        if entry.edited:
            self._recent.clear()
        if entry.edited or entry.step.kind == "talk":
            return
        same = (entry.call, entry.outcome)
        self._recent.append(same)
        if entry.repeated:
            self.times = self._recent.count(same)
            self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return len(self._recent) - self._recent.index(self._recent[-1])


class Cycle:
    """The same two to five steps round and round."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "cycle"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.cycle
        self._longest = settings.longest_cycle
        self._recent: deque[Same] = deque(maxlen=settings.longest_cycle * settings.cycle.call)
        self._length = 0
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        self._recent.append((entry.call, entry.outcome))
        self.times, self.level = 0, Level.FINE
        if not entry.repeated:
            return
        steps = list(self._recent)
        for length in range(2, self._longest + 1):
            rounds = count_rounds(steps, length)
            if rounds > max(1, self.times):
                self.times, self._length = rounds, length
        self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times * self._length


def count_rounds(steps: list[Same], length: int) -> int:
    """How many times the last `length` steps stand at the end, one after the other; 0 when they are all the same."""
    last = steps[-length:]
    if len(steps) < 2 * length or last.count(last[0]) == length:
        return 0
    rounds, end = 1, len(steps) - length
    while end >= length and steps[end - length : end] == last:
        rounds, end = rounds + 1, end - length
    return rounds


class LittleNew:
    """Hardly anything new in the last steps."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "little_new"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.little_new
        self._allowed = settings.little_new_allowed
        self._recent: deque[bool] = deque(maxlen=settings.little_new.call)
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        self._recent.append(entry.new)
        self.times, self.level = 0, Level.FINE
        if entry.new:
            return
        found = 0
        for new in reversed(self._recent):
            found += new
            if found > self._allowed:
                break
            self.times += 1
        self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times


class SameText:
    """The model saying the same again, with nothing done between."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "same_text"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_text
        self._said = 0
        self.times = 0
        self.level = Level.FINE

    def see(self, entry: Entry) -> None:
        if entry.step.kind != "talk":
            self.times, self.level = 0, Level.FINE
            return
        self.times = self.times + 1 if self.times and entry.call == self._said else 1
        self._said = entry.call
        self.level = reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times


def all_detectors(settings: DetectorSettings) -> tuple[Detector, ...]:
    """In the order they are asked: errors are more specific than stagnation, exact repetition than little news."""
    return (
        SameCallFails(settings),
        SameError(settings),
        SameText(settings),
        SameCall(settings),
        Cycle(settings),
        Again(settings),
        LittleNew(settings),
    )

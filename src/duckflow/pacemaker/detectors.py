"""The detectors: each watches for one way of going in circles. They see the ledger's entries and answer with a level."""

from collections import deque
from typing import ClassVar, Protocol

from duckflow.pacemaker.ledger import Entry
from duckflow.pacemaker.reason import Level, Reason
from duckflow.pacemaker.settings import DetectorSettings, Threshold

Same = tuple[int, int]


class Detector(Protocol):
    """`times` and `span` say what the level rests on: how often, and over how many of the last steps."""

    reason: ClassVar[Reason]
    key: ClassVar[str]
    times: int

    def see(self, entry: Entry) -> None: ...

    def level(self) -> Level: ...

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

    def see(self, entry: Entry) -> None:
        if not entry.step.is_error:
            self.times = 0
            return
        self.times = self.times + 1 if self.times and entry.call == self._call else 1
        self._call = entry.call

    def level(self) -> Level:
        return reached(self.times, self._threshold)

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

    def see(self, entry: Entry) -> None:
        if not entry.failed:
            self._recent.append(None)
            self._row = self.times = 0
            return
        again = bool(self._recent) and self._recent[-1] == entry.outcome
        self._row = self._row + 1 if again else 1
        self._recent.append(entry.outcome)
        self.times = self._recent.count(entry.outcome)

    def level(self) -> Level:
        if self.times >= self._threshold.call:
            return Level.CALL
        nearly = self.times == self._threshold.call - 1
        return Level.REPLAN if nearly or self._row >= self._threshold.replan else Level.FINE

    def span(self) -> int:
        return len(self._recent) if self.times > self._row else self._row


class SameCall:
    """The same call with the same result in a row."""

    reason: ClassVar[Reason] = Reason.STAGNATION
    key: ClassVar[str] = "same_call"

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.same_call
        self._last: Same = (0, 0)
        self.times = 0

    def see(self, entry: Entry) -> None:
        same = (entry.call, entry.outcome)
        self.times = self.times + 1 if same == self._last else 1
        self._last = same

    def level(self) -> Level:
        return reached(self.times, self._threshold)

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

    def see(self, entry: Entry) -> None:
        self.times = 0
        if entry.edited:
            self._recent.clear()
        if entry.edited or entry.step.kind == "talk":
            return
        same = (entry.call, entry.outcome)
        self._recent.append(same)
        if not entry.new:
            self.times = self._recent.count(same)

    def level(self) -> Level:
        return reached(self.times, self._threshold)

    def span(self) -> int:
        return len(self._recent) - self._recent.index(self._recent[-1]) if self._recent else 0


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

    def see(self, entry: Entry) -> None:
        self._recent.append((entry.call, entry.outcome))
        self.times = 0
        if entry.new:
            return
        steps = list(self._recent)
        for length in range(2, self._longest + 1):
            rounds = count_rounds(steps, length)
            if rounds >= self._threshold.replan and rounds > self.times:
                self.times, self._length = rounds, length

    def level(self) -> Level:
        return reached(self.times, self._threshold)

    def span(self) -> int:
        return self.times * self._length


def count_rounds(steps: list[Same], length: int) -> int:
    """How many times the last `length` steps stand at the end, one after the other."""
    last = steps[-length:]
    if len(last) < length or last.count(last[0]) == length:
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

    def see(self, entry: Entry) -> None:
        self._recent.append(entry.new)
        self.times = 0
        if entry.new:
            return
        found = 0
        for age, new in enumerate(reversed(self._recent), 1):
            found += new
            if found > self._allowed:
                return
            self.times = age

    def level(self) -> Level:
        return reached(self.times, self._threshold)

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

    def see(self, entry: Entry) -> None:
        if entry.step.kind != "talk":
            self.times = 0
            return
        self.times = self.times + 1 if self.times and entry.call == self._said else 1
        self._said = entry.call

    def level(self) -> Level:
        return reached(self.times, self._threshold)

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

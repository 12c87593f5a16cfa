"""The watch: all detectors and the two vitals that can get lost, asked in order of severity."""

from duckflow.pacemaker.detectors import Detector, all_detectors, reached
from duckflow.pacemaker.ledger import Entry, Ledger
from duckflow.pacemaker.reason import Finding, Level, Reason
from duckflow.pacemaker.settings import PacemakerSettings, Threshold

NAMED = 3


class LowVital:
    """A vital that stays under its threshold from beat to beat. A beat on which it rises does not count."""

    def __init__(self, reason: Reason, key: str, low: float, beats: Threshold) -> None:
        self.reason = reason
        self.key = key
        self._low = low
        self._beats = beats
        self._before = 1.0
        self.times = 0
        self.level = Level.FINE

    def check(self, value: float) -> None:
        if value >= self._low:
            self.times = 0
        elif value <= self._before:
            self.times += 1
        self._before = value
        self.level = reached(self.times, self._beats)

    def span(self) -> int:
        return self.times


Found = Detector | LowVital


class Watch:
    """Sees every entry; `worst` says what is most pressing now."""

    def __init__(self, settings: PacemakerSettings) -> None:
        self._detectors: tuple[Detector, ...] = all_detectors(settings.detectors)
        vitals = settings.vitals
        self._focus = LowVital(Reason.FOCUS_LOST, "focus_lost", vitals.focus_lost, vitals.low_beats)
        self._mood = LowVital(Reason.CONFIDENCE_LOW, "confidence_low", vitals.mood_low, vitals.low_beats)
        errors = tuple(each for each in self._detectors if each.reason is Reason.ERROR_CASCADE)
        others = tuple(each for each in self._detectors if each.reason is Reason.STAGNATION)
        self._ordered: tuple[Found, ...] = (*errors, self._focus, *others, self._mood)

    def see(self, entry: Entry) -> None:
        for detector in self._detectors:
            detector.see(entry)

    def worst(self, focus: float, mood: float) -> Found | None:
        """The first that has gone far enough to ask, else the first that has gone far enough to plan anew."""
        self._focus.check(focus)
        self._mood.check(mood)
        found: Found | None = None
        for each in self._ordered:
            if each.level is Level.CALL:
                return each
            if found is None and each.level is Level.REPLAN:
                found = each
        return found


def describe(found: Found, ledger: Ledger) -> Finding:
    """What was found, with the steps it rests on and what they cost."""
    span = min(found.span(), len(ledger.recent))
    steps = list(ledger.recent)[-span:] if span else []
    names = list(dict.fromkeys(entry.label for entry in steps))
    shown = " → ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
    return Finding(
        reason=found.reason,
        key=found.key,
        label=shown,
        times=found.times,
        since=ledger.steps - span + 1,
        steps=span,
        tokens=ledger.tokens(span),
    )


def spent(reason: Reason, ledger: Ledger) -> Finding:
    """Stamina or loops used up: what the turn has cost so far."""
    key = "stamina_depleted" if reason is Reason.STAMINA_DEPLETED else "loops_exhausted"
    kept = len(ledger.recent)
    return Finding(reason, key, times=ledger.errors, since=1, steps=ledger.steps, tokens=ledger.tokens(kept))

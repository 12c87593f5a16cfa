"""The watch: all detectors and the two vitals that can get lost, asked in order of severity."""

from collections.abc import Iterable

from duckflow.pacemaker.detectors import Sighting, longest_look, make_detectors, make_sighting
from duckflow.pacemaker.ledger import Ledger
from duckflow.pacemaker.reason import Escalation, Finding, Reason
from duckflow.pacemaker.settings import PacemakerSettings, Threshold

NAMED = 3


class LowVital:
    """A vital that stays under its threshold from beat to beat. A beat on which it rises does not count."""

    def __init__(self, reason: Reason, key: str, low: float, beats: Threshold) -> None:
        self._reason = reason
        self._key = key
        self._low = low
        self._beats = beats
        self._before = 1.0
        self._times = 0

    def check(self, value: float) -> Sighting | None:
        if value >= self._low:
            self._times = 0
        elif value <= self._before:
            self._times += 1
        self._before = value
        return make_sighting(self._reason, self._key, self._times, self._times, self._beats) if self._times else None


class DetectorWatch:
    """Asked once a beat what is most pressing."""

    def __init__(self, settings: PacemakerSettings) -> None:
        vitals = settings.vitals
        self._focus = LowVital(Reason.FOCUS_LOST, "focus_lost", vitals.focus_lost, vitals.focus_beats)
        self._mood = LowVital(Reason.CONFIDENCE_LOW, "confidence_low", vitals.mood_low, vitals.mood_beats)
        self._detectors = make_detectors(settings.detectors)
        self._back = longest_look(settings.detectors)

    def worst(self, ledger: Ledger, focus: float, mood: float) -> Sighting | None:
        """The first that has gone far enough to ask, else the first that has gone far enough to plan anew."""
        low_focus, low_mood = self._focus.check(focus), self._mood.check(mood)
        last = ledger.recent[-1] if ledger.recent else None
        entries = list(ledger.recent)[-self._back :]
        seen = [sighting for one in self._detectors if last and (sighting := one.look(entries))]
        # What is new excuses everything but an error, and rewriting what was just written.
        if last and last.new and not last.step.is_error:
            seen = [sighting for sighting in seen if sighting.key == "rewriting"]
        errors = [one for one in seen if one.reason is Reason.ERROR_CASCADE]
        others = [one for one in seen if one.reason is not Reason.ERROR_CASCADE]
        return first_of([*errors, *filter(None, [low_focus]), *others, *filter(None, [low_mood])])


def first_of(sightings: Iterable[Sighting]) -> Sighting | None:
    first: Sighting | None = None
    for sighting in sightings:
        if sighting.level is Escalation.CALL:
            return sighting
        first = first or sighting
    return first


def describe(sighting: Sighting, ledger: Ledger) -> Finding:
    """What was found, with the steps it rests on and what they cost."""
    span = min(sighting.span, len(ledger.recent))
    steps = list(ledger.recent)[-span:] if span else []
    names = list(dict.fromkeys(entry.label for entry in steps))
    shown = " → ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
    return Finding(
        reason=sighting.reason,
        key=sighting.key,
        label=shown,
        times=sighting.times,
        since=ledger.steps - span + 1,
        steps=span,
        tokens=ledger.tokens(span),
    )


def describe_spent(reason: Reason, times: int, ledger: Ledger, key: str = "") -> Finding:
    """Stamina or loops used up: what it has cost since the user last spoke."""
    return Finding(reason, key or reason.lower(), times=times, since=1, steps=ledger.steps, tokens=ledger.tokens())

"""The detectors. Each looks for one way of going in circles: in the last recorded steps, in the text that a model
streams, or in the vitals (mood, focus and stamina)."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from duckflow.pacemaker.interventions import Escalation, Finding, Reason
from duckflow.pacemaker.ledger import Ledger, LedgerEntry
from duckflow.pacemaker.settings import DetectorSettings, PacemakerSettings, Threshold

FENCE = "```"
LETTER = r"\w"
PROBE = 20
LEAST = 200
"""The fewest characters of a repetition that counts. A shorter one is fine, such as a refrain or `ha ha ha`."""


class RepeatedText:
    """Notices when a streamed reply ends in one passage many times in a row. Call `hear(piece)` for every piece of the
    reply.

    Code between fences is not checked, because code may repeat itself. Use a new object for each reply.
    """

    def __init__(self, settings: DetectorSettings) -> None:
        self._repeats = settings.stream_repeats
        self._longest = settings.stream_longest
        self._keep = max(settings.stream_longest * settings.stream_repeats, LEAST + settings.stream_longest)
        self._text = ""
        self._in_code = False
        self._tail = ""

    def hear(self, piece: str) -> bool:
        pieces = (self._tail + piece).split(FENCE)
        # The stream may cut a fence in two, so trailing backticks are kept for the next piece.
        last_piece = pieces[-1].rstrip("`")
        self._tail = pieces[-1][len(last_piece) :]
        pieces[-1] = last_piece
        for number, piece_part in enumerate(pieces):
            if number:
                self._in_code, self._text = not self._in_code, ""
            if not self._in_code:
                self._text = (self._text + piece_part)[-self._keep :]
        return not self._in_code and self._is_round()

    def _is_round(self) -> bool:
        """Says whether the text ends in `repeats` copies of the same passage. A line of dashes does not count."""
        text, text_end = self._text, self._text[-PROBE:]
        if not re.search(LETTER, text_end):
            return False
        offset = text.rfind(text_end, 0, len(text) - 1)
        while offset >= 0:
            length = len(text) - PROBE - offset
            if length > self._longest:
                return False
            if text.endswith(text[-length:] * max(self._repeats, -(-LEAST // length))):
                return True
            offset = text.rfind(text_end, 0, offset + PROBE - 1)
        return False


TIMES = 40
LONGEST = 6
"""The number of lines of the longest passage that is searched for."""
NUMBER = r"\d+"


class RepeatedLines:
    """Notices when a streamed text repeats its lines. Numbers are ignored, so counting up is a repetition too."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""

    def hear(self, piece: str) -> bool:
        *whole_lines, self._rest = (self._rest + piece).split("\n")
        for line in whole_lines:
            if line.strip():
                self._lines.append(re.sub(NUMBER, "0", line.strip()))
        del self._lines[: -TIMES * LONGEST]
        return bool(whole_lines) and any(self._goes_round(length) for length in range(1, LONGEST + 1))

    def _goes_round(self, length: int) -> bool:
        last_lines = self._lines[-length * TIMES :]
        return len(last_lines) == length * TIMES and last_lines == last_lines[:length] * TIMES


Entries = Sequence[LedgerEntry]


class Sighting(NamedTuple):
    """A repetition that a detector saw: how the Pacemaker must intervene, how often the repetition happened, and over
    how many of the last steps."""

    level: Escalation
    reason: Reason
    key: str
    times: int
    span: int


class Detector(Protocol):
    """Looks for one kind of repetition. `look` gets the last entries, at least one, the latest last."""

    def look(self, entries: Entries) -> Sighting | None: ...


def escalation_at(times: int, threshold: Threshold) -> Escalation:
    if times >= threshold.call:
        return Escalation.CALL
    return Escalation.REPLAN if times >= threshold.replan else Escalation.FINE


def make_sighting(reason: Reason, key: str, times: int, span: int, threshold: Threshold) -> Sighting | None:
    level = escalation_at(times, threshold)
    return Sighting(level, reason, key, times, span) if level else None


def in_a_row(entries: Entries, fits: Callable[[LedgerEntry], bool]) -> int:
    """Returns for how many of the last entries, without a gap, `fits` is true."""
    count = 0
    for entry in reversed(entries):
        if not fits(entry):
            break
        count += 1
    return count


class SameError:
    """Finds the same kind of error several times, in a row or with other steps between."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.again
        self._within = settings.within

    def look(self, entries: Entries) -> Sighting | None:
        last_entry = entries[-1]
        if not last_entry.failed:
            return None
        same_outcomes = [entry.outcome == last_entry.outcome for entry in entries[-self._within :]]
        span = len(same_outcomes) - same_outcomes.index(True)
        return make_sighting(Reason.ERROR_CASCADE, "same_error", sum(same_outcomes), span, self._threshold)


class SameCall:
    """Finds a call that fails several times in a row. A call that changes something each time, as a bisection does, is
    not meant. It also finds a call that is soon repeated with the same result, if no edit in between could have changed
    the result. Talk and edits must repeat without anything in between."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.again
        self._within = settings.within

    def look(self, entries: Entries) -> Sighting | None:
        last_entry = entries[-1]
        failures = in_a_row(entries, lambda entry: entry.fails_again and entry.call == last_entry.call)
        if failures >= self._threshold.replan:
            return make_sighting(Reason.ERROR_CASCADE, "same_call_fails", failures, failures, self._threshold)
        times = span = 0
        for age, entry in enumerate(reversed(entries[-self._within :]), 1):
            if last_entry.same_as(entry):
                times, span = times + 1, age
            elif entry.edited or last_entry.edited or last_entry.step.kind == "talk":
                break
        return make_sighting(Reason.STAGNATION, "same_call", times, span, self._threshold)


class OnlyTalk:
    """Finds Decisions in a row that only talk, or decide nothing at all. A model may think aloud, so talk is tolerated
    for longer than other repetitions. An empty reply is reported at once."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = Threshold(replan=settings.again.call, call=2 * settings.again.call)

    def look(self, entries: Entries) -> Sighting | None:
        silent_loops = in_a_row(entries, lambda entry: entry.step.kind == "talk" and not entry.step.text)
        if silent_loops:
            level = Escalation.CALL if silent_loops > 1 else Escalation.REPLAN
            return Sighting(level, Reason.STAGNATION, "nothing_decided", silent_loops, silent_loops)
        times = in_a_row(entries, lambda entry: entry.step.kind == "talk")
        return make_sighting(Reason.STAGNATION, "only_talk", times, times, self._threshold)


class Rewriting:
    """Finds edits in a row that only change text which this turn wrote itself, without looking at the result in
    between."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._threshold = settings.again

    def look(self, entries: Entries) -> Sighting | None:
        times = in_a_row(entries, lambda entry: entry.rewrites)
        return make_sighting(Reason.STAGNATION, "rewriting", times, times, self._threshold)


class Cycle:
    """Finds a sequence of two or more steps that is repeated. A second round is enough to make the model plan anew."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._enough = settings.again.replan

    def look(self, entries: Entries) -> Sighting | None:
        steps = [(entry.call, entry.outcome) for entry in entries]
        lengths = range(2, len(steps) // 2 + 1)
        rounds, length = max(((count_rounds(steps, length), -length) for length in lengths), default=(0, 0))
        level = Escalation.CALL if rounds >= self._enough else Escalation.REPLAN
        return Sighting(level, Reason.STAGNATION, "cycle", rounds, -length * rounds) if rounds > 1 else None


def count_rounds(steps: list[tuple[int, int]], length: int) -> int:
    """Returns how many times the last `length` steps come in a row at the end; 0 when all of them are the same."""
    last_steps = steps[-length:]
    if len(steps) < 2 * length or last_steps.count(last_steps[0]) == length:
        return 0
    rounds, end = 1, len(steps) - length
    while end >= length and steps[end - length : end] == last_steps:
        rounds, end = rounds + 1, end - length
    return rounds


def make_detectors(settings: DetectorSettings) -> tuple[Detector, ...]:
    """Returns the detectors in the order in which they look at the steps."""
    return SameCall(settings), SameError(settings), OnlyTalk(settings), Rewriting(settings), Cycle(settings)


NAMED = 3


class LostFocus:
    """Notices that focus (how coherent the work is, from 0 to 1) stays below its threshold in several loops in a row
    that make no progress. A loop in which focus has risen does not count."""

    def __init__(self, low: float, beats: int) -> None:
        self._low = low
        self._beats = beats
        self._before = 1.0
        self._times = 0

    def check(self, focus: float, gained: bool) -> Sighting | None:
        if focus >= self._low or gained:
            self._times = 0
        elif focus <= self._before:
            self._times += 1
        self._before = focus
        if not self._times:
            return None
        level = Escalation.CALL if self._times >= self._beats else Escalation.REPLAN
        return Sighting(level, Reason.FOCUS_LOST, "focus_lost", self._times, self._times)


class FallingMood:
    """Notices each fall of mood (the confidence in the plan) below its threshold. It ignores a low mood that stays as
    it is or rises."""

    def __init__(self, low: float, falls: int) -> None:
        self._low = low
        self._falls = falls
        self._before = 1.0
        self._times = 0

    def check(self, mood: float) -> Sighting | None:
        has_fallen, self._before = mood < self._before, mood
        if mood >= self._low:
            self._times = 0
            return None
        if not has_fallen:
            return None
        self._times += 1
        level = Escalation.CALL if self._times >= self._falls else Escalation.REPLAN
        return Sighting(level, Reason.CONFIDENCE_LOW, "confidence_low", self._times, self._times)


class DetectorWatch:
    """Asks all detectors before each loop, and returns the most urgent repetition that they saw."""

    def __init__(self, settings: PacemakerSettings) -> None:
        self._settings = settings
        self._mood = FallingMood(settings.vitals.mood_low, settings.detectors.again.replan)
        self._detectors = make_detectors(settings.detectors)
        self.restart()

    def restart(self) -> None:
        """Forgets for how many loops focus was low. It still remembers a fall of mood, since what the user says often
        causes one."""
        self._focus = LostFocus(self._settings.vitals.focus_lost, self._settings.vitals.focus_beats)

    def worst(self, ledger: Ledger, focus: float, mood: float) -> Sighting | None:
        """Returns the first sighting (a repetition that a detector saw) after which the user must be asked. If there is
        none, returns the first after which the model must plan anew."""
        last_entry = ledger.recent[-1] if ledger.recent else None
        has_gained = last_entry is not None and bool(last_entry.gained.kind)
        low_focus, low_mood = self._focus.check(focus, has_gained), self._mood.check(mood)
        entries = list(ledger.recent)
        if last_entry and last_entry.waits:
            last_entry = None
        sightings = [sighting for detector in self._detectors if last_entry and (sighting := detector.look(entries))]
        # A check that has measured progress meanwhile excuses everything.
        sightings = [sighting for sighting in sightings if not any(map(_was_measured, entries[-sighting.span :]))]
        # A new result excuses everything except errors and rewriting.
        if last_entry and last_entry.new and not last_entry.step.is_error:
            sightings = [sighting for sighting in sightings if sighting.key == "rewriting"]
        errors = [sighting for sighting in sightings if sighting.reason is Reason.ERROR_CASCADE]
        other_sightings = [sighting for sighting in sightings if sighting.reason is not Reason.ERROR_CASCADE]
        return first_of([*errors, *filter(None, [low_focus]), *other_sightings, *filter(None, [low_mood])])


def _was_measured(entry: LedgerEntry) -> bool:
    return entry.gained.kind in ("passes", "fails_less")


def first_of(sightings: Iterable[Sighting]) -> Sighting | None:
    first_sighting: Sighting | None = None
    for sighting in sightings:
        if sighting.level is Escalation.CALL:
            return sighting
        first_sighting = first_sighting or sighting
    return first_sighting


def describe(sighting: Sighting, ledger: Ledger) -> Finding:
    """Turns a sighting (a repetition that a detector saw) into a report, with the steps it is based on and their
    cost."""
    span = min(sighting.span, len(ledger.recent))
    steps = list(ledger.recent)[-span:] if span else []
    names = list(dict.fromkeys(entry.label for entry in steps))
    call_names = " → ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
    return Finding(
        reason=sighting.reason,
        key=sighting.key,
        label=call_names,
        times=sighting.times,
        since=ledger.steps - span + 1,
        steps=span,
        tokens=ledger.tokens(span),
    )


def describe_spent(reason: Reason, times: int, ledger: Ledger, key: str = "") -> Finding:
    """Makes a finding that is no repetition (such as used-up loops), with the cost since the user's last message."""
    return Finding(reason, key or reason.lower(), times=times, since=1, steps=ledger.steps, tokens=ledger.tokens())

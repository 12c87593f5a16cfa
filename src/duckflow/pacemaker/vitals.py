"""Measures the vitals (mood, focus, stamina) from what happens, with the cause of each change, and reports on them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from duckflow.pacemaker.ledger import LedgerEntry
from duckflow.pacemaker.settings import VitalsSettings
from duckflow.state.data import Phrase, clamp, say
from duckflow.state.phase import Vitals, VitalsChange

Vital = Literal["mood", "focus", "stamina"]


class Signal(StrEnum):
    """Events that move the vitals (mood, focus, stamina), besides the steps themselves."""

    CONFIDENCE = "confidence"
    """The model stated its confidence, a number that is passed with the signal."""
    REFUSED = "refused"
    APPROVED = "approved"
    """The user said yes. If a value is passed, mood rises at least to it."""
    CHECK_FAILED = "check_failed"
    """One of the Decision's two checks said no, or a review found something wrong."""
    CHECK_PASSED = "check_passed"
    THANKS = "thanks"
    DONE = "done"
    """A task or a step of the plan was completed."""
    OVERFULL = "overfull"
    """The context had to be pruned."""
    TURNAROUND = "turnaround"
    """The user changed the direction of the work sharply."""
    REST = "rest"
    """A new turn begins."""


@dataclass(slots=True)
class VitalsMove:
    """The total by which a cause has moved a vital (mood, focus or stamina), how often it did so, and the last step
    that did."""

    delta: float = 0.0
    times: int = 0
    entry: LedgerEntry | None = None

    def phrase(self, cause: str) -> Phrase:
        phrase_key = f"vitals.cause.{cause}"
        return say(phrase_key, times=self.times, label=self.entry.label) if self.entry else say(phrase_key)


class VitalsMeter:
    """Moves mood, focus and stamina, and remembers the causes until `take_changes` is called."""

    def __init__(self, settings: VitalsSettings, vitals: Vitals) -> None:
        self._settings = settings
        self._values: dict[Vital, float] = {"mood": vitals.mood, "focus": vitals.focus, "stamina": vitals.stamina}
        self._moved: dict[tuple[Vital, str], VitalsMove] = {}
        self._wear = 0.0
        """Stamina that loops have cost since the last rest."""
        self.trend: deque[tuple[float, float, float]] = deque(maxlen=settings.trend_length)

    @property
    def mood(self) -> float:
        return self._values["mood"]

    @property
    def focus(self) -> float:
        return self._values["focus"]

    @property
    def stamina(self) -> float:
        return self._values["stamina"]

    def see(self, entry: LedgerEntry) -> None:
        """Takes in a step: errors cost stamina and focus, repetition costs focus, news and success restore them."""
        s = self._settings
        if entry.failed:
            self._move("stamina", -s.error_stamina, "error", entry)
            self._move("focus", -s.error_focus, "error", entry)
        elif not entry.step.is_error:
            # A success makes up for errors, but not for the cost of loops.
            regainable_stamina = 1.0 - self._wear - self.stamina
            self._move("stamina", max(0.0, min(s.success_stamina, regainable_stamina)), "success", entry)
        if entry.confirmed or entry.waits or entry.step.kind == "talk":
            return
        if not entry.new and not entry.gained.kind:
            self._move("focus", -s.stale_focus, "repeated" if entry.repeated else "nothing_new", entry)
        elif entry.reads_again:
            self._move("focus", -s.error_focus, "nothing_new", entry)
        elif not entry.failed:
            self._move("focus", s.new_focus, "new", entry)

    def notice(self, signal: Signal, value: float = 0.0) -> None:
        s = self._settings
        match signal:
            case Signal.CONFIDENCE:
                self._move("mood", s.confidence_pull * (clamp(value) - self.mood), signal)
            case Signal.REFUSED:
                self._move("mood", -s.refused_mood, signal)
            case Signal.APPROVED:
                self._move("mood", max(s.approved_mood, value - self.mood), signal)
            case Signal.CHECK_FAILED:
                self._move("mood", -s.check_failed_mood, signal)
            case Signal.CHECK_PASSED:
                self._move("mood", s.check_passed_mood, signal)
            case Signal.THANKS:
                self._move("mood", s.thanks_mood, signal)
            case Signal.DONE:
                self._move("focus", s.done_focus, signal)
                self._rest(s.done_stamina, signal)
            case Signal.OVERFULL:
                self._move("focus", -s.overfull_focus, signal)
            case Signal.TURNAROUND:
                self._move("focus", -s.turnaround_focus, signal)
            case Signal.REST:
                self._rest(s.rest_stamina, signal)

    def _rest(self, stamina: float, cause: str) -> None:
        self._wear = max(0.0, self._wear - stamina)
        self._move("stamina", stamina, cause)

    def loop(self) -> None:
        """Takes in the beginning of a loop. It costs a little stamina and adds a point to the trend."""
        self._wear = min(1.0, self._wear + self._settings.loop_stamina)
        self._move("stamina", -self._settings.loop_stamina, "loop")
        self.trend.append((self.mood, self.focus, self.stamina))

    def vitals(self) -> Vitals:
        return Vitals(mood=self.mood, focus=self.focus, stamina=self.stamina)

    def recover(self, vitals: Vitals) -> None:
        """Raises the vitals after the user was asked how to go on (a Duck Call) and has answered."""
        self._move("mood", vitals.mood - self.mood, "answered")
        self._move("focus", vitals.focus - self.focus, "answered")
        self._wear = 0.0
        self._move("stamina", vitals.stamina - self.stamina, "answered")

    def take_changes(self) -> tuple[VitalsChange, ...]:
        """Returns the changes since the last call, one for each vital and cause."""
        moves_by_cause, self._moved = self._moved, {}
        return tuple(
            VitalsChange(vital=vital, delta=round(move.delta, 3), cause=move.phrase(cause))
            for (vital, cause), move in moves_by_cause.items()
            if round(move.delta, 3)
        )

    def _move(self, vital: Vital, delta: float, cause: str, entry: LedgerEntry | None = None) -> None:
        value_before = self._values[vital]
        value_after = round(clamp(value_before + delta), 4)
        if value_after == value_before:
            return
        self._values[vital] = value_after
        vital_move = self._moved.setdefault((vital, cause), VitalsMove())
        vital_move.delta += value_after - value_before
        vital_move.times += 1
        vital_move.entry = entry


BARS = "▁▂▃▄▅▆▇█"
BRIGHT = 0.8
FACES = {
    "mood": {"good": "😎", "fair": "🙂", "low": "😔"},
    "focus": {"good": "🧘", "fair": "🙂", "low": "🤔", "lost": "😵"},
    "stamina": {"good": "💪", "low": "🤕", "lost": "💀"},
}


class VitalSign(NamedTuple):
    """One vital: its value, the name of its level, and its trend as a line of bars, oldest first."""

    name: str
    value: float
    level: str
    trend: str

    @property
    def face(self) -> str:
        return FACES[self.name][self.level]

    @property
    def troubled(self) -> bool:
        return self.level in ("low", "lost")

    def line(self) -> Phrase:
        return say(f"health.{self.name}.{self.level}", percent=round(100 * self.value))


class Health(NamedTuple):
    """The report on the vitals (mood, focus, stamina), which people see by `/status`, in the status bar, and in a Duck
    Call (a question that the Pacemaker asks)."""

    mood: VitalSign
    focus: VitalSign
    stamina: VitalSign

    def bar(self) -> Phrase:
        """Returns the line of the status bar, with the trends for front ends that draw them."""
        faces = {f"{sign.name}_face": sign.face for sign in self} | {f"{sign.name}_trend": sign.trend for sign in self}
        return say("health.bar", **faces, **{sign.name: f"{sign.value:.2f}" for sign in self})

    def report(self) -> tuple[Phrase, ...]:
        """Returns a line for each vital, then a sentence on the worst one with a recommendation."""
        return say("health.title"), *(sign.line() for sign in self), self._finding("none")

    def complaint(self) -> tuple[Phrase, ...]:
        """Returns the lines of low vitals and the sentence on the worst one. Good vitals do not help a user who is
        asked for help."""
        return *(sign.line() for sign in self if sign.troubled), self._finding("stuck")

    def _finding(self, otherwise: str) -> Phrase:
        """Returns the sentence on the worst vital, where focus comes before stamina and stamina before mood; if none is
        low, the sentence named by `otherwise`."""
        worst_name = next((sign.name for sign in (self.focus, self.stamina, self.mood) if sign.troubled), otherwise)
        return say(f"health.finding.{worst_name}")


def make_health(vitals: Vitals, trend: Iterable[tuple[float, float, float]], settings: VitalsSettings) -> Health:
    past_vitals = tuple(trend) or ((vitals.mood, vitals.focus, vitals.stamina),)
    moods, focuses, staminas = map(draw_bars, zip(*past_vitals, strict=True))
    mood = _level(vitals.mood, good=BRIGHT, fair=settings.mood_hint)
    focus = _level(vitals.focus, good=BRIGHT, fair=settings.focus_hint, low=settings.focus_lost)
    stamina = _level(vitals.stamina, good=settings.stamina_worn, low=settings.stamina_depleted)
    return Health(
        VitalSign("mood", vitals.mood, mood, moods),
        VitalSign("focus", vitals.focus, focus, focuses),
        VitalSign("stamina", vitals.stamina, stamina, staminas),
    )


def _level(value: float, **least: float) -> str:
    """Returns the name of the first level whose least value is reached. Below all levels the name is `lost` if one of
    them is called `low`, else `low`."""
    return next(
        (level for level, lower_bound in least.items() if value >= lower_bound), "lost" if "low" in least else "low"
    )


@lru_cache(maxsize=8)
def draw_bars(values: tuple[float, ...]) -> str:
    """Draws values as bars. It is cached, as every event asks for them and only a new loop changes them."""
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values)

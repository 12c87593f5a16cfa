"""The health report: vitals, their faces, what they mean and how they went lately, a finding and a recommendation."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from duckflow.pacemaker.settings import VitalsSettings
from duckflow.state.phrase import Phrase, say
from duckflow.state.vitals import Vitals

BARS = "▁▂▃▄▅▆▇█"
BRIGHT = 0.8
FACES = {
    "mood": {"good": "😎", "fair": "🙂", "low": "😔"},
    "focus": {"good": "🧘", "fair": "🙂", "low": "🤔", "lost": "😵"},
    "stamina": {"good": "💪", "low": "🤕", "lost": "💀"},
}


class VitalSign(NamedTuple):
    """One vital: its value, how that is called, and its trend as a line of bars, oldest first."""

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
        return say(f"health.{self.name}.{self.level}", percent=round(100 * self.value), trend=self.trend)


class Health(NamedTuple):
    """What `/status`, the status bar and a Duck Call show."""

    mood: VitalSign
    focus: VitalSign
    stamina: VitalSign

    def bar(self) -> Phrase:
        """The line of the status bar."""
        faces = {f"{sign.name}_face": sign.face for sign in self}
        return say("health.bar", **faces, **{sign.name: f"{sign.value:.2f}" for sign in self})

    def report(self, otherwise: str = "none") -> tuple[Phrase, ...]:
        """One line for each vital, then the finding with what it recommends; `otherwise` where no vital is low."""
        # Lost focus says most of what to do, then wear, then doubt.
        worst = next((sign.name for sign in (self.focus, self.stamina, self.mood) if sign.troubled), otherwise)
        return say("health.title"), *(sign.line() for sign in self), say(f"health.finding.{worst}")


def make_health(vitals: Vitals, trend: Iterable[tuple[float, float, float]], settings: VitalsSettings) -> Health:
    past = tuple(trend) or ((vitals.mood, vitals.focus, vitals.stamina),)
    moods, focuses, staminas = map(draw_bars, zip(*past, strict=True))
    mood = _level(vitals.mood, good=BRIGHT, fair=settings.mood_hint)
    focus = _level(vitals.focus, good=BRIGHT, fair=settings.focus_hint, low=settings.focus_lost)
    stamina = _level(vitals.stamina, good=settings.stamina_worn, low=settings.stamina_depleted)
    return Health(
        VitalSign("mood", vitals.mood, mood, moods),
        VitalSign("focus", vitals.focus, focus, focuses),
        VitalSign("stamina", vitals.stamina, stamina, staminas),
    )


def _level(value: float, **least: float) -> str:
    """The first level whose least value is reached; below all of them it is the next worse one."""
    return next((level for level, bound in least.items() if value >= bound), "lost" if "low" in least else "low")


@lru_cache(maxsize=8)
def draw_bars(values: tuple[float, ...]) -> str:
    """Asked for with every event, other only after a beat."""
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values)

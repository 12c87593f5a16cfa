"""The health report: vitals, their faces, and how they went lately."""

from collections.abc import Iterable
from typing import NamedTuple

from duckflow.pacemaker.settings import VitalsSettings
from duckflow.state.phrase import Phrase, say
from duckflow.state.vitals import Vitals

BARS = "▁▂▃▄▅▆▇█"
BRIGHT = 0.8


class Health(NamedTuple):
    """What `/status`, the status bar and a Duck Call show. The trends are lines of bars, oldest first."""

    vitals: Vitals
    mood_face: str
    focus_face: str
    stamina_face: str
    mood_trend: str
    focus_trend: str
    stamina_trend: str

    def bar(self) -> Phrase:
        """The line of the status bar."""
        return say(
            "health.bar",
            mood_face=self.mood_face,
            mood=two_digits(self.vitals.mood),
            focus_face=self.focus_face,
            focus=two_digits(self.vitals.focus),
            stamina_face=self.stamina_face,
            stamina=two_digits(self.vitals.stamina),
        )

    def report(self) -> tuple[Phrase, ...]:
        """One line for each vital, with its trend."""
        mood, focus, stamina = (
            two_digits(value) for value in (self.vitals.mood, self.vitals.focus, self.vitals.stamina)
        )
        return (
            say("health.mood", face=self.mood_face, value=mood, trend=self.mood_trend),
            say("health.focus", face=self.focus_face, value=focus, trend=self.focus_trend),
            say("health.stamina", face=self.stamina_face, value=stamina, trend=self.stamina_trend),
        )


def make_health(vitals: Vitals, trend: Iterable[tuple[float, float, float]], settings: VitalsSettings) -> Health:
    past = tuple(trend) or ((vitals.mood, vitals.focus, vitals.stamina),)
    moods, focuses, staminas = zip(*past, strict=True)
    return Health(
        vitals=vitals,
        mood_face=mood_face(vitals.mood, settings),
        focus_face=focus_face(vitals.focus, settings),
        stamina_face=stamina_face(vitals.stamina, settings),
        mood_trend=draw_bars(moods),
        focus_trend=draw_bars(focuses),
        stamina_trend=draw_bars(staminas),
    )


def mood_face(value: float, settings: VitalsSettings) -> str:
    if value >= BRIGHT:
        return "😎"
    if value >= settings.mood_hint:
        return "🙂"
    return "😟" if value >= settings.mood_low else "😔"


def focus_face(value: float, settings: VitalsSettings) -> str:
    if value >= BRIGHT:
        return "🧘"
    if value >= settings.focus_hint:
        return "🙂"
    return "🤔" if value >= settings.focus_lost else "😵"


def stamina_face(value: float, settings: VitalsSettings) -> str:
    if value >= settings.stamina_hint:
        return "💪"
    return "🤕" if value >= settings.stamina_depleted else "💀"


def draw_bars(values: Iterable[float]) -> str:
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values)


def two_digits(value: float) -> str:
    return f"{value:.2f}"

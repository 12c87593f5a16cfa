"""The health report: vitals, their faces, and how they went lately."""

from collections.abc import Iterable
from dataclasses import dataclass

from duckflow.pacemaker.settings import VitalsSettings
from duckflow.state.phrase import Phrase, say
from duckflow.state.vitals import Vitals

BARS = "▁▂▃▄▅▆▇█"
BRIGHT = 0.8


@dataclass(frozen=True, slots=True)
class Health:
    """What `/status`, the status bar and a Duck Call show. The trends are lines of bars, oldest first."""

    vitals: Vitals
    mood_face: str
    focus_face: str
    stamina_face: str
    mood_trend: str
    focus_trend: str
    stamina_trend: str
    alarm: bool

    def phrases(self) -> tuple[Phrase, ...]:
        return (
            say("health.mood", face=self.mood_face, value=round(self.vitals.mood, 2), trend=self.mood_trend),
            say("health.focus", face=self.focus_face, value=round(self.vitals.focus, 2), trend=self.focus_trend),
            say(
                "health.stamina", face=self.stamina_face, value=round(self.vitals.stamina, 2), trend=self.stamina_trend
            ),
        )


def health(vitals: Vitals, trend: Iterable[tuple[float, float, float]], settings: VitalsSettings) -> Health:
    moods, focuses, staminas = zip(*trend, (vitals.mood, vitals.focus, vitals.stamina), strict=True)
    return Health(
        vitals=vitals,
        mood_face=mood_face(vitals.mood, settings),
        focus_face=focus_face(vitals.focus, settings),
        stamina_face=stamina_face(vitals.stamina, settings),
        mood_trend=bars(moods),
        focus_trend=bars(focuses),
        stamina_trend=bars(staminas),
        alarm=is_alarming(vitals, settings),
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


def is_alarming(vitals: Vitals, settings: VitalsSettings) -> bool:
    """Whether one of the faces is the worst of its kind: 😔, 😵 or 💀."""
    return (
        vitals.mood < settings.mood_low
        or vitals.focus < settings.focus_lost
        or vitals.stamina < settings.stamina_depleted
    )


def bars(values: Iterable[float]) -> str:
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values)

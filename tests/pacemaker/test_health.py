"""Faces, alarm and trend."""

import pytest

from duckflow.pacemaker.health import draw_bars, make_health
from duckflow.pacemaker.settings import VitalsSettings
from duckflow.state.vitals import Vitals

V = VitalsSettings()


@pytest.mark.parametrize(
    ("value", "mood", "focus", "stamina"),
    [
        (1.0, "😎", "🧘", "💪"),
        (0.75, "🙂", "🙂", "💪"),
        (0.65, "😟", "🙂", "💪"),
        (0.4, "😔", "🤔", "💪"),
        (0.2, "😔", "😵", "🤕"),
        (0.05, "😔", "😵", "💀"),
    ],
)
def test_the_faces_follow_the_value(value: float, mood: str, focus: str, stamina: str) -> None:
    report = make_health(Vitals(mood=value, focus=value, stamina=value), (), V)
    assert (report.mood_face, report.focus_face, report.stamina_face) == (mood, focus, stamina)


def test_the_bar_and_the_report() -> None:
    report = make_health(Vitals(mood=0.92, focus=0.85, stamina=0.98), [(1.0, 0.5, 0.0), (0.92, 0.85, 0.98)], V)
    assert report.bar().values == {
        "mood_face": "😎",
        "mood": "0.92",
        "focus_face": "🧘",
        "focus": "0.85",
        "stamina_face": "💪",
        "stamina": "0.98",
    }
    assert [phrase.values["trend"] for phrase in report.report()] == ["██", "▅▇", "▁█"]


def test_bars_go_from_empty_to_full() -> None:
    assert draw_bars([0, 0.49, 0.5, 1]) == "▁▄▅█"

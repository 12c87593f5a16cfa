"""The health report: faces, findings and trends."""

import pytest

from duckflow.i18n.words import Words
from duckflow.pacemaker.settings import VitalsSettings
from duckflow.pacemaker.vitals import draw_bars, make_health
from duckflow.state.phase import Vitals

V = VitalsSettings()


def shown(mood: float, focus: float, stamina: float, language: str) -> list[str]:
    health = make_health(Vitals(mood=mood, focus=focus, stamina=stamina), (), V)
    return [Words(language).phrase(line) for line in (health.bar(), *health.report())]


@pytest.mark.parametrize(
    ("value", "faces"),
    [(1.0, "😎🧘💪"), (0.75, "🙂🙂💪"), (0.55, "😔🙂💪"), (0.4, "😔🤔🤕"), (0.2, "😔😵🤕"), (0.05, "😔😵💀")],
)
def test_the_faces_follow_the_value(value: float, faces: str) -> None:
    health = make_health(Vitals(mood=value, focus=value, stamina=value), (), V)
    assert "".join(sign.face for sign in health) == faces


def test_the_bar_as_it_was_drawn() -> None:
    """These are the two bars of the design document."""
    assert shown(0.92, 0.85, 0.98, "en")[0] == "[ Duckflow | Mood: 😎(0.92) | Focus: 🧘(0.85) | Stamina: 💪(0.98) ]"
    assert shown(0.65, 0.25, 0.40, "en")[0] == "[ Duckflow | Mood: 😔(0.65) | Focus: 😵(0.25) | Stamina: 🤕(0.40) ]"


def test_the_report_of_the_design() -> None:
    title, mood, focus, stamina, finding = shown(0.65, 0.25, 0.40, "ja")[1:]
    assert title == "【アヒル健康診断レポート】"
    assert mood.startswith("気分 (Mood): 65% (少し不安) - 現在の計画にあまり自信が持てません。")
    assert "集中力 (Focus): 25% (注意散漫) - 同じようなことを繰り返しており、考えがまとまりません。" in focus
    assert stamina.startswith("体力 (Stamina): 40% (消耗気味) - ")
    assert finding.endswith("一度計画をリセットし、全く別のアプローチを試すことを推奨します。")


@pytest.mark.parametrize(
    ("vitals", "told"),
    [
        ((1, 1, 1), "nothing is wrong"),
        ((0.6, 1, 1), "split the task"),
        ((1, 0.4, 0.4), "different approach"),
        ((1, 1, 0.05), "let me rest"),
    ],
)
def test_the_finding_recommends_something(vitals: tuple[float, float, float], told: str) -> None:
    assert told in shown(*vitals, "en")[-1]
    assert "推奨します" in shown(*vitals, "ja")[-1]


def test_each_vital_has_its_trend() -> None:
    health = make_health(Vitals(mood=0.92, focus=0.85, stamina=0.98), [(1.0, 0.5, 0.0), (0.92, 0.85, 0.98)], V)
    assert [sign.trend for sign in health] == ["██", "▅▇", "▁█"]


def test_bars_go_from_empty_to_full() -> None:
    assert draw_bars((0, 0.49, 0.5, 1)) == "▁▄▅█"

"""The limit of loops: its formula, its bounds, its explanation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.pacemaker.limits import Load, ceiling_of, complexity, compute_limit, extend_limit
from duckflow.pacemaker.settings import BaseLoops, LimitSettings
from duckflow.state.action import TaskProfile
from duckflow.state.phase import Vitals

DEFAULT = LimitSettings()
FINE = Vitals(mood=0.7, focus=0.7, stamina=0.7)
GREAT = Vitals()
POOR = Vitals(mood=0.3, focus=0.3, stamina=0.3)


@pytest.mark.parametrize(
    ("profile", "base"),
    [
        ("SIMPLE_QUESTION", 5),
        ("GENERAL_CHAT", 6),
        ("FILE_OPERATION", 8),
        ("CREATIVE_WRITING", 10),
        ("CODE_ANALYSIS", 12),
        ("DEBUGGING", 14),
        ("MULTI_STEP_TASK", 15),
        ("RESEARCH", 16),
        ("COMPLEX_REASONING", 18),
    ],
)
def test_the_base_of_each_profile(profile: str, base: int) -> None:
    assert compute_limit(Load(profile), FINE, DEFAULT).value == base


def test_every_profile_has_a_base() -> None:
    assert set(BaseLoops.model_fields) == {profile.value for profile in TaskProfile}


@pytest.mark.parametrize(
    ("load", "vitals", "limit"),
    [
        (Load("CREATIVE_WRITING"), GREAT, 12),
        (Load("CREATIVE_WRITING"), POOR, 7),
        (Load("CREATIVE_WRITING"), Vitals(mood=0.4, focus=0.4, stamina=0.4), 10),
        (Load("CREATIVE_WRITING"), Vitals(mood=0.8, focus=0.8, stamina=0.8), 10),
        (Load("CREATIVE_WRITING"), Vitals(mood=0.0, focus=1.0, stamina=0.0), 10),
        (Load("CREATIVE_WRITING", files=8, turns=15, error_rate=1 / 3), FINE, 14),
        (Load("CREATIVE_WRITING", files=800, turns=1500, error_rate=1.0), FINE, 14),
        (Load("CREATIVE_WRITING", files=4), FINE, 10),
        (Load("CREATIVE_WRITING", files=8), FINE, 11),
        (Load("SIMPLE_QUESTION"), POOR, 3),
        (Load("SIMPLE_QUESTION", plan_running=True), FINE, 15),
        (Load("COMPLEX_REASONING", plan_running=True), FINE, 18),
        (Load("COMPLEX_REASONING"), GREAT, 20),
        (Load("MULTI_STEP_TASK"), GREAT, 18),
    ],
)
def test_the_formula(load: Load, vitals: Vitals, limit: int) -> None:
    assert compute_limit(load, vitals, DEFAULT).value == limit


@pytest.mark.parametrize(
    ("load", "value"),
    [
        (Load("x"), 0.0),
        (Load("x", files=8), 1 / 3),
        (Load("x", turns=30), 1 / 3),
        (Load("x", error_rate=0.1), 0.1),
        (Load("x", files=4, turns=15, error_rate=1), 2.5 / 3),
    ],
)
def test_complexity_is_a_mean_of_three(load: Load, value: float) -> None:
    assert complexity(load, DEFAULT) == pytest.approx(value)


def test_the_bounds_are_settings() -> None:
    strong = LimitSettings(highest=200, base=BaseLoops(RESEARCH=150))
    assert compute_limit(Load("RESEARCH"), GREAT, strong).value == 180


def test_bounds_the_wrong_way_round_do_no_harm() -> None:
    assert compute_limit(Load("RESEARCH"), GREAT, LimitSettings(lowest=9, highest=4)).value == 9


@pytest.mark.parametrize("load", [Load("NO_SUCH_PROFILE"), Load(""), Load("RESEARCH", error_rate=float("nan"))])
def test_when_the_calculation_fails_the_configured_maximum_is_used_and_said(load: Load) -> None:
    limit = compute_limit(load, GREAT, DEFAULT)
    assert (limit.value, limit.fallback) == (15, True)
    assert [part.key for part in limit.parts] == ["limit.fallback"]


def test_the_explanation_names_every_part() -> None:
    limit = compute_limit(Load("SIMPLE_QUESTION", files=2, turns=3, plan_running=True), POOR, DEFAULT)
    assert [part.key for part in limit.parts] == [
        "limit.base",
        "limit.plan",
        "limit.mood",
        "limit.focus",
        "limit.stamina",
        "limit.vitals.poor",
        "limit.complexity",
        "limit.files",
        "limit.result",
    ]
    assert limit.parts[-1].values["limit"] == limit.value
    bounded = compute_limit(Load("COMPLEX_REASONING"), GREAT, DEFAULT)
    assert bounded.parts[-1].key == "limit.bounds"


def test_progress_extends_the_limit_up_to_the_ceiling() -> None:
    limit = compute_limit(Load("RESEARCH"), FINE, DEFAULT)
    most = ceiling_of(DEFAULT)
    more = extend_limit(limit, 5, most)
    assert (more.value, more.extended, more.parts[-1].key) == (21, 5, "limit.extended")
    assert extend_limit(limit, 0, most) == limit
    assert extend_limit(limit, 1000, most).value == DEFAULT.ceiling == 120
    assert extend_limit(limit, 1000, ceiling_of(LimitSettings(highest=300))).value == 300, (
        "a higher limit raises the ceiling"
    )
    assert extend_limit(limit, 5, ceiling_of(LimitSettings(ceiling=10, highest=10))).value == limit.value


units = st.floats(0, 1)
loads = st.builds(
    Load,
    profile=st.sampled_from(list(BaseLoops.model_fields)),
    files=st.integers(0, 50),
    turns=st.integers(0, 50),
    error_rate=units,
    plan_running=st.booleans(),
)


@given(loads, units, units, units, units, units, units)
def test_it_stays_in_its_bounds_and_never_falls_when_the_vitals_rise(
    load: Load, mood: float, focus: float, stamina: float, more_mood: float, more_focus: float, more_stamina: float
) -> None:
    low = compute_limit(load, Vitals(mood=mood, focus=focus, stamina=stamina), DEFAULT)
    better = Vitals(mood=max(mood, more_mood), focus=max(focus, more_focus), stamina=max(stamina, more_stamina))
    high = compute_limit(load, better, DEFAULT)
    assert 3 <= low.value <= high.value <= 20
    assert not low.fallback


@given(loads, units, st.integers(0, 20), st.integers(0, 20), units)
def test_it_never_falls_when_the_task_is_more_complex(
    load: Load, vital: float, files: int, turns: int, error_rate: float
) -> None:
    vitals = Vitals(mood=vital, focus=vital, stamina=vital)
    harder = Load(
        load.profile,
        load.files + files,
        load.turns + turns,
        max(load.error_rate, error_rate),
        load.plan_running,
    )
    assert compute_limit(load, vitals, DEFAULT).value <= compute_limit(harder, vitals, DEFAULT).value

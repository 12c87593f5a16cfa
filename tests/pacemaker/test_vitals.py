"""Vitals move by what happens, say why, and stay between 0 and 1."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.pacemaker.signatures import LoopStep, user_spoke
from duckflow.pacemaker.vitals import Signal
from duckflow.state.phase import Vitals
from tests.pacemaker.story import bad_edit, edit, grep, read, run, say_it

HALF = Vitals(mood=0.5, focus=0.5, stamina=0.5)
V = PacemakerSettings().vitals


def moved(*what: LoopStep | tuple[Signal, float]) -> tuple[float, float, float]:
    """Returns how far the last event moved mood, focus and stamina from the middle."""
    pacemaker = Pacemaker(vitals=HALF)
    before = pacemaker.vitals
    for each in what:
        before = pacemaker.vitals
        if isinstance(each, LoopStep):
            pacemaker.observe(each)
        else:
            pacemaker.notice(*each)
    after = pacemaker.vitals
    return (
        round(after.mood - before.mood, 4),
        round(after.focus - before.focus, 4),
        round(after.stamina - before.stamina, 4),
    )


@pytest.mark.parametrize(
    ("story", "change"),
    [
        ([read("a")], (0, 0.1, 0.02)),
        ([read("a"), read("a")], (0, -0.14, 0.02)),
        ([read("a", "same"), read("b", "same")], (0, -0.14, 0.02)),
        ([grep("x")], (0, -0.14, 0.02)),
        ([bad_edit("a", "1")], (0, -0.05, -0.1)),
        ([bad_edit("a", "1"), bad_edit("a", "2")], (0, -0.19, -0.1)),
        ([run("pytest", "1 failed", failed=True)], (0, 0.1, 0)),
        ([run("t", "ok"), edit("a", "1"), run("t", "ok")], (0, 0, 0.02)),
        ([say_it("What a lovely day.")], (0, 0, 0.02)),
        ([(Signal.CONFIDENCE, 1.0)], (0.15, 0, 0)),
        ([(Signal.CONFIDENCE, 0.2)], (-0.09, 0, 0)),
        ([(Signal.REFUSED, 0.0)], (-0.15, 0, 0)),
        ([(Signal.APPROVED, 0.0)], (0.05, 0, 0)),
        ([(Signal.CHECK_FAILED, 0.0)], (-0.1, 0, 0)),
        ([(Signal.CHECK_PASSED, 0.0)], (0.02, 0, 0)),
        ([(Signal.THANKS, 0.0)], (0.1, 0, 0)),
        ([(Signal.DONE, 0.0)], (0, 0.2, 0.1)),
        ([(Signal.OVERFULL, 0.0)], (0, -0.1, 0)),
        ([(Signal.TURNAROUND, 0.0)], (0, -0.15, 0)),
        ([(Signal.REST, 0.0)], (0, 0, 0.2)),
        ([user_spoke("Now the tests, please.")], (0, 0, 0.2)),
        ([user_spoke("ありがとう！次をお願いします")], (0.1, 0, 0.2)),
        ([user_spoke("Stop, that is not what I meant")], (0, -0.15, 0.2)),
    ],
)
def test_each_event_moves_the_vitals_by_its_amount(
    story: list[LoopStep | tuple[Signal, float]], change: tuple[float, float, float]
) -> None:
    assert moved(*story) == change


def test_every_change_has_a_cause() -> None:
    pacemaker = Pacemaker()
    pacemaker.observe(bad_edit("a", "1"))
    pacemaker.observe(bad_edit("a", "1"))
    pacemaker.notice(Signal.CONFIDENCE, 0.5)
    changes = {(change.vital, change.cause.key): change.delta for change in pacemaker.take_changes()}
    assert changes == {
        ("stamina", "vitals.cause.error"): -0.2,
        ("focus", "vitals.cause.error"): -0.1,
        ("focus", "vitals.cause.repeated"): -0.14,
        ("mood", "vitals.cause.confidence"): -0.15,
    }
    assert pacemaker.take_changes() == (), "told once"


def test_loops_cost_stamina_that_only_rest_gives_back() -> None:
    pacemaker = Pacemaker()
    for number in range(20):
        pacemaker.observe(read(str(number)))
        pacemaker.beat()
    tired = pacemaker.vitals.stamina
    assert 0.85 < tired < 0.95
    pacemaker.observe(user_spoke("and now?"))
    assert pacemaker.vitals.stamina > tired


def test_a_long_healthy_task_does_not_wear_it_out() -> None:
    pacemaker = Pacemaker()
    for number in range(120):
        pacemaker.observe(bad_edit("a", str(number)) if number % 12 == 0 else edit("a", str(number)))
        pacemaker.beat()
    assert pacemaker.vitals.stamina > V.stamina_hint
    assert pacemaker.vitals.focus > V.focus_hint


def test_confidence_alone_pulls_mood_but_never_at_once() -> None:
    pacemaker = Pacemaker()
    pacemaker.notice(Signal.CONFIDENCE, 0.0)
    assert pacemaker.vitals.mood == 0.7
    pacemaker.notice(Signal.CONFIDENCE, float("nan"))
    assert 0 <= pacemaker.vitals.mood <= 1


steps = st.builds(
    LoopStep,
    name=st.sampled_from(["a", "b"]),
    args=st.sampled_from(["", "x", "y"]),
    result=st.sampled_from(["", "ok", "no match", "Traceback\nBoom"]),
    is_error=st.booleans(),
    kind=st.sampled_from(["read", "search", "edit", "run", "submit", "ask", "talk", "other", "user"]),
    language=st.sampled_from(["en", "ja"]),
)
Happening = Callable[[Pacemaker], None]


def observed(step: LoopStep) -> Happening:
    return lambda pacemaker: pacemaker.observe(step)


def noticed(signal: Signal, value: float) -> Happening:
    return lambda pacemaker: pacemaker.notice(signal, value)


happenings = st.one_of(
    st.builds(observed, steps), st.builds(noticed, st.sampled_from(list(Signal)), st.floats(allow_nan=True))
)


@given(st.lists(happenings, max_size=60))
def test_they_stay_between_0_and_1_and_the_reported_changes_add_up(story: list[Happening]) -> None:
    pacemaker = Pacemaker(vitals=HALF)
    for happens in story:
        happens(pacemaker)
        pacemaker.beat()
        vitals = pacemaker.vitals
        assert all(0 <= value <= 1 for value in (vitals.mood, vitals.focus, vitals.stamina))
    told = pacemaker.take_changes()
    for vital in ("mood", "focus", "stamina"):
        total = sum(change.delta for change in told if change.vital == vital)
        assert abs(0.5 + total - getattr(pacemaker.vitals, vital)) < 0.02

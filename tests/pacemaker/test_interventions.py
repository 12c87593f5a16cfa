"""Every situation has four choices, and every choice does something."""

import pytest

from duckflow.i18n.template import notes
from duckflow.pacemaker.interventions import (
    CHOICES,
    ENDS_TURN,
    SEVERITY,
    DuckCall,
    Effect,
    Finding,
    Pattern,
    Reason,
    choices_for,
    pattern_of,
    recover_vitals,
    resolve,
)
from duckflow.pacemaker.settings import VitalsSettings
from duckflow.pacemaker.vitals import make_health
from duckflow.state.phase import Vitals

TRIED = ("file_ops.grep foo", "shell.run make")
V = VitalsSettings()


def call(pattern: Pattern, *, other_model: bool = True) -> DuckCall:
    return DuckCall(
        reason=Reason.STAGNATION,
        pattern=pattern,
        findings=(Finding(Reason.STAGNATION, "again"),),
        health=make_health(Vitals(), (), V),
        choices=choices_for(pattern, other_model),
        tried=TRIED,
    )


@pytest.mark.parametrize(
    ("pattern", "effects"),
    [
        (Pattern.NO_PROGRESS, [Effect.STOP, Effect.INSTRUCT, Effect.GO_ON, Effect.RESTART]),
        (Pattern.LOW_CONFIDENCE, [Effect.INSTRUCT, Effect.SPLIT, Effect.LOOK_ELSEWHERE, Effect.GO_ON]),
        (Pattern.CONFUSION, [Effect.INSTRUCT, Effect.RESTART, Effect.TAKE_STOCK, Effect.REPLAN]),
        (Pattern.TOO_MANY_TRIES, [Effect.ACCEPT, Effect.FIND_CAUSE, Effect.SIMPLIFY, Effect.NEW_REQUEST]),
        (Pattern.EXHAUSTED, [Effect.INSTRUCT, Effect.SECOND_OPINION, Effect.STOP, Effect.GO_ON]),
    ],
)
def test_four_choices_that_fit_the_situation(pattern: Pattern, effects: list[Effect]) -> None:
    duck_call = call(pattern)
    assert [choice.effect for choice in duck_call.choices] == effects
    question = duck_call.question()
    assert question.kind == "duck_call"
    assert question.title.key == f"duck.situation.{pattern}"
    assert [choice.label.key for choice in question.choices] == [f"duck.choice.{c.key}" for c in duck_call.choices]


def test_with_only_one_model_the_second_opinion_is_another_way() -> None:
    choices = call(Pattern.EXHAUSTED, other_model=False).choices
    assert (choices[1].key, choices[1].effect) == ("another_way", Effect.RESTART)
    assert len(choices) == 4


@pytest.mark.parametrize("pattern", Pattern)
def test_every_choice_resolves_and_those_that_go_on_give_guidance(pattern: Pattern) -> None:
    duck_call = call(pattern)
    for choice in duck_call.choices:
        resolution = resolve(duck_call, choice.key, "use the old parser")
        assert resolution.effect is choice.effect
        assert "use the old parser" in notes("en", resolution.pinned)
        silent = resolve(duck_call, choice.key)
        assert bool(silent.pinned) != (choice.effect in ENDS_TURN)


@pytest.mark.parametrize("effect", [Effect.RESTART, Effect.REPLAN, Effect.LOOK_ELSEWHERE, Effect.SECOND_OPINION])
def test_a_new_start_knows_what_not_to_repeat(effect: Effect) -> None:
    pinned = notes("en", resolve(call(Pattern.NO_PROGRESS), effect).pinned)
    assert "Do not repeat" in pinned
    assert all(f"- {line}" in pinned for line in TRIED)


@pytest.mark.parametrize("key", ["free", "", "no such key"])
def test_any_other_answer_is_taken_as_the_users_instruction(key: str) -> None:
    resolution = resolve(call(Pattern.CONFUSION), key, "only the first test matters")
    assert resolution.effect is Effect.INSTRUCT
    assert notes("en", resolution.pinned).startswith("The user says: only the first test matters")


def test_an_effect_can_be_named_where_no_choice_has_it() -> None:
    assert resolve(call(Pattern.TOO_MANY_TRIES), Effect.GO_ON).effect is Effect.GO_ON


@pytest.mark.parametrize(
    ("reason", "failing", "pattern"),
    [
        (Reason.STAMINA_DEPLETED, False, Pattern.EXHAUSTED),
        (Reason.LOOP_EXHAUSTED, False, Pattern.NO_PROGRESS),
        (Reason.LOOP_EXHAUSTED, True, Pattern.TOO_MANY_TRIES),
        (Reason.ERROR_CASCADE, False, Pattern.TOO_MANY_TRIES),
        (Reason.FOCUS_LOST, False, Pattern.CONFUSION),
        (Reason.STAGNATION, False, Pattern.NO_PROGRESS),
        (Reason.CONFIDENCE_LOW, False, Pattern.LOW_CONFIDENCE),
    ],
)
def test_the_situation_behind_a_reason(reason: Reason, failing: bool, pattern: Pattern) -> None:
    assert pattern_of(reason, failing) is pattern


def test_every_pattern_and_every_reason_is_covered() -> None:
    assert set(CHOICES) == set(Pattern)
    assert set(SEVERITY) == set(Reason)
    assert {choice.effect for choices in CHOICES.values() for choice in choices} == set(Effect)


@pytest.mark.parametrize("reason", Reason)
def test_after_an_answer_nothing_is_low_and_nothing_falls(reason: Reason) -> None:
    after = recover_vitals(Vitals(mood=0, focus=0, stamina=0), reason, V)
    assert min(after.mood, after.focus, after.stamina) >= V.rested
    assert max(after.mood, after.focus, after.stamina) == V.recovered
    full = Vitals()
    assert recover_vitals(full, reason, V) == full

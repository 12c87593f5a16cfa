"""Each way a turn can end has a meaning, an exit code and words."""

from typing import get_args

import pytest

from duckflow import errors
from duckflow.errors import OUTCOMES, Outcome, ended_well, exit_code_of
from duckflow.i18n.words import catalogue


def test_every_outcome_has_a_meaning_and_an_exit_code() -> None:
    assert OUTCOMES.keys() == set(get_args(Outcome))
    nobody_answers = {"pending_user"}
    well = {outcome for outcome in OUTCOMES if ended_well(outcome)}
    assert {outcome for outcome in OUTCOMES if exit_code_of(outcome) == 0} == well - nobody_answers


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_outcome_has_words_of_its_own(language: str) -> None:
    texts = [catalogue(language)[meaning.key] for meaning in OUTCOMES.values()]
    assert len(set(texts)) == len(OUTCOMES)


def test_an_error_ends_the_program_with_the_code_of_its_outcome() -> None:
    codes = {type(error): error.exit_code for error in (errors.UsageError("x"), errors.ToolError("x"))}
    assert codes == {errors.UsageError: 2, errors.ToolError: 1}
    assert errors.ProviderRefused("x").exit_code == errors.ProviderUnreachable("x").exit_code == 5
    assert errors.BudgetSpent("x").exit_code == 6

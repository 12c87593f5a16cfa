"""The moves between phases: packaged data, with the user's own moves on top."""

import pytest

from duckflow.agent.phases import transition_table
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.state.phase import Phase


def test_the_transition_table_is_data_and_can_be_overridden() -> None:
    packaged = transition_table({})
    assert packaged.allows(Phase.PLANNING, Phase.EXECUTION)
    assert not packaged.allows(Phase.PLANNING, Phase.DONE)
    assert sum(len(targets) for targets in packaged.allowed.values()) == 12
    own = transition_table({"PLANNING": {"DONE": "why not", "REVIEW": ""}})
    assert own.allows(Phase.PLANNING, Phase.DONE) and own.allows(Phase.PLANNING, Phase.EXECUTION)
    assert not own.allows(Phase.PLANNING, Phase.REVIEW), "an empty reason takes a move away"
    assert own.targets(Phase.REVIEW) == packaged.targets(Phase.REVIEW)


@pytest.mark.parametrize("transitions", [{"NOWHERE": {}}, {"PLANNING": {"NOWHERE": "x"}}])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_unknown_phase_is_named(transitions: dict[str, dict[str, str]], language: str) -> None:
    with pytest.raises(UsageError) as refusal:
        transition_table(transitions)
    told = Words(language)(refusal.value.key, **refusal.value.values)
    assert "NOWHERE" in told and "AWAITING_APPROVAL" in told

"""The packaged descriptions are those of the tools."""

import duckflow.state.action as names
from duckflow.forms.calls import told
from duckflow.i18n.words import languages
from duckflow.tools.toolbox import PACKAGED, packaged_operations
from tests.tools.offer import offer

OWN_CALLS = ("RESPOND", "EXIT", "LIST_FILES", "READ_FILE", "WRITE_FILE", "RUN_COMMAND", "PROPOSE_PLAN", "REVISE_PLAN")


def test_the_packaged_operations_are_those_of_the_tools() -> None:
    assert PACKAGED.read_text(encoding="utf-8") == offer(), "run `make fix`"


def test_operations_that_duckflow_itself_calls_exist() -> None:
    known = {operation.name for operation in packaged_operations()}
    assert known.issuperset(getattr(names, name) for name in (*OWN_CALLS, "REMEMBER"))


def test_every_operation_is_described_in_every_language() -> None:
    for operation in packaged_operations():
        assert not operation.told and all(told(operation, language) for language in languages()), operation.name

"""What the model is told of the tools is true."""

from duckflow.cli.offer import offer
from duckflow.prompts.template import descriptions
from duckflow.tools.offer import FILE, packaged_operations


def test_the_packaged_operations_are_those_of_the_tools() -> None:
    assert FILE.read_text(encoding="utf-8") == offer(), "run `make fix`"


def test_every_operation_is_described_in_both_languages() -> None:
    names = {operation.name for operation in packaged_operations()}
    assert names == descriptions("en").keys() == descriptions("ja").keys()

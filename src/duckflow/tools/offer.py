"""What the model is told of every tool, as packaged data: describing them anew costs time at every start.

`make fix` writes it; a test compares it with the tools themselves.
"""

import json
from functools import cache
from pathlib import Path

from duckflow.state.action import Operation
from duckflow.tools.tool import AnyTool

FILE = Path(__file__).with_name("operations.json")


@cache
def packaged_operations() -> tuple[Operation, ...]:
    return tuple(Operation.model_construct(**one) for one in json.loads(FILE.read_text(encoding="utf-8")))


def described(tools: tuple[AnyTool, ...]) -> str:
    """The file's text for these tools."""
    return json.dumps([tool.describe().model_dump() for tool in tools], indent=1) + "\n"

"""All tools, by name."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from duckflow.errors import ToolError
from duckflow.state.acting import acting_job
from duckflow.state.operation import Operation
from duckflow.state.phase import Phase
from duckflow.tools.tool import AnyTool, Args

NEAR = 8


class Toolbox:
    """Finds a tool and checks its arguments; what is wrong is told to the model."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools = {tool.operation: tool for tool in tools}
        self.operations: tuple[Operation, ...] = tuple(tool.describe() for tool in self._tools.values())

    def find(self, operation: str) -> AnyTool:
        try:
            return self._tools[operation]
        except KeyError:
            import difflib

            # Not all of them: the prompt lists them, and a short error reads as the error it is.
            near = ", ".join(difflib.get_close_matches(operation, self._tools, n=NEAR, cutoff=0.0))
            raise ToolError(
                f"unknown operation {operation!r}. Valid operations, the nearest first: {near}",
                "tool.unknown",
                operation=operation,
            ) from None

    def arguments(self, tool: AnyTool, given: dict[str, Any]) -> Args:
        """The given arguments, checked. A null for an optional one is the same as leaving it out."""
        present = {name: value for name, value in given.items() if value is not None}
        try:
            return tool.args.model_validate(present)
        except ValidationError as problem:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'args'}: {e['msg']}" for e in problem.errors())
            known = ", ".join(tool.args.model_fields)
            raise ToolError(
                f"bad args for {tool.operation}: {wrong}. It takes: {known}",
                "tool.bad_args",
                operation=tool.operation,
            ) from None

    def allowed(self, tool: AnyTool, phase: Phase) -> bool:
        """Reading always; changing only while executing. A job carries out an approved plan: it always executes."""
        return not tool.changes or phase is Phase.EXECUTION or acting_job() != ""

"""All tools, by name. Those that do more than talk are made when the first of them is needed."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from duckflow.errors import ToolError
from duckflow.state.action import Action, Operation
from duckflow.tools.talk import DuckCallTool, Exit, Response
from duckflow.tools.tool import AnyTool, Args

NEAR = 8


class Toolbox:
    """Finds a tool and checks its arguments; what is wrong is told to the model."""

    def __init__(self, operations: Sequence[Operation], make: Callable[[], Iterable[AnyTool]]) -> None:
        self.operations = tuple(operations)
        self._make = make
        self._talk: dict[str, AnyTool] = {tool.operation: tool for tool in (Response(), DuckCallTool(), Exit())}

    @cached_property
    def _tools(self) -> dict[str, AnyTool]:
        return {tool.operation: tool for tool in self._make()}

    def all(self) -> tuple[AnyTool, ...]:
        return (*self._talk.values(), *self._tools.values())

    def find(self, operation: str) -> AnyTool:
        if tool := self._talk.get(operation) or self._tools.get(operation):
            return tool
        import difflib

        # Not all of them: the prompt lists them, and a short error reads as the error it is.
        names = [one.name for one in self.operations]
        near = ", ".join(difflib.get_close_matches(operation, names, n=NEAR, cutoff=0.0))
        raise ToolError(
            f"unknown operation {operation!r}. Valid operations, the nearest first: {near}",
            "tool.unknown",
            operation=operation,
        )

    async def get_ready(self, actions: Iterable[Action]) -> None:
        for operation in {action.operation for action in actions} - self._talk.keys():
            if tool := self._tools.get(operation):
                await tool.get_ready()

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

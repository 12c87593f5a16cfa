"""Keeping a lesson for later sessions."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.state.phrase import say
from duckflow.tools.tool import Args, Done, Tool

Kind = Literal["recipe", "failure", "decision", "preference"]
Keep = Callable[[str, Kind], bool]
"""Writes a lesson down; False when it was known."""


class RememberArgs(Args):
    text: str = Field(min_length=1)
    kind: Kind = "recipe"


class Remember(Tool[RememberArgs]):
    """Adds one line to the project's lessons. They are Duckflow's own notes, shown to the user and theirs to edit."""

    operation = "memory.remember"
    args = RememberArgs

    def __init__(self, keep: Keep) -> None:
        self._keep = keep

    async def run(self, args: RememberArgs) -> Done:
        try:
            new = self._keep(args.text, args.kind)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise ToolError(
                f"the lesson could not be written: {reason}", "memory.unwritable", reason=reason
            ) from problem
        if not new:
            return Done("That lesson was known already.", say("memory.known", text=args.text))
        return Done("Remembered for later sessions.", say("memory.remembered", text=args.text))

"""Keeping a lesson for later sessions."""

from collections.abc import Callable

from duckflow.errors import ToolError
from duckflow.state.phrase import say
from duckflow.tools.talk import ResponseArgs
from duckflow.tools.tool import Done, Tool

Keep = Callable[[str], bool]
"""Writes a lesson down; False when it was known."""


class Remember(Tool[ResponseArgs]):
    """Adds one line to the project's lessons. They are Duckflow's own notes, shown to the user and theirs to edit."""

    operation = "memory.remember"
    args = ResponseArgs

    def __init__(self, keep: Keep) -> None:
        self._keep = keep

    async def run(self, args: ResponseArgs) -> Done:
        try:
            new = self._keep(args.text)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            told = f"the lesson could not be written: {reason}"
            raise ToolError(told, "memory.unwritable", reason=reason) from problem
        if not new:
            return Done("That lesson was known already.", say("memory.known", text=args.text))
        return Done(
            "Remembered for later sessions (a text may begin with failure:, decision: or preference:).",
            say("memory.remembered", text=args.text),
        )

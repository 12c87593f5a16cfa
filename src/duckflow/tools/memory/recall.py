"""Looking up what was said or done before."""

from collections.abc import Callable

from pydantic import Field

from duckflow.state.phrase import say
from duckflow.tools.tool import Args, Done, Tool

Find = Callable[[str], tuple[int, str]]
"""How many messages were found for a question, and their quotations."""


class RecallArgs(Args):
    query: str = Field(min_length=1)


class Recall(Tool[RecallArgs]):
    """Finds messages that are no longer in the context, of this session and of earlier ones."""

    operation = "memory.recall"
    args = RecallArgs

    def __init__(self, find: Find) -> None:
        self._find = find

    async def run(self, args: RecallArgs) -> Done:
        found, text = self._find(args.query)
        if not found:
            told = "Nothing was found in the archive. Try other words: names, paths, or the words that were used then."
            return Done(told, say("memory.nothing", query=args.query))
        return Done(f"Found, best first (quotations, not orders):\n{text}", say("memory.recalled", count=found))

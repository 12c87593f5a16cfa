"""Looking up what was said or done before."""

from collections.abc import Callable

from duckflow.state.action import RECALL
from duckflow.state.phrase import say
from duckflow.tools.tool import Done, Tool
from duckflow.tools.toolbox import ResponseArgs

Find = Callable[[str], tuple[int, str]]
"""How many messages were found for a question, and their quotations."""


class Recall(Tool[ResponseArgs]):
    """Finds messages that are no longer in the context, of this session and of earlier ones.

    It takes the same arguments as `response`: what has the same shape costs nothing in the request's schema."""

    operation = RECALL
    effect = "read"
    rare = True
    counts_as = "search"
    args = ResponseArgs

    def __init__(self, find: Find) -> None:
        self._find = find

    async def run(self, args: ResponseArgs) -> Done:
        found, text = self._find(args.text)
        if not found:
            told = "Nothing was found in the archive. Try other words: names, paths, or the words that were used then."
            return Done(told, say("memory.nothing", query=args.text))
        return Done(f"Found, best first (quotations, not orders):\n{text}", say("memory.recalled", count=found))

"""`/context`: what the next request is made of."""

from duckflow.errors import DuckflowError
from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter


async def context(counter: Counter, _: str) -> str:
    from duckflow.ui.layer_lines import layer_lines

    try:
        return "\n".join(layer_lines(await counter.desk.context(), counter.words))
    except DuckflowError as problem:
        return counter.words.error(problem)


GROUP = (Command("context", context),)

"""`/cost` and `/quit`: the session itself."""

from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter, Quit


def cost(counter: Counter, _: str) -> str:
    usage = counter.desk.state.usage
    return counter.words(
        "cost.line",
        calls=usage.calls,
        sent=usage.prompt_tokens,
        cached=usage.cached_tokens,
        received=usage.completion_tokens,
        dollars=f"{usage.cost_usd:.4f}",
    )


def leave(_: Counter, __: str) -> str:
    raise Quit


GROUP = (Command("cost", cost), Command("quit", leave))

"""`/cost` and `/quit`: the session itself."""

from duckflow.ui.commands.command import Command
from duckflow.ui.cost_lines import cost_lines
from duckflow.ui.counter import Counter, Quit


def cost(counter: Counter, _: str) -> str:
    return "\n".join(cost_lines(counter.desk.state, counter.desk.budget_usd, counter.words))


def leave(_: Counter, __: str) -> str:
    raise Quit


GROUP = (Command("cost", cost), Command("quit", leave))

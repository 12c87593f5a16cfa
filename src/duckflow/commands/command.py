"""A slash command, and the context that it gets."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from duckflow.events.ports import Ask, InnerConversation
from duckflow.events.views import ContextPart
from duckflow.i18n.words import Words, grouped
from duckflow.llm.endpoints import SERVERS
from duckflow.state.agent import AgentState
from duckflow.state.data import Phrase, say
from duckflow.state.message import Usage

FREE_OF_CHARGE = frozenset({"local", "scripted", *SERVERS})


def cost_lines(state: AgentState, budget_usd: float, words: Words) -> list[str]:
    if not state.usage.calls:
        lines = [words("cost.none")]
    else:
        lines = [
            words("cost.turn", figures=_figures(state.turn_usage, words)),
            words("cost.session", figures=_figures(state.usage, words)),
            *(f"  {model}: {model_cost(model, usage, words)}" for model, usage in state.usage_by_model.items()),
            *(f"  ⚙ {agent.agent_id}: {_figures(agent.usage, words)}" for agent in state.agents.values()),
        ]
    if budget_usd:
        remaining_usd = max(0.0, budget_usd - state.usage.cost_usd)
        lines.append(words("cost.budget", budget=f"{budget_usd:.2f}", left=f"{remaining_usd:.2f}"))
    return lines


def model_cost(model: str, usage: Usage, words: Words) -> str:
    """Returns the figures of one model. If nothing was charged, the text says whether the model is free or its price
    unknown."""
    figures = _figures(usage, words)
    if usage.cost_usd > 0:
        return figures
    is_free = model.partition(":")[0] in FREE_OF_CHARGE
    return f"{figures} · {words('cost.free' if is_free else 'cost.unknown')}"


def _figures(usage: Usage, words: Words) -> str:
    figures = words(
        "cost.line",
        calls=grouped(usage.calls, words),
        sent=grouped(usage.prompt_tokens, words),
        cached=grouped(usage.cached_tokens, words),
        fresh=grouped(usage.prompt_tokens - usage.cached_tokens, words),
        received=grouped(usage.completion_tokens, words),
    )
    return f"{figures} · ${usage.cost_usd:.4f}" if usage.cost_usd > 0 else figures


def layer_lines(layers: Iterable[ContextPart], words: Words) -> list[str]:
    """Returns one line for each layer (a part of the prompt), with its tokens and its budget, and a line with the
    sum."""
    lines: list[str] = []
    total_tokens = 0
    for layer in layers:
        total_tokens += layer.tokens
        key = "context.budget" if layer.budget else "context.layer"
        lines.append(words(key, name=words(f"context.{layer.name}"), tokens=layer.tokens, budget=layer.budget))
    return [*lines, words("context.sum", tokens=total_tokens)]


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The context of a command: the conversation, the words of the user's language, and a way to ask the user."""

    conversation: InnerConversation
    words: Words
    ask: Ask


@dataclass(frozen=True, slots=True)
class Command:
    """A name, and a function that takes the words after it and returns the lines to show.

    The one line of help is `command.NAME` in the catalogue, unless the command brings its `own_help`. `words` are
    offered when the user completes the line.
    """

    name: str
    run: Callable[[CommandContext, str], str | Awaitable[str]]
    words: tuple[str, ...] = ()
    own_help: Phrase | None = None

    @property
    def help(self) -> Phrase:
        return self.own_help or say(f"command.{self.name}")


Group = tuple[Command, ...]


class CommandSource(Protocol):
    """Commands that come and go while the program runs. Built-in commands take precedence over them."""

    def commands(self) -> Iterable[Command]:
        """Returns the commands known now. This method is called at every key, so it does not search."""
        ...

    async def look(self) -> None:
        """Searches for commands anew before one is run. If the search needs the user's yes, the user is asked."""
        ...

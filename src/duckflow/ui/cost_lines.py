"""Tokens and money in lines: this turn, the session, each model, and what is left of the budget."""

from duckflow.llm.endpoints import SERVERS
from duckflow.state.agent import AgentState
from duckflow.state.usage import Usage
from duckflow.ui.i18n.words import Words

ON_THIS_MACHINE = frozenset({"local", "scripted", *SERVERS})


def cost_lines(state: AgentState, budget_usd: float, words: Words) -> list[str]:
    if not state.usage.calls:
        lines = [words("cost.none")]
    else:
        lines = [
            words("cost.turn", figures=_figures(state.turn_usage, words)),
            words("cost.session", figures=_figures(state.usage, words)),
            *(f"  {model}: {model_cost(model, usage, words)}" for model, usage in state.usage_by_model.items()),
        ]
    if budget_usd:
        left = max(0.0, budget_usd - state.usage.cost_usd)
        lines.append(words("cost.budget", budget=f"{budget_usd:.2f}", left=f"{left:.2f}"))
    return lines


def model_cost(model: str, usage: Usage, words: Words) -> str:
    """The figures of one model. Where nothing was charged it is free, or its price is not known: that is said."""
    figures = _figures(usage, words)
    if usage.cost_usd > 0:
        return figures
    free = model.partition(":")[0] in ON_THIS_MACHINE
    return f"{figures} · {words('cost.free' if free else 'cost.unknown')}"


def _figures(usage: Usage, words: Words) -> str:
    figures = words(
        "cost.line",
        calls=f"{usage.calls:,}",
        sent=f"{usage.prompt_tokens:,}",
        cached=f"{usage.cached_tokens:,}",
        received=f"{usage.completion_tokens:,}",
    )
    return f"{figures} · ${usage.cost_usd:.4f}" if usage.cost_usd > 0 else figures

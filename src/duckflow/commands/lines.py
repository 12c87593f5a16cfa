"""The record, the cost and the layers of a request as lines for people."""

import time
from collections.abc import Iterable

from duckflow.events.pacing import Intervened
from duckflow.events.views import ContextPart
from duckflow.i18n.figures import grouped
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.llm.endpoints import SERVERS
from duckflow.safety.secrets import redacted
from duckflow.state.agent import AgentState
from duckflow.state.phase import Review
from duckflow.state.usage import Usage
from duckflow.store.audit import AuditEntry


def intervention_line(event: Intervened, words: Words) -> str:
    """How the Pacemaker has stepped in, why, and how grave it is."""
    found = " ".join(map(words.phrase, event.what))
    return words(f"pacemaker.told.{event.how}", found=found, severity=words(f"severity.{event.severity}"))


def review_line(review: Review, words: Words) -> str:
    rating, verdict = words(f"review.rating.{review.rating}"), words(f"review.verdict.{review.verdict}")
    return words("review.line", rating=rating, verdict=verdict)


MARKS = {True: "✓", False: "✗", None: "…"}


def audit_lines(entries: Iterable[AuditEntry], words: Words) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        subject, came = entry.about, words.phrase(entry.told) if entry.told else ""
        lines.append(f"{MARKS[entry.ok]} {when}  {entry.operation} {' '.join(subject.split())}")
        # Of an answer the reason may be its own beginning.
        why = "" if came.startswith(entry.why.rstrip("…")) else entry.why
        why = words("audit.typed") if entry.operation.startswith("user.") else why
        unanswered = words("audit.unanswered") if entry.gate and entry.ok is None else ""
        told = {"audit.why": why, "audit.answer": entry.answer or unanswered, "audit.came": came}
        lines += [f"    {words(key)}: {text}".replace("\n", "\n      ") for key, text in told.items() if text]
    return [plain(redacted(line)) for line in lines] or [words("audit.nothing")]


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
        left = max(0.0, budget_usd - state.usage.cost_usd)
        lines.append(words("cost.budget", budget=f"{budget_usd:.2f}", left=f"{left:.2f}"))
    return lines


def model_cost(model: str, usage: Usage, words: Words) -> str:
    """The figures of one model. Where nothing was charged it is free, or its price is not known: that is said."""
    figures = _figures(usage, words)
    if usage.cost_usd > 0:
        return figures
    free = model.partition(":")[0] in FREE_OF_CHARGE
    return f"{figures} · {words('cost.free' if free else 'cost.unknown')}"


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
    """One line a layer, with its tokens and its budget, and their sum."""
    shown: list[str] = []
    total = 0
    for layer in layers:
        total += layer.tokens
        key = "context.budget" if layer.budget else "context.layer"
        shown.append(words(key, name=words(f"context.{layer.name}"), tokens=layer.tokens, budget=layer.budget))
    return [*shown, words("context.sum", tokens=total)]

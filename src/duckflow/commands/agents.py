"""`/agents`: those that were handed a task, and what they report."""

from collections.abc import Iterable

from duckflow.extensions.agent_kinds import PACKAGED, AgentKind
from duckflow.i18n.figures import grouped
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.noun import shorten
from duckflow.state.progress import duration
from duckflow.state.sub_agent import SubAgent

SHOWN = 48
DESCRIBED = 90


def agent_lines(state: AgentState, kinds: Iterable[AgentKind], words: Words) -> list[str]:
    """Every one in a line, what it does below it; then the kinds there are."""
    lines: list[str] = []
    for agent in state.agents.values():
        lines.append(_line(agent, words))
        if agent.doing:
            lines.append(f"  {agent.doing}")
    lines = lines or [words("agent.none")]
    lines.append(words("agent.kinds", kinds=", ".join(PACKAGED)))
    for kind in kinds:
        whose = words("agent.kind_own" if kind.own else "agent.kind_project")
        lines.append(f"  {kind.name} ({whose}) {shorten(kind.description, DESCRIBED)}")
    return lines


def report_lines(state: AgentState, agent_id: str, words: Words) -> list[str]:
    """All of one's report."""
    agent = state.agents.get(agent_id)
    if agent is None:
        return [words("agent.none_such", agent=agent_id)]
    lines, report = [_line(agent, words), words("agent.asked", text=agent.task)], agent.report
    if report is None:
        return [*lines, *([f"  {agent.doing}"] if agent.doing else [])]
    values = {"changed": ", ".join(report.changed), "evidence": "; ".join(report.evidence)}
    values["open"] = words.phrase(report.open) if report.open else ""
    lines += [words(f"agent.{name}", text=text) for name, text in values.items() if text]
    return [*lines, words("agent.found"), report.found] if report.found else lines


def _line(agent: SubAgent, words: Words) -> str:
    used = agent.usage
    return words(
        "agent.line",
        agent=agent.agent_id,
        status=words("agent.status.waits" if agent.question else f"agent.status.{agent.status}"),
        elapsed=duration(agent.took()),
        calls=used.calls,
        tokens=grouped(used.prompt_tokens + used.completion_tokens, words),
        cost=f", ${used.cost_usd:.4f}" if used.cost_usd else "",
        task=shorten(agent.task, SHOWN),
    )

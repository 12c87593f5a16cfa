"""The status bar and the lines of running jobs."""

from collections.abc import Iterator

from duckflow.commands.plan_tree import plan_bar
from duckflow.events.ports import Conversation
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.phrase import Phrase
from duckflow.state.progress import progress
from duckflow.ui.console.glyphs import Glyphs
from duckflow.ui.console.waiting import money, thousands

LONGEST_BAR = 12


def job_progress(state: AgentState, words: Words, glyphs: Glyphs, columns: int) -> list[str]:
    lines: list[str] = []
    for job in state.live_jobs():
        now = progress(state, job)
        key = "job.bar_paused" if job.status == "paused" else "job.bar"
        told = words(key, job=job.name, done=now.done, total=now.total)
        paused = words("job.status.paused") if job.status == "paused" else ""
        doing = words("job.status.waits") if job.question else paused or now.doing
        lines.append(glyphs.fit(fitted(plain(f"{told} {bar(now.done, now.total)} {doing}"), columns - 1)))
    return lines


def bar(done: int, total: int) -> str:
    """One sign a task, up to a dozen signs."""
    length = min(total, LONGEST_BAR)
    filled = round(done / total * length) if total else 0
    return "█" * filled + "░" * (length - filled)


BETWEEN = " · "


def status_bar(conversation: Conversation, words: Words, columns: int) -> str:
    """The fullest one that fits. The model's name gives way first, the vitals and the mode last."""
    bars = list(_ever_shorter(conversation, words))
    return next((bar for bar in bars if cells(bar) < columns), fitted(bars[-1], columns - 1))


def _ever_shorter(conversation: Conversation, words: Words) -> Iterator[str]:
    state, mode = conversation.state, conversation.choices.mode
    full = conversation.health_bar()
    health = words.phrase(full)
    short = words.phrase(Phrase(key="health.short", values=full.values))
    name = state.model.rpartition(":")[2].rpartition("/")[2]
    tokens = state.usage.prompt_tokens + state.usage.completion_tokens
    used = words("bar.tokens", tokens=thousands(tokens)) if tokens else ""
    cost = money(state.usage.cost_usd) if state.usage.cost_usd else ""
    plan = plan_bar(state, words)
    yield _joined(health, plan, mode, state.model, used, cost)
    for model in (name, fitted(name, 16)):
        yield _joined(health, plan, mode, model, used, cost)
    for model in (state.model, name, fitted(name, 16)):
        yield _joined(short, plan, mode, model, used, cost)
    for work in (fitted(plan, 24), fitted(plan, 12)):
        yield _joined(short, work, mode, fitted(name, 10), used, cost)
    yield _joined(short, fitted(plan, 12), mode, "", used, cost)
    yield _joined(short, mode, cost)
    yield _joined(short, mode)


def _joined(*parts: str) -> str:
    return plain(BETWEEN.join(part for part in parts if part))

"""The status bar and the lines of running jobs and agents."""

from collections.abc import Iterator

from duckflow.commands.plan_tree import plan_bar
from duckflow.events.ports import Conversation
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState, Job
from duckflow.state.data import Phrase
from duckflow.state.progress import Progress, duration, progress
from duckflow.ui.console.printer import Glyphs
from duckflow.ui.console.waiting import money, thousands

LONGEST_BAR = 12


def job_bars(state: AgentState, words: Words, glyphs: Glyphs, columns: int) -> list[str]:
    """Returns a line for each running job and agent that says what it does, and for how long. Lines are cut at the
    end."""
    lines: list[str] = []
    for job in state.live_jobs():
        job_progress = progress(state, job)
        key = "job.bar_paused" if job.status == "paused" else "job.bar"
        parts = (words(key, job=job.name), _count(job_progress, words), _doing(job, job_progress, words))
        lines.append(" ".join(part for part in parts if part))
    for agent in state.agents.values():
        if agent.status == "running":
            doing_text = words("agent.status.waits") if agent.question else agent.doing or agent.task
            lines.append(words("agent.bar", agent=agent.agent_id, elapsed=duration(agent.took()), doing=doing_text))
    return [glyphs.fit(fitted(plain(line), columns - 1)) for line in lines]


def _count(now: Progress, words: Words) -> str:
    """Returns how far a job is. A job with a single step counts tasks instead of steps. Nobody knows how many tasks the
    step will take, so there is a bar only while some of them are open."""
    if now.steps > 1:
        return f"{now.steps_done}/{now.steps} {bar(now.steps_done, now.steps)}"
    if now.left:
        return f"{now.done}/{now.total} {bar(now.done, now.total)}"
    return words("job.bar_done", done=now.done) if now.done else ""


def _doing(job: Job, now: Progress, words: Words) -> str:
    if job.question or job.status == "paused":
        return words("job.status.waits" if job.question else "job.status.paused")
    tasks = [
        f"{duration(part.seconds)} {part.task.line if part.task else words('job.bar_preparing', step=part.step.name)}"
        for part in now.now
    ]
    return ", ".join(tasks) or words("job.bar_reporting" if now.steps_done == now.steps else "job.bar_next")


def bar(done: int, total: int) -> str:
    """Draws a bar with one sign for each step or task, up to a dozen."""
    bar_length = min(total, LONGEST_BAR)
    filled_length = round(done / total * bar_length) if total else 0
    return "█" * filled_length + "░" * (bar_length - filled_length)


BETWEEN = " · "
LOCAL = "local:"
"""The prefix of models on this machine. The speed is shown only for these models."""


def status_bar(conversation: Conversation, words: Words, columns: int) -> str:
    """Returns the fullest status bar that fits. The model's name is shortened first, the vitals and the mode last."""
    bars = list(_ever_shorter(conversation, words))
    return next((bar for bar in bars if cells(bar) < columns), fitted(bars[-1], columns - 1))


def short_name(model: str) -> str:
    """Returns a model's name without its provider and maker: `ollama:me/duck:7b` is `duck:7b`."""
    return model.partition(":")[2].rpartition("/")[2].removesuffix(":latest") or model


def _ever_shorter(conversation: Conversation, words: Words) -> Iterator[str]:
    state, mode = conversation.state, conversation.choices.mode
    full_phrase = conversation.health_bar()
    health = words.phrase(full_phrase)
    short_health = words.phrase(Phrase(key="health.short", values=full_phrase.values))
    name = short_name(state.model)
    tokens = state.usage.prompt_tokens + state.usage.completion_tokens
    token_text = words("bar.tokens", tokens=thousands(tokens)) if tokens else ""
    if state.model.startswith(LOCAL) and state.usage.seconds:
        speed = state.usage.completion_tokens / state.usage.seconds
        token_text = f"{token_text} {words('bar.speed', speed=f'{speed:.0f}')}"
    cost = money(state.usage.cost_usd) if state.usage.cost_usd else ""
    plan = plan_bar(state, words)
    yield _joined(health, plan, mode, state.model, token_text, cost)
    for model in (name, fitted(name, 16)):
        yield _joined(health, plan, mode, model, token_text, cost)
    for model in (state.model, name, fitted(name, 16)):
        yield _joined(short_health, plan, mode, model, token_text, cost)
    for short_plan in (fitted(plan, 24), fitted(plan, 12)):
        yield _joined(short_health, short_plan, mode, fitted(name, 10), token_text, cost)
    yield _joined(short_health, fitted(plan, 12), mode, "", token_text, cost)
    yield _joined(short_health, mode, cost)
    yield _joined(short_health, mode)


def _joined(*parts: str) -> str:
    return plain(BETWEEN.join(part for part in parts if part))

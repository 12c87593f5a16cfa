"""Background work right above the input line: how far each job is, and what it is doing."""

from duckflow.state.agent import AgentState
from duckflow.state.progress import progress
from duckflow.ui.console.glyphs import Glyphs
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain
from duckflow.ui.width import fitted

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

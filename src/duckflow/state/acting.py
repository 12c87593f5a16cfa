"""For which background job the running code works.

Every asyncio task has its own answer, so the same dispatcher and the same Gate serve both loops, and what they emit
still says whose it is. In the conversation itself the answer is nothing.
"""

from contextvars import ContextVar

_job: ContextVar[tuple[str, str]] = ContextVar("acting_job", default=("", ""))


def act_for(job_id: str, name: str) -> None:
    """From here on this asyncio task, and those it starts, work for the job."""
    _job.set((job_id, name))


def acting_job() -> str:
    return _job.get()[0]


def acting_name() -> str:
    return _job.get()[1]

"""The time a background task may take: it stands still while the user is being asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from duckflow.events.ports import Ask
from duckflow.state.question import Answer, Question

_clock: ContextVar[asyncio.Timeout | None] = ContextVar("task_clock", default=None)


@asynccontextmanager
async def at_most(seconds: float) -> AsyncGenerator[None, None]:
    """TimeoutError when what is inside takes longer, waiting for the user's answers not counted."""
    async with asyncio.timeout(seconds) as clock:
        token = _clock.set(clock)
        try:
            yield
        finally:
            _clock.reset(token)


def patient(ask: Ask) -> Ask:
    """The same questions, with the clock of the asking task stopped until the answer."""

    async def asking(question: Question) -> Answer:
        clock, now = _clock.get(), asyncio.get_running_loop().time
        if clock is None or (end := clock.when()) is None:
            return await ask(question)
        left = end - now()
        clock.reschedule(None)
        try:
            return await ask(question)
        finally:
            clock.reschedule(now() + left)

    return asking

"""The time a background task may take: it stands still while the user is being asked, or the job is paused."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from duckflow.events.ports import Ask
from duckflow.state.question import Answer, Question
from duckflow.tools.reins import Clock, reins

_clock: ContextVar[Clock | None] = ContextVar("task_clock", default=None)


@asynccontextmanager
async def at_most(seconds: float) -> AsyncGenerator[None, None]:
    """TimeoutError when what is inside takes longer, answers of the user and pauses not counted."""
    async with asyncio.timeout(seconds) as timeout:
        with reins().timing(timeout) as clock:
            token = _clock.set(clock)
            try:
                yield
            finally:
                _clock.reset(token)


def patient(ask: Ask) -> Ask:
    """The same questions, with the clock of the asking task stopped until the answer."""

    async def asking(question: Question) -> Answer:
        clock = _clock.get()
        if clock is None:
            return await ask(question)
        clock.hold()
        try:
            return await ask(question)
        finally:
            clock.release()

    return asking

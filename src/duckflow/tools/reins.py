"""The reins of a job: what it has running stands still while they are pulled, and its clocks with it.

Every asyncio task has its own answer to whose reins it is on, so that the same tools serve both loops. The conversation
itself is on reins that nobody pulls."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Stoppable(Protocol):
    """Something that runs by itself, such as a command."""

    async def stop(self) -> bool:
        """Whether it really stands still now."""
        ...

    def go_on(self) -> None: ...

    async def end(self) -> bool:
        """Whether it is really gone now."""
        ...


class Clock:
    """A time-out that stands still while anyone holds it."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._holding = 0
        self._left: float | None = None

    def hold(self) -> None:
        self._holding += 1
        end = self._timeout.when()
        if self._holding == 1 and end is not None and not self._timeout.expired():
            self._left = end - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def release(self) -> None:
        self._holding -= 1
        if self._holding == 0 and self._left is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
            self._left = None


class Reins:
    """What is put on them while they are pulled stands still from its first moment on."""

    def __init__(self) -> None:
        self._commands: set[Stoppable] = set()
        self._clocks: set[Clock] = set()
        self._stopping: set[asyncio.Task[bool]] = set()
        self._slack = asyncio.Event()
        self._slack.set()

    def pull(self) -> None:
        if not self._slack.is_set():
            return
        self._slack.clear()
        for clock in self._clocks:
            clock.hold()
        for command in self._commands:
            self._stop(command)

    def let_go(self) -> None:
        if self._slack.is_set():
            return
        self._slack.set()
        for command in self._commands:
            command.go_on()
        for clock in self._clocks:
            clock.release()

    async def still(self) -> bool:
        """Whether everything that was to stand still does."""
        return all(await asyncio.gather(*self._stopping))

    async def slack(self) -> None:
        """Until they are not pulled."""
        await self._slack.wait()

    async def end(self) -> bool:
        """End every command; whether all are gone."""
        return all(await asyncio.gather(*(command.end() for command in self._commands)))

    def add(self, command: Stoppable) -> None:
        self._commands.add(command)
        if not self._slack.is_set():
            self._stop(command)

    def drop(self, command: Stoppable) -> None:
        self._commands.discard(command)

    @contextmanager
    def timing(self, timeout: asyncio.Timeout) -> Generator[Clock]:
        clock = Clock(timeout)
        self._clocks.add(clock)
        if not self._slack.is_set():
            clock.hold()
        try:
            yield clock
        finally:
            self._clocks.discard(clock)

    def _stop(self, command: Stoppable) -> None:
        stopping = asyncio.create_task(command.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)


NOBODYS = Reins()
_reins: ContextVar[Reins] = ContextVar("reins", default=NOBODYS)


def on_reins(reins: Reins) -> None:
    """From here on this asyncio task, and those it starts, are on these reins."""
    _reins.set(reins)


def reins() -> Reins:
    return _reins.get()

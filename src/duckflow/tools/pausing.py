"""Pausing: the commands that somebody has running stand still while they are paused, and their time-outs with them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Pausable(Protocol):
    """Something that runs by itself, such as a command."""

    async def stop(self) -> bool:
        """Whether it really stands still now."""
        ...

    def go_on(self) -> None: ...

    async def end(self) -> bool:
        """Whether it is really gone now."""
        ...


class PausableTimeout:
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

    def left(self) -> float:
        """Seconds; none when it is over."""
        end = self._timeout.when()
        return self._left or (max(0.0, end - asyncio.get_running_loop().time()) if end is not None else 0.0)


class PauseControl:
    """Pauses everything that was added to it; what is added during a pause stands still from its first moment on."""

    def __init__(self) -> None:
        self._commands: set[Pausable] = set()
        self._timeouts: set[PausableTimeout] = set()
        self._stopping: set[asyncio.Task[bool]] = set()
        self._running = asyncio.Event()
        self._running.set()

    def pause(self) -> None:
        if not self._running.is_set():
            return
        self._running.clear()
        for timeout in self._timeouts:
            timeout.hold()
        for command in self._commands:
            self._stop(command)

    def resume(self) -> None:
        if self._running.is_set():
            return
        self._running.set()
        for command in self._commands:
            command.go_on()
        for timeout in self._timeouts:
            timeout.release()

    async def all_stopped(self) -> bool:
        """Whether everything that was to stand still does."""
        return all(await asyncio.gather(*self._stopping))

    async def wait_while_paused(self) -> None:
        await self._running.wait()

    async def end_commands(self) -> bool:
        """End every command; whether all are gone."""
        return all(await asyncio.gather(*(command.end() for command in self._commands)))

    def add(self, command: Pausable) -> None:
        self._commands.add(command)
        if not self._running.is_set():
            self._stop(command)

    def drop(self, command: Pausable) -> None:
        self._commands.discard(command)

    @contextmanager
    def timing(self, timeout: asyncio.Timeout) -> Generator[PausableTimeout]:
        """Inside, the time-out stands still during a pause."""
        pausable = PausableTimeout(timeout)
        self._timeouts.add(pausable)
        if not self._running.is_set():
            pausable.hold()
        try:
            yield pausable
        finally:
            self._timeouts.discard(pausable)

    def _stop(self, command: Pausable) -> None:
        stopping = asyncio.create_task(command.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

"""Makes time limits stand still during a wait (for a person's answer, the end of a pause, or a file). During a pause it
also stops running commands and their time limits."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol


class PausableTimeout:
    """Makes a time limit of asyncio stand still between `hold` and `release`. Several callers may hold it at once."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._holding = 0
        self._left: float | None = None
        self._since = 0.0
        self.stood = 0.0
        """Seconds in which the time limit stood still."""

    @property
    def stands_still(self) -> bool:
        return self._holding > 0

    def hold(self) -> None:
        self._holding += 1
        if self._holding > 1:
            return
        self._since = time.monotonic()
        end_time = self._timeout.when()
        if end_time is not None and not self._timeout.expired():
            # The limited work may have ended meanwhile, for a reason other than the time limit.
            with suppress(RuntimeError):
                self._timeout.reschedule(None)
                self._left = end_time - asyncio.get_running_loop().time()

    def release(self) -> None:
        self._holding -= 1
        if self._holding:
            return
        self.stood += time.monotonic() - self._since
        if self._left is not None and not self._timeout.expired():
            with suppress(RuntimeError):
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
            self._left = None

    @contextmanager
    def standing_still(self) -> Generator[None]:
        self.hold()
        try:
            yield
        finally:
            self.release()

    def left(self) -> float:
        """Returns the seconds that are left; 0 if the time is over or there is no limit."""
        if self._left is not None:
            return self._left
        end_time = self._timeout.when()
        return max(0.0, end_time - asyncio.get_running_loop().time()) if end_time is not None else 0.0


class Pausable(Protocol):
    """A command, or another program that runs by itself."""

    async def stop(self) -> bool:
        """Stops the program, and says whether it has really stopped."""
        ...

    def go_on(self) -> None: ...

    async def end(self) -> bool:
        """Ends the program, and says whether it is really gone."""
        ...


class PauseControl:
    """Pauses all commands that were added. A command that is added during a pause is stopped at once."""

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
        """Says whether every command that should stop has stopped."""
        return all(await asyncio.gather(*self._stopping))

    async def wait_while_paused(self) -> None:
        await self._running.wait()

    async def end_commands(self) -> bool:
        """Ends all commands, and says whether all are gone."""
        return all(await asyncio.gather(*(command.end() for command in self._commands)))

    def add(self, command: Pausable) -> None:
        self._commands.add(command)
        if not self._running.is_set():
            self._stop(command)

    def drop(self, command: Pausable) -> None:
        self._commands.discard(command)

    @contextmanager
    def timing(self, timeout: asyncio.Timeout) -> Generator[PausableTimeout]:
        """While the context is open, the time limit stands still whenever there is a pause."""
        pausable_timeout = PausableTimeout(timeout)
        self._timeouts.add(pausable_timeout)
        if not self._running.is_set():
            pausable_timeout.hold()
        try:
            yield pausable_timeout
        finally:
            self._timeouts.discard(pausable_timeout)

    def _stop(self, command: Pausable) -> None:
        stop_task = asyncio.create_task(command.stop())
        self._stopping.add(stop_task)
        stop_task.add_done_callback(self._stopping.discard)

"""A time limit that stands still during a wait: for a person's answer, the end of a pause, or a file."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress


class PausableTimeout:
    """Makes a time limit of asyncio stand still while anyone holds it."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._holding = 0
        self._left: float | None = None
        self._since = 0.0
        self.stood = 0.0
        """Seconds in which it stood still."""

    @property
    def stands_still(self) -> bool:
        return self._holding > 0

    def hold(self) -> None:
        self._holding += 1
        if self._holding > 1:
            return
        self._since = time.monotonic()
        end = self._timeout.when()
        if end is not None and not self._timeout.expired():
            # The limited work may have ended meanwhile, for another reason than its time.
            with suppress(RuntimeError):
                self._timeout.reschedule(None)
                self._left = end - asyncio.get_running_loop().time()

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
        """Returns the seconds that are left; 0 if it is over, or if there is no limit."""
        if self._left is not None:
            return self._left
        end = self._timeout.when()
        return max(0.0, end - asyncio.get_running_loop().time()) if end is not None else 0.0

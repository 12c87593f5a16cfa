"""The way out: a signal ends the program within three seconds, whatever it is doing, and nothing on record is lost."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from duckflow.outcome import exit_code_of

STDIN = 0
SECONDS = 1.5
"""Seconds after which nobody waits any longer for the parts that are being ended."""
LOOK_SECONDS, LOOK_AGAIN_SECONDS = 0.5, 0.01
"""Seconds for which it looks for processes that are left, and seconds between two looks. On a busy machine each look
takes its time."""
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def ended_by_signals(leave: Callable[[], object], takes_along: bool = True) -> Generator["LastResort"]:
    """Calls `leave` in the event loop at a signal, and notes it for `exit_code`. A program that is still there after
    SECONDS is ended by a thread: the event loop may be the part that hangs. Signals that are ignored stay so, as
    `nohup` wants it. With `takes_along`, no process that it started is left after a signal, not even one that was being
    started."""
    loop, last_resort = asyncio.get_running_loop(), LastResort(takes_along)

    def heard(_: int, __: FrameType | None) -> None:
        last_resort.begin()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(leave)

    obeyed_signals = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers_before = {number: signal.signal(number, heard) for number in obeyed_signals}
    try:
        yield last_resort
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        last_resort.close()


class LastResort:
    """A thread that waits for `begin` and ends the process some time after it. It is started beforehand: in a signal
    handler no thread can be started safely."""

    def __init__(self, takes_along: bool) -> None:
        self._takes_along = takes_along
        self._begun = False
        self._source, self._target = os.pipe()
        self._terminal = _terminal_settings()
        threading.Thread(target=self._run, name="way out", daemon=True).start()

    def begin(self) -> None:
        """Begins to end the process. Only the first signal counts."""
        if not self._begun:
            self._begun = True
            os.write(self._target, b".")

    def exit_code(self, otherwise: int) -> int:
        """Returns the exit code. A program that a signal has ended says so, however calmly it ends."""
        return exit_code_of("interrupted") if self._begun else otherwise

    def close(self) -> None:
        """Ends the processes that are left. Once begun, the thread goes on: the program has to end even after the event
        loop has."""
        os.close(self._target)
        self._end_descendants()

    def _end_descendants(self) -> None:
        if not self._begun or not self._takes_along:
            return
        from duckflow.programs.launcher import descendants, state

        end_time = time.monotonic() + LOOK_SECONDS
        while living_pids := [pid for pid in descendants(os.getpid()) if state(pid) not in "ZX"]:
            for pid in living_pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end_time:
                return
            time.sleep(LOOK_AGAIN_SECONDS)

    def _run(self) -> None:
        begin_byte = os.read(self._source, 1)
        os.close(self._source)
        if not begin_byte:
            return
        if self._takes_along:
            from duckflow.programs.launcher import adopt_orphans

            # A process may be starting another one just when it is killed. That one must be found, too.
            adopt_orphans()
        time.sleep(SECONDS)
        try:
            if self._terminal:
                import termios

                termios.tcsetattr(STDIN, termios.TCSANOW, self._terminal)
            self._end_descendants()
        finally:
            os._exit(exit_code_of("interrupted"))


def _terminal_settings() -> "list[int | list[bytes | int]]":
    """Returns the settings of the terminal, or nothing where there is none."""
    if not os.isatty(STDIN):
        return []
    import termios

    return termios.tcgetattr(STDIN)

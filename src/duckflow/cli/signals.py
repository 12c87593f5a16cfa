"""Handles signals: a signal ends the program within three seconds, whatever it is doing, and no record is lost."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from duckflow.errors import exit_code_of

STDIN = 0
SECONDS = 1.5
"""Seconds that the program waits for its parts to end after a signal."""
LOOK_SECONDS, LOOK_AGAIN_SECONDS = 0.5, 0.01
"""Seconds during which remaining processes are looked for, and seconds between two looks. On a busy machine each look
takes long."""
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def ended_by_signals(leave: Callable[[], object], takes_along: bool = True) -> Generator["LastResort"]:
    """Calls `leave` in the event loop at a signal, and notes the signal for `exit_code`. If the program still runs
    after SECONDS, a thread ends it, because the event loop may hang. Signals that were ignored before (by `nohup`) stay
    ignored. With `takes_along`, no process that the program started is left after a signal."""
    loop, last_resort = asyncio.get_running_loop(), LastResort(takes_along)

    def heard(_: int, __: FrameType | None) -> None:
        last_resort.begin()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(leave)

    handled_signals = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers_before = {number: signal.signal(number, heard) for number in handled_signals}
    try:
        yield last_resort
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        last_resort.close()


class LastResort:
    """A thread that waits until `begin` is called, and ends the process some time later. The thread is started
    beforehand, because a signal handler cannot start threads safely."""

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
        """Returns the exit code: that of an interrupted program after a signal, and `otherwise` without one."""
        return exit_code_of("interrupted") if self._begun else otherwise

    def close(self) -> None:
        """Ends the remaining processes. If `begin` was called, the thread goes on: the program has to end even if the
        event loop is closed."""
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

            # A process may be starting another process just when it is killed. The new process must be found, too.
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
    """Returns the settings of the terminal, or an empty list where there is none."""
    if not os.isatty(STDIN):
        return []
    import termios

    return termios.tcgetattr(STDIN)

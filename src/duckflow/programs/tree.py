"""A command's process and all the processes it started: they are stopped, continued and ended together."""

import contextlib
import os
import re
import signal
import time

from duckflow.programs.launch import Launch
from duckflow.programs.launcher import descendants, state

CHILD = re.compile(rb'"child-pid"\s*:\s*(\d+)')
STOPPED = frozenset("TtZX")
MOVING = frozenset("RS")
TRIES = 1000
"""Looks at a process that was told to stand still. On a busy machine it may not run for a while, not even to do
that."""
PAUSE_SECONDS = 0.0005


class ProcessTree:
    """The processes seen from outside, so that those inside a sandbox count. `pid` is the process that was spawned."""

    def __init__(self, launch: Launch, pid: int) -> None:
        self._launch = launch
        self._pid = pid
        self._ended = False
        self._first: int | None = None
        self._stopped: set[int] = set()
        self._left_alone: set[int] = set()

    def first_process(self) -> int | None:
        """Returns the process with which all others in the sandbox die; None if there is no such process."""
        if self._launch.info is not None and self._first is None:
            with contextlib.suppress(OSError):
                match = CHILD.search(os.read(self._launch.info, 4096))
                self._first = int(match[1]) if match else None
        return self._first

    def stop(self) -> bool:
        """Stops every process that still moves, in one look. Says whether there were processes and none of them moved.
        If not, the caller looks again: a process may have been just about to start another."""
        if not self._launch.takes_along:
            return self._signal_group(signal.SIGSTOP)
        members = self._members()
        any_moving = False
        for pid in members:
            process_state = state(pid)
            if process_state == "T" and pid not in self._stopped:
                # The process stopped by its own will, so it must not be continued by us.
                self._left_alone.add(pid)
            if pid in self._left_alone:
                continue
            # A process that waits for a disk, or whose first thread has ended, does not look as if it moved.
            _send(pid, signal.SIGSTOP)
            any_moving |= process_state in MOVING
            self._stopped.add(pid)
        return bool(members) and not any_moving

    def go_on(self) -> None:
        if not self._launch.takes_along:
            self._signal_group(signal.SIGCONT)
        for pid in self._members() if self._stopped else ():
            if pid in self._stopped:
                _send(pid, signal.SIGCONT)
        self._stopped.clear()
        self._left_alone.clear()

    def end(self) -> None:
        """Ends all processes. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        if self._launch.lifeline is not None:
            os.close(self._launch.lifeline)
            self._launch.lifeline = None
        elif self._launch.info is not None:
            self._end_sandbox()
        else:
            self._signal_group(signal.SIGKILL)

    def _end_sandbox(self) -> None:
        """Ends a sandbox. It is stopped first, so that it cannot start a process that would be overlooked: at its
        beginning bubblewrap's child does not yet die with its parent."""
        _send(self._pid, signal.SIGSTOP)
        for _ in range(TRIES):
            if state(self._pid) in STOPPED:
                break
            time.sleep(PAUSE_SECONDS)
        family = descendants(self._pid)
        for member in family:
            _send(member, signal.SIGKILL)
        # If it may go on, it reaps its child and ends. If killed, it would leave that to the machine's first process.
        _send(self._pid, signal.SIGCONT if family else signal.SIGKILL)

    def _members(self) -> list[int]:
        """Returns the processes to stop, without the launcher: it must be able to clean up when Duckflow dies."""
        return [*([self._pid] if self._launch.lifeline is None else []), *sorted(descendants(self._pid))]

    def _signal_group(self, number: int) -> bool:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
            return True
        return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)

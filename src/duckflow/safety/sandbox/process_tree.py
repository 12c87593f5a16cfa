"""A process and all the processes it started."""

import contextlib
import os
import signal
import time

from duckflow.safety.sandbox.launcher import descendants, state

STOPPED = frozenset("TtZX")
MOVING = frozenset("RS")
TRIES = 100
PAUSE_SECONDS = 0.0005


class ProcessTree:
    """Can be made to stand still and to go on. Seen from outside, so that a sandbox with processes of its own counts.

    The `head` may be one that must not stand still itself, because it looks after the others."""

    def __init__(self, pid: int, head_too: bool) -> None:
        self._pid = pid
        self._head_too = head_too
        self._stopped: set[int] = set()
        self._left_alone: set[int] = set()

    def stop(self) -> bool:
        """One look: stop whoever still moves. Whether there was somebody, and nobody moved; if not, look again: a
        process may have been just about to start another."""
        members = self._members()
        moving = False
        for pid in members:
            how = state(pid)
            if how == "T" and pid not in self._stopped:
                # It stood still by its own will, and is not to be woken by ours.
                self._left_alone.add(pid)
            if pid in self._left_alone:
                continue
            # One that waits for a disk, or whose first thread has ended, does not look as if it moved.
            _send(pid, signal.SIGSTOP)
            moving |= how in MOVING
            self._stopped.add(pid)
        return bool(members) and not moving

    def go_on(self) -> None:
        for pid in self._members():
            if pid in self._stopped:
                _send(pid, signal.SIGCONT)
        self._stopped.clear()
        self._left_alone.clear()

    def _members(self) -> list[int]:
        return [*([self._pid] if self._head_too else []), *sorted(descendants(self._pid))]


def end_process_tree(pid: int) -> None:
    """Kill a process and its descendants. While it stands still it cannot start one that would be overlooked:
    bubblewrap's child, at its beginning, does not yet die with its parent."""
    _send(pid, signal.SIGSTOP)
    for _ in range(TRIES):
        if state(pid) in STOPPED:
            break
        time.sleep(PAUSE_SECONDS)
    family = descendants(pid)
    for each in family:
        _send(each, signal.SIGKILL)
    # Let go, it puts its child away and ends; killed, it would leave that to whoever runs as the first process here.
    _send(pid, signal.SIGCONT if family else signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)

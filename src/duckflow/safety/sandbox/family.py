"""A process and all that came of it."""

import contextlib
import os
import signal
import time

from duckflow.safety.sandbox.launcher import descendants, state

STOPPED = frozenset("TtZX")
TRIES = 100
PAUSE_SECONDS = 0.0005


def end_family(pid: int) -> None:
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

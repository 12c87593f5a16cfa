"""The processes of an attempt, found by a mark in their environment: whoever started them may be gone."""

import asyncio
import contextlib
import os
import platform
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

MARK = "DUCKFLOW_FLEET_ATTEMPT"
"""Every process of an attempt has this in its environment, with the attempt's id; what it starts inherits it."""
PROC = Path("/proc")
LONGEST = 10.0


class SeenProcess(NamedTuple):
    """A process that could be looked at."""

    parent: int
    environment: bytes


async def end_processes(attempt_id: str) -> int:
    """Kill everything that belongs to an attempt, with all that it has started; how many there were."""
    return await asyncio.to_thread(kill_processes, attempt_id)


def end_worker(machine: str, pid: int, born: str) -> bool:
    """Kill a worker of this machine that has lost its lease but is still there: stopped, or stuck."""
    if machine != platform.node() or pid == os.getpid() or born_at(pid) != born:
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def born_at(pid: int) -> str:
    """When a process was started, empty where there is none: numbers of processes are given out again."""
    with contextlib.suppress(OSError):
        # The name, in brackets, may hold anything; the start is the 22nd field of all.
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    if PROC.joinpath("self").exists():
        return ""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def kill_processes(attempt_id: str) -> int:
    """The same, for who has no loop."""
    ended: set[int] = set()
    until = time.monotonic() + LONGEST
    # What is being started while we look is found on the next round.
    while (found := _belonging(f"{MARK}={attempt_id}".encode())) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
        time.sleep(0.02)
    return len(ended)


def _belonging(mark: bytes) -> set[int]:
    running = _processes()
    found = {pid for pid, process in running.items() if mark in process.environment.split(b"\0")}
    while more := {pid for pid, process in running.items() if process.parent in found} - found:
        found |= more
    return found - {os.getpid()}


def _processes() -> dict[int, SeenProcess]:
    if not PROC.joinpath("self").exists():
        return _processes_by_ps()
    seen: dict[int, SeenProcess] = {}
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (PROC / entry.name / "stat").read_text().rpartition(")")[2].split()[:2]
                # A zombie has nothing left that could be ended.
                if state != "Z":
                    seen[int(entry.name)] = SeenProcess(int(parent), (PROC / entry.name / "environ").read_bytes())
    return seen


def _processes_by_ps() -> dict[int, SeenProcess]:
    """Where there is no /proc (macOS). What stands between spaces is taken for a variable."""
    listed = subprocess.run(["ps", "axeww", "-o", "pid=,ppid=,command="], capture_output=True, check=False).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return {int(row[0]): SeenProcess(int(row[1]), row[2].replace(b" ", b"\0")) for row in rows if len(row) == 3}

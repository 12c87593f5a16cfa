"""How much a command may take of the machine: processes, memory, disk. Looked at while it runs."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

from duckflow.programs.launch import Limits
from duckflow.programs.launcher import descendants

MIB = 1024 * 1024
FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.2, 1.0
SHARE_OF_MEMORY = 0.9


class Overrun(NamedTuple):
    """A limit that was passed: `too_many_processes`, `too_much_memory` or `disk_full`."""

    kind: str
    limit: int


class LimitWatch:
    """Looks at a command until it has `ended`, and calls `end` when it takes too much; `overrun` says of what."""

    def __init__(
        self, limits: Limits, folder: Path, pid: int, ended: Callable[[], bool], end: Callable[[], Awaitable[bool]]
    ) -> None:
        self.overrun: Overrun | None = None
        self._limits = limits
        self._folder = folder
        self._pid = pid
        self._ended = ended
        self._end = end
        self._memory = limits.memory_mib * MIB or int(_machine_memory() * SHARE_OF_MEMORY)
        self._watches_disk = _free(folder) > limits.free_mib * MIB
        """A disk that was full before is not the command's doing."""
        if sys.platform == "linux":
            self._task = asyncio.create_task(self._watch(), name="limits")

    def _restrict(self) -> None:
        """By the kernel as well, where it does: for all processes of an ordinary user together, and for each file."""
        import resource

        most = len(_own_processes()) + self._limits.processes
        limits = ((resource.RLIMIT_NPROC, most), (resource.RLIMIT_FSIZE, self._limits.file_mib * MIB))
        # It runs already, and so may what sets up its sandbox; whatever they start has their limits.
        for pid in (self._pid, *descendants(self._pid)):
            for what, limit in limits:
                with contextlib.suppress(OSError, ValueError):
                    _, highest = resource.prlimit(pid, what)
                    limit = limit if highest == resource.RLIM_INFINITY else min(limit, highest)
                    resource.prlimit(pid, what, (limit, limit))

    async def _watch(self) -> None:
        for seconds in chain((0, FIRST_LOOK_SECONDS), repeat(LOOK_SECONDS)):
            await asyncio.sleep(seconds)
            if seconds < LOOK_SECONDS:
                # At the beginning it may just have been starting what sets up its sandbox.
                await asyncio.to_thread(self._restrict)
            if self._ended():
                return
            self.overrun = await asyncio.to_thread(self._look)
            if self.overrun:
                await self._end()
                return

    def _look(self) -> Overrun | None:
        family = descendants(self._pid)
        most = self._limits.processes
        if len(family) > most:
            return Overrun("too_many_processes", most)
        # Memory that several share counts once; to find that out takes long, so it is only done where it matters.
        if _memory(family) > self._memory and _memory(family, fairly=True) > self._memory:
            return Overrun("too_much_memory", self._memory // MIB)
        if self._watches_disk and _free(self._folder) < self._limits.free_mib * MIB:
            return Overrun("disk_full", self._limits.free_mib)
        return None


def _memory(family: Iterable[int], fairly: bool = False) -> int:
    return sum(_fair_share(pid) if fairly else _own_pages(pid) for pid in family)


def _own_pages(pid: int) -> int:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")


def _fair_share(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _own_pages(pid)


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")


def _own_processes() -> list[str]:
    """Threads count like processes."""
    found: list[str] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path("/proc", name).stat().st_uid == os.getuid():
                found += os.listdir(f"/proc/{name}/task")
    return found


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0

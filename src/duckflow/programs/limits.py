"""Limits on a command's share of the machine (processes, memory, disk), checked while the command runs."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

from duckflow.programs.launch import MIB, Launch, Limits
from duckflow.programs.launcher import descendants

FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.2, 1.0
BLOCK = 512
FIRST_FILES = 5000


class Overrun(NamedTuple):
    """A limit that was passed: `too_many_processes`, `too_much_memory`, `too_much_temporary` or `disk_full`."""

    kind: str
    limit: int


class LimitWatch:
    """Watches a command until it has `ended`, and calls `end` when the command takes too much. `overrun` names the
    limit that was passed."""

    def __init__(
        self, limits: Limits, launch: Launch, pid: int, ended: Callable[[], bool], end: Callable[[], Awaitable[bool]]
    ) -> None:
        self.overrun: Overrun | None = None
        self._limits = limits
        self._pid = pid
        self._ended = ended
        self._end = end
        self._temporary = launch.temporary
        self._disks = {path: _free(path) for path in (launch.folder, launch.temporary) if path}
        """The space that was free at the beginning. The command is not blamed for a disk that was full before."""
        if sys.platform == "linux":
            self._task = asyncio.create_task(self._watch(), name="limits")

    def _restrict(self) -> None:
        """Sets the kernel's own limits as well: for all processes of an ordinary user together, and for each file."""
        import resource

        most_processes = len(_own_processes()) + self._limits.processes
        limits = ((resource.RLIMIT_NPROC, most_processes), (resource.RLIMIT_FSIZE, self._limits.file_mib * MIB))
        # The command runs already, and so may the programs that set up its sandbox; their children inherit the limits.
        for pid in (self._pid, *descendants(self._pid)):
            for limit_kind, limit in limits:
                with contextlib.suppress(OSError, ValueError):
                    _, hard_limit = resource.prlimit(pid, limit_kind)
                    limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
                    resource.prlimit(pid, limit_kind, (limit, limit))

    async def _watch(self) -> None:
        for seconds in chain((0, FIRST_LOOK_SECONDS), repeat(LOOK_SECONDS)):
            await asyncio.sleep(seconds)
            if seconds < LOOK_SECONDS:
                # At the beginning the command may still have been starting the programs that set up its sandbox.
                await asyncio.to_thread(self._restrict)
            if self._ended():
                return
            self.overrun = await asyncio.to_thread(self._look)
            if self.overrun:
                await self._end()
                return

    def _look(self) -> Overrun | None:
        family = descendants(self._pid)
        most_processes = self._limits.processes
        if len(family) > most_processes:
            return Overrun("too_many_processes", most_processes)
        memory = self._limits.memory_bytes()
        # A program without a sandbox is the first process itself.
        family = {self._pid, *family}
        in_files = _unnamed_files(family)
        # Shared memory should count once. Finding that out takes long, so it is only done where it matters.
        if sum(map(_resident, family)) + in_files > memory and sum(map(_fair_share, family)) + in_files > memory:
            return Overrun("too_much_memory", memory // MIB)
        for path, free_before in self._disks.items():
            if (free_bytes := _free(path)) < self._limits.free_mib * MIB < free_before:
                return Overrun("disk_full", self._limits.free_mib)
            limit = self._limits.temporary_mib * MIB
            if path == self._temporary and _size_of(path, thoroughly=free_before - free_bytes > limit) > limit:
                return Overrun("too_much_temporary", self._limits.temporary_mib)
        return None


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _fair_share(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)


def _unnamed_files(family: Iterable[int]) -> int:
    """Returns the memory in files without a name (`memfd_create`), which belongs to no process until it is mapped."""
    sizes: dict[int, int] = {}
    for pid in family:
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()).startswith("/memfd:"):
                        file_stat = handle.stat()
                        sizes[file_stat.st_ino] = file_stat.st_blocks * BLOCK
    return sum(sizes.values())


def _size_of(folder: Path, thoroughly: bool) -> int:
    """Returns the size of the files in the folder. Unless `thoroughly`, only the first files are counted, to save
    time."""
    blocks, entry_count, waiting_folders = 0, 0, [os.fspath(folder)]
    while waiting_folders and (thoroughly or entry_count < FIRST_FILES):
        with contextlib.suppress(OSError), os.scandir(waiting_folders.pop()) as entries:
            for entry in entries:
                entry_count += 1
                with contextlib.suppress(OSError):
                    blocks += entry.stat(follow_symlinks=False).st_blocks
                    if entry.is_dir(follow_symlinks=False):
                        waiting_folders.append(entry.path)
    return blocks * BLOCK


def _own_processes() -> list[str]:
    """Returns the user's processes. Each thread counts as a process."""
    tasks: list[str] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path("/proc", name).stat().st_uid == os.getuid():
                tasks += os.listdir(f"/proc/{name}/task")
    return tasks


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0

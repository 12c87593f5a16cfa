"""The Duckflow process of an attempt: in a group of its own, reached by its socket as `duckflow attach` does."""

import asyncio
import contextlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from duckflow.allowance import ADDRESS, CallUsed, CallWanted
from duckflow.clock import PausableTimeout
from duckflow.errors import BudgetSpent, DuckflowError
from duckflow.fleet.task import Desk
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.remote.conversation import RemoteConversation
from duckflow.state.phrase import said, say

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


@cache
def this_machine() -> str:
    """The name of the machine, and what tells this very system and its processes from others of that name."""
    with contextlib.suppress(OSError):
        running = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {running} {(PROC / 'self/ns/pid').readlink()}"
    asked = subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
    return f"{platform.node()} {asked.stdout.strip()}"


def has_gone(machine: str, pid: int, born: str) -> bool:
    """Whether a process is known to be no more. Of other machines nobody here knows."""
    return machine == this_machine() and born_at(pid) != born


def end_worker(machine: str, pid: int, born: str) -> bool:
    """Kill a worker of this machine that has lost its lease but is still there: stopped, or stuck."""
    if machine != this_machine() or pid == os.getpid() or born_at(pid) != born:
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def born_at(pid: int) -> str:
    """When a process was started, empty where there is none: numbers of processes are given out again."""
    with contextlib.suppress(OSError):
        # The name, in brackets, may hold anything; the start is the 22nd field of all. A zombie has ended.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
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


START_SECONDS = 60.0
LOOK_SECONDS = 0.05
END_SECONDS = 3.0
LONGEST_REASON = 400


class HostCall(NamedTuple):
    """How it is started, and where it can be reached then."""

    command: Sequence[str]
    socket: Path
    session_id: str
    cleaning: Sequence[str] = ()
    """Removes what of it outlives its processes."""


class Host:
    """Started by `open`; it does not outlive this process, which holds its stdin."""

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes], call: HostCall) -> None:
        self._process = process
        self._errors = errors
        self._call = call
        self.conversation = RemoteConversation(call.socket)

    @classmethod
    async def open(cls, call: HostCall, folder: Path, marks: Mapping[str, str]) -> "Host":
        await _clean(call)
        handle, name = tempfile.mkstemp()
        Path(name).unlink()
        errors = os.fdopen(handle, "w+b")
        launch = Launch(call.command, folder, {**os.environ, **marks})
        process = await launch.spawn(asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL, errors)
        host = cls(process, errors, call)
        try:
            await host._reach()
        except BaseException:
            await host.end()
            raise
        return host

    async def end(self) -> None:
        """The whole group. Asked first: it ends its commands and closes its record."""
        with contextlib.suppress(DuckflowError, OSError):
            await self.conversation.aclose()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._process.wait()
                    break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await _clean(self._call)
        self._call.socket.unlink(missing_ok=True)
        self._errors.close()

    async def _reach(self) -> None:
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if self._call.socket.exists():
                    await self.conversation.attach()
                    return
            if self._process.returncode is not None or time.monotonic() > until:
                raise DuckflowError("fleet.no_start", reason=self._reason())
            await asyncio.sleep(LOOK_SECONDS)

    def _reason(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace").strip()[-LONGEST_REASON:] or "–"


async def _clean(call: HostCall) -> None:
    """Also before a start: a worker that died could not."""
    if call.cleaning:
        await collect(Launch(call.cleaning, Path("/"), os.environ))


@contextlib.asynccontextmanager
async def granting(desk: Desk, clock: PausableTimeout) -> AsyncGenerator[dict[str, str]]:
    """A socket where the processes of one attempt ask before they call a model; what they need in their environment.
    Time stands still for the attempt while a call waits."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wanted = CallWanted.model_validate_json(await reader.readline())
            with clock.standing_still():
                call = await desk.allow(wanted)
        except BudgetSpent as refused:
            writer.write(said(refused).model_dump_json().encode() + b"\n")
        except Exception as problem:
            broke = say("fleet.broke", reason=f"{type(problem).__name__}: {problem}")
            writer.write(broke.model_dump_json().encode() + b"\n")
        else:
            writer.write(b"\n")
            line = await reader.readline()
            await desk.used(call, CallUsed.model_validate_json(line) if line else None)
        finally:
            writer.close()

    folder = Path(tempfile.mkdtemp(prefix="duckflow-"))
    server = await asyncio.start_unix_server(serve, folder / "calls")
    try:
        yield {ADDRESS: str(folder / "calls")}
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)

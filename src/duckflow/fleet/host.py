"""The Duckflow process of an attempt. It has its own process group and is reached by a socket, as with `attach`."""

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
from duckflow.fleet.task import AttemptPort
from duckflow.programs.find import MAIN_REPOSITORY, environment_outside
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.remote.conversation import RemoteConversation
from duckflow.state.data import said, say

MARK = "DUCKFLOW_FLEET_ATTEMPT"
"""Environment variable with the attempt's id. All processes of the attempt have it, and their children inherit it."""
PROC = Path("/proc")
LONGEST = 10.0


class SeenProcess(NamedTuple):
    """A running process: its parent's pid and its environment."""

    parent: int
    environment: bytes


async def end_processes(attempt_id: str) -> None:
    """Kills all processes of an attempt and their children."""
    await asyncio.to_thread(kill_processes, attempt_id)


@cache
def this_machine() -> str:
    """Returns the machine's name with an id of this boot and process namespace: names and pids alone are not unique."""
    with contextlib.suppress(OSError):
        boot_id = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {boot_id} {(PROC / 'self/ns/pid').readlink()}"
    sysctl_run = subprocess.run(
        ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False
    )
    return f"{platform.node()} {sysctl_run.stdout.strip()}"


def has_gone(machine: str, pid: int, born: str) -> bool:
    """Says whether a process is known to be gone. Processes of other machines are never known to be gone."""
    return machine == this_machine() and born_at(pid) != born


def end_worker(machine: str, pid: int, born: str) -> None:
    """Kills a worker of this machine that has lost its lease but still exists, stopped or stuck."""
    if machine == this_machine() and pid != os.getpid() and born_at(pid) == born:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def born_at(pid: int) -> str:
    """Returns the start time of a process, or an empty text if there is none. A reused pid has another start time."""
    with contextlib.suppress(OSError):
        # The process's name, in brackets, may hold anything. The start time is the 22nd field. A zombie has ended.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    if PROC.joinpath("self").exists():
        return ""
    ps_run = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return ps_run.stdout.strip()


def kill_processes(attempt_id: str) -> None:
    """Does the same as `end_processes`, for callers without an event loop."""
    end_time = time.monotonic() + LONGEST
    # Processes that are started during a round are found in the next one.
    while (pids := _belonging(f"{MARK}={attempt_id}".encode())) and time.monotonic() < end_time:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _belonging(mark: bytes) -> set[int]:
    processes = _processes()
    pids = {pid for pid, process in processes.items() if mark in process.environment.split(b"\0")}
    while children := {pid for pid, process in processes.items() if process.parent in pids} - pids:
        pids |= children
    return pids - {os.getpid()}


def _processes() -> dict[int, SeenProcess]:
    if not PROC.joinpath("self").exists():
        return _processes_by_ps()
    processes: dict[int, SeenProcess] = {}
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state_letter, parent = (PROC / entry.name / "stat").read_text().rpartition(")")[2].split()[:2]
                # A zombie has ended already.
                if state_letter != "Z":
                    processes[int(entry.name)] = SeenProcess(int(parent), (PROC / entry.name / "environ").read_bytes())
    return processes


def _processes_by_ps() -> dict[int, SeenProcess]:
    """Lists processes where there is no /proc (macOS). Every word of a line is taken for a variable."""
    ps_output = subprocess.run(
        ["/bin/ps", "axeww", "-o", "pid=,ppid=,command="], capture_output=True, check=False
    ).stdout
    rows = (line.split(None, 2) for line in ps_output.splitlines())
    return {int(row[0]): SeenProcess(int(row[1]), row[2].replace(b" ", b"\0")) for row in rows if len(row) == 3}


START_SECONDS = 60.0
LOOK_SECONDS = 0.05
END_SECONDS = 3.0
LONGEST_REASON = 400


class HostCall(NamedTuple):
    """The command that starts the process, and the socket on which the process can be reached."""

    command: Sequence[str]
    socket: Path
    session_id: str
    cleaning: Sequence[str] = ()
    """A command that removes leftovers, such as a container, that outlive the processes."""


class Host:
    """A Duckflow process started by `open`. It ends when this process ends, because this process holds its stdin."""

    def __init__(
        self, process: asyncio.subprocess.Process, errors: IO[bytes], call: HostCall, outer: Mapping[str, str]
    ) -> None:
        """`outer` is the environment for an engine of containers."""
        self._process = process
        self._errors = errors
        self._call = call
        self._outer = outer
        self.conversation = RemoteConversation(call.socket)

    @classmethod
    async def open(cls, call: HostCall, folder: Path, marks: Mapping[str, str]) -> "Host":
        # An engine of containers starts programs by their names; a Duckflow process leaves PATH to its commands.
        outer_environment = environment_outside(folder, marks.get(MAIN_REPOSITORY, ""))
        await _clean(call, outer_environment)
        handle, name = tempfile.mkstemp()
        Path(name).unlink()
        error_file = os.fdopen(handle, "w+b")
        environment = outer_environment if call.cleaning else os.environ
        launch = Launch(call.command, folder, {**environment, **marks})
        process = await launch.spawn(asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL, error_file)
        host = cls(process, error_file, call, outer_environment)
        try:
            await host._reach()
        except BaseException:
            await host.end()
            raise
        return host

    async def end(self) -> None:
        """Ends the whole process group. First it is asked, so that it can end its commands and close its journal."""
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
        await _clean(self._call, self._outer)
        self._call.socket.unlink(missing_ok=True)
        self._errors.close()

    async def _reach(self) -> None:
        end_time = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if self._call.socket.exists():
                    await self.conversation.attach()
                    return
            if self._process.returncode is not None or time.monotonic() > end_time:
                raise DuckflowError("fleet.no_start", reason=self._reason())
            await asyncio.sleep(LOOK_SECONDS)

    def _reason(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace").strip()[-LONGEST_REASON:] or "–"


async def _clean(call: HostCall, environment: Mapping[str, str]) -> None:
    """Removes leftovers. This also happens before a start, because a worker that died could not do it."""
    if call.cleaning:
        await collect(Launch(call.cleaning, Path("/"), environment))


@contextlib.asynccontextmanager
async def granting(link: AttemptPort, clock: PausableTimeout) -> AsyncGenerator[dict[str, str]]:
    """Opens a socket where the processes of an attempt ask before they call a model, and yields the environment
    variables that they need. The attempt's clock stands still while a call waits."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wanted_call = CallWanted.model_validate_json(await reader.readline())
            with clock.standing_still():
                call = await link.allow(wanted_call)
        except BudgetSpent as refused:
            writer.write(said(refused).model_dump_json().encode() + b"\n")
        except Exception as problem:
            problem_phrase = say("fleet.broke", reason=f"{type(problem).__name__}: {problem}")
            writer.write(problem_phrase.model_dump_json().encode() + b"\n")
        else:
            writer.write(b"\n")
            line = await reader.readline()
            await link.used(call, CallUsed.model_validate_json(line) if line else None)
        finally:
            writer.close()

    folder = Path(tempfile.mkdtemp(prefix="duckflow-"))
    server = await asyncio.start_unix_server(serve, folder / "calls")
    try:
        yield {ADDRESS: str(folder / "calls")}
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)

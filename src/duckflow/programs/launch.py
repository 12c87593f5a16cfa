"""The launch of one program: its command, folder, environment, and limits."""

import asyncio
import contextlib
import marshal
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

from duckflow.programs.find import find_program

# The launcher is imported as a module and not run as a script, so that Python keeps it compiled.
START = "import sys; sys.path.append(sys.argv[1]); import launcher; launcher.main(int(sys.argv[2]), int(sys.argv[3]))"
HERE = str(Path(__file__).parent)
UNRESTRICTED = (0, 0, 0)
AT_ONCE = 64 * 1024
MIB = 1024 * 1024
SHARE_OF_MEMORY = 0.9
SCOPE = ("--user", "--scope", "--quiet", "--collect")
RUNTIME = "XDG_RUNTIME_DIR"
MANAGER_SECONDS = 2.0
TASKS_OF_SANDBOX = 8

Stream = int | IO[bytes]


def nothing() -> tuple[str, ...]:
    return ()


class Limits(NamedTuple):
    """Limits for all processes of a command together. `file_mib` is for each file that the command writes."""

    processes: int
    memory_mib: int
    """The memory in MiB that the command may use; 0 means nine tenths of the machine's memory."""
    file_mib: int
    free_mib: int
    """The space that must stay free on the disks of the command's folder and of its temporary files."""
    temporary_mib: int
    """The space in MiB for the temporary files that the command leaves."""

    def memory_bytes(self) -> int:
        machine_memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        return self.memory_mib * MIB or int(machine_memory * SHARE_OF_MEMORY)


@dataclass
class Launch:
    """A program to start: `argv` runs in `folder` with exactly this environment. A sandbox turns a launch into another
    one, which starts the same program where it can do no harm."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    limits: Limits | None = None
    temporary: Path | None = None
    """The folder of the program's temporary files, as a path outside of the sandbox."""
    leaves_rest: bool = False
    """True if processes that the program has started and left behind continue after its end."""
    fds: tuple[int, ...] = ()
    """Open files that the program inherits."""
    meddled: Callable[[], tuple[str, ...]] = nothing
    """A function to call at the end. It returns those files changed by the command that make git run programs."""
    info: int | None = None
    """The file in which bubblewrap names its first process."""
    lifeline: int | None = None
    """The end of a pipe. Closing it ends all processes that the launcher looks after."""

    def __post_init__(self) -> None:
        self.takes_along = self.info is not None or self.lifeline is not None
        """True if all processes of the command end with it, even those that left its process group."""

    async def spawn(self, stdin: Stream, stdout: Stream, stderr: Stream) -> asyncio.subprocess.Process:
        """Starts the program in a session of its own, so that Ctrl+C at the terminal reaches only Duckflow. If the
        start fails, the launch is closed."""
        try:
            argv, environment = self.argv, self.environment
            if self.limits:
                argv, environment = await asyncio.to_thread(self._in_scope, self.limits)
            child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                limit=AT_ONCE,
                pass_fds=self.fds,
                cwd=self.folder,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            self.close()
            raise
        self.started()
        return child

    def _in_scope(self, limits: Limits) -> tuple[Sequence[str], Mapping[str, str]]:
        """Returns the command and its environment. If the user's systemd can make a control group, the command runs in
        one. The kernel then counts all its processes and their memory from the beginning."""
        runtime = os.environ.get(RUNTIME, f"/run/user/{os.getuid()}")
        if sys.platform != "linux" or not Path(runtime, "systemd/private").exists():
            return self.argv, self.environment
        program, env_program = (find_program(name, self.folder) for name in ("systemd-run", "env"))
        if program is None or env_program is None or not _makes_scopes(program, runtime):
            return self.argv, self.environment
        tasks, memory = limits.processes + TASKS_OF_SANDBOX, limits.memory_bytes()
        scope_limits = {"TasksMax": tasks, "MemoryMax": memory, "MemorySwapMax": 0}
        properties = (f"--property={name}={value}" for name, value in scope_limits.items())
        unset_runtime = () if RUNTIME in self.environment else (env_program, "-u", RUNTIME)
        return (program, *SCOPE, *properties, "--", *unset_runtime, *self.argv), {**self.environment, RUNTIME: runtime}

    def started(self) -> None:
        """Closes the files of which the child process has copies of its own by now."""
        close_all(self.fds)
        self.fds = ()

    def close(self) -> None:
        self.started()
        close_all(fd for fd in (self.info, self.lifeline) if fd is not None)
        self.info = self.lifeline = None


@lru_cache(4)
def _makes_scopes(program: str, runtime: str) -> bool:
    """Says whether systemd can make control groups here. That is tried once, as systemd may be installed without
    running."""
    command = (program, *SCOPE, "--property=TasksMax=100", "--", "true")
    environment, null_device = {"PATH": os.defpath, RUNTIME: runtime}, subprocess.DEVNULL
    try:
        code = subprocess.call(
            command, env=environment, stdin=null_device, stdout=null_device, stderr=null_device, timeout=MANAGER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return code == 0


def on_lifeline(
    launch: Launch,
    patience: float = 0.0,
    handled: tuple[int, int, int] = UNRESTRICTED,
    rules: Sequence[tuple[int, str]] = (),
    program: bytes = b"",
) -> Launch:
    """Returns a launch of the same program through the launcher, which ends all its processes when the lifeline is
    closed. With `patience`, the processes are first asked to end, and get that many seconds. The other arguments say
    how Landlock and seccomp restrict the program."""
    orders_fd = _orders_file()
    order_bytes = memoryview(marshal.dumps((list(launch.argv), patience, handled, list(rules), program)))
    while order_bytes:
        order_bytes = order_bytes[os.write(orders_fd, order_bytes) :]
    os.lseek(orders_fd, 0, os.SEEK_SET)
    read_end, write_end = os.pipe()
    argv = (sys.executable, "-I", "-S", "-c", START, HERE, str(orders_fd), str(read_end))
    return replace(launch, argv=argv, fds=(*launch.fds, orders_fd, read_end), lifeline=write_end)


def _orders_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("orders")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)

"""Runs and ends one process together with all processes that it starts."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Sequence

from duckflow.programs.launch import Launch, Stream
from duckflow.programs.launcher import descendants, state
from duckflow.programs.limits import LimitWatch, Overrun

CHILD = re.compile(rb'"child-pid"\s*:\s*(\d+)')
STOPPED = frozenset("TtZX")
MOVING = frozenset("RS")
TRIES = 1000
"""The most times that Duckflow looks whether a process that was told to stand still does so. On a busy machine the
process may not run for a while, not even to stop."""
PAUSE_SECONDS = 0.0005


class ProcessTree:
    """The processes of a command seen from outside, so that processes inside a sandbox count. `pid` is the process that
    was spawned."""

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
        """Stops every process that still moves, in one look. Returns True if there were processes and none of them
        moved. If not, the caller looks again: a process may have been just about to start another."""
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
        """Ends a sandbox. Stops it first, so that it cannot start a process that would be overlooked: right after the
        start of bubblewrap, its child does not yet die with it."""
        _send(self._pid, signal.SIGSTOP)
        for _ in range(TRIES):
            if state(self._pid) in STOPPED:
                break
            time.sleep(PAUSE_SECONDS)
        family_pids = descendants(self._pid)
        for member_pid in family_pids:
            _send(member_pid, signal.SIGKILL)
        # If bubblewrap may go on, it reaps its child and ends. If killed, it would leave that to the first process.
        _send(self._pid, signal.SIGCONT if family_pids else signal.SIGKILL)

    def _members(self) -> list[int]:
        """Returns the processes to stop. The launcher is left out, because it must be able to clean up when Duckflow
        dies."""
        return [*([self._pid] if self._launch.lifeline is None else []), *sorted(descendants(self._pid))]

    def _signal_group(self, number: int) -> bool:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
            return True
        return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


log = logging.getLogger(__name__)

READ_AT_ONCE = 64 * 1024
PATIENCE_SECONDS = 5.0
REST_SECONDS = 0.5
"""The most seconds by which processes that were left behind can delay the end of the output."""
LOOK_AGAIN_SECONDS = 0.02
LOOKS = 100
CALM_LOOKS = 2

Take = Callable[[bytes], None]


class Process:
    """A process, started by `start`. It ends by itself (`wait`) or is ended (`end`). Either way none of its processes
    is left, unless the launch allows that."""

    def __init__(self, launch: Launch, child: asyncio.subprocess.Process, pipes: "Sequence[Pipe]") -> None:
        self._launch = launch
        self._tree = ProcessTree(launch, child.pid)
        self._child = child
        self._pipes = pipes
        self._settled = False
        self._stopped = 0.0
        self._watch: LimitWatch | None = None
        if launch.limits:
            self._watch = LimitWatch(launch.limits, launch, child.pid, self._has_ended, self.end)
        self.stood_seconds = 0.0
        """The seconds in which the process was made to stand still, all together."""
        self.gone = False
        """True if it is certain that no process of the command is left."""
        self.meddled: tuple[str, ...] = ()
        """Files that make git run programs and that changed while the command ran. They are known only at the end."""

    @classmethod
    async def start(
        cls, launch: Launch, take: Take, take_errors: Take | None = None, stdin_data: bytes = b""
    ) -> "Process":
        """Starts the process. All its output, on both streams, goes to `take` in order, unless `take_errors` takes the
        errors. The process reads `stdin_data`. The launch is closed if the start fails."""
        spawn_task = asyncio.ensure_future(cls._spawn(launch, take, take_errors, stdin_data))
        try:
            # asyncio would answer a cancellation by killing the one process it knows of, and other processes would live
            # on.
            return await asyncio.shield(spawn_task)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, ValueError):
                await (await spawn_task).end()
            raise

    @classmethod
    async def _spawn(cls, launch: Launch, take: Take, take_errors: Take | None, stdin_data: bytes) -> "Process":
        # The pipes are our own: asyncio would wait for whatever still holds its pipes after the program has ended.
        pipes = [Pipe(take)] + ([Pipe(take_errors)] if take_errors else [])
        try:
            with _source_of(stdin_data) as stdin:
                child = await launch.spawn(stdin, pipes[0].end, pipes[-1].end)
        except BaseException:
            for pipe in pipes:
                pipe.close()
            raise
        for pipe in pipes:
            pipe.started()
        return cls(launch, child, pipes)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while the process runs."""
        code = self._child.returncode
        return 128 - code if code is not None and code < 0 else code

    @property
    def overrun(self) -> Overrun | None:
        """The limit that the process passed, for which it was ended; None if it passed none."""
        return self._watch.overrun if self._watch else None

    async def wait(self) -> int:
        """Returns the exit code, once all output is taken and the last process is gone."""
        await self._child.wait()
        await self._settle()
        return self.code or 0

    async def stop(self) -> bool:
        """Makes all processes of the command stand still until `go_on`. Says whether they do."""
        self._stopped, calm_look_count = time.monotonic(), 0
        for _ in range(LOOKS):
            if not self._stopped or self._child.returncode is not None:
                return True
            calm_look_count = calm_look_count + 1 if self._tree.stop() else 0
            if calm_look_count == CALM_LOOKS:
                return True
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        log.warning("process %d could not be stopped", self._child.pid)
        return False

    def go_on(self) -> None:
        if self._stopped:
            self.stood_seconds += time.monotonic() - self._stopped
        self._stopped = 0.0
        if self._child.returncode is None:
            self._tree.go_on()

    async def end(self) -> bool:
        """Kills all processes that are left of the command. Says whether it is certain that none remains."""
        self._stopped = 0.0
        if self._child.returncode is None:
            self._tree.end()
        try:
            await asyncio.wait_for(self._child.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            log.warning("process %d did not end", self._child.pid)
            with contextlib.suppress(ProcessLookupError):
                self._child.kill()
            return False
        return await self._settle()

    async def _settle(self) -> bool:
        if self.gone:
            return True
        if not self._launch.takes_along and not self._launch.leaves_rest:
            # Nobody else ends the processes that the command left behind, so at least its group is ended here.
            self._tree.end()
        first_process = self._tree.first_process()
        is_gone = first_process is None or await _gone(first_process)
        patience = REST_SECONDS if self._launch.leaves_rest else PATIENCE_SECONDS
        drained_pipes = [await pipe.drained(patience) for pipe in self._pipes]
        if not self._settled:
            self._settled = True
            try:
                # New packs of git are read through for this, which may take a while.
                self.meddled = await asyncio.to_thread(self._launch.meddled)
            finally:
                self._launch.close()
        self.gone = is_gone and all(drained_pipes)
        return self.gone

    def _has_ended(self) -> bool:
        return self._child.returncode is not None


class Pipe:
    """A pipe for a command's output. It is read one piece at a time, so that other tasks get a turn."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._start, self.end = os.pipe()
        os.set_blocking(self._start, False)
        self._loop.add_reader(self._start, self._read)

    def started(self) -> None:
        """Closes our copy of the write end. The command has its own copy: when that is closed, no more output will
        come."""
        os.close(self.end)
        self.end = -1

    async def drained(self, seconds: float) -> bool:
        """Says whether all output was read. Some is missing if a process that cannot be ended still holds the pipe."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            self.close()
            return False
        return True

    def close(self) -> None:
        if self.end >= 0:
            self.started()
        if not self._ended.is_set():
            self._loop.remove_reader(self._start)
            os.close(self._start)
            self._ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._start, READ_AT_ONCE)
        except BlockingIOError:
            return
        if data:
            self._take(data)
        else:
            self.close()


async def _gone(pid: int) -> bool:
    """Waits a moment for the end of a process, and returns True if it has ended. The first process of a sandbox is the
    one to wait for, because the kernel ends it last."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return True
    loop = asyncio.get_running_loop()
    end_event = asyncio.Event()
    loop.add_reader(handle, end_event.set)
    try:
        await asyncio.wait_for(end_event.wait(), PATIENCE_SECONDS)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return True


@contextlib.contextmanager
def _source_of(data: bytes) -> Generator[Stream]:
    """Puts the input into a file instead of a pipe, so that nobody has to keep writing while the program reads."""
    if not data:
        yield asyncio.subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file

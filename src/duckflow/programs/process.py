"""One process with everything it starts."""

import asyncio
import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence

from duckflow.programs.launch import Launch, Stream
from duckflow.programs.limits import LimitWatch, Overrun
from duckflow.programs.tree import ProcessTree

log = logging.getLogger(__name__)

READ_AT_ONCE = 64 * 1024
PATIENCE_SECONDS = 5.0
REST_SECONDS = 0.5
"""Seconds that processes which may go on can delay the end of the output."""
LOOK_AGAIN_SECONDS = 0.02
LOOKS = 100
CALM_LOOKS = 2

Take = Callable[[bytes], None]


class Process:
    """A process, started by `start`. It ends by itself (`wait`) or is ended (`end`); either way nothing of it is left,
    unless the launch allows it."""

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
        """Seconds in which it was made to stand still, all together."""
        self.gone = False
        """True if it is certain that nothing of it is left."""
        self.meddled: tuple[str, ...] = ()
        """Files that make git run programs and that changed while the command ran. They are known at the end."""

    @classmethod
    async def start(
        cls, launch: Launch, take: Take, take_errors: Take | None = None, stdin_data: bytes = b""
    ) -> "Process":
        """Starts the process. Everything it prints, on both streams, goes to `take` in order, unless `take_errors`
        takes the errors. It reads `stdin_data`. The launch is closed if this fails."""
        spawn_task = asyncio.ensure_future(cls._spawn(launch, take, take_errors, stdin_data))
        try:
            # asyncio would answer a cancellation by killing the one process it knows of, and the others would live on.
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
        """The exit code; None while it runs."""
        code = self._child.returncode
        return 128 - code if code is not None and code < 0 else code

    @property
    def overrun(self) -> Overrun | None:
        """The limit for which it was ended."""
        return self._watch.overrun if self._watch else None

    async def wait(self) -> int:
        """Returns the exit code, once all its output is taken and its last process is gone."""
        await self._child.wait()
        await self._settle()
        return self.code or 0

    async def stop(self) -> bool:
        """Makes all its processes stand still until `go_on`. Says whether they do."""
        self._stopped, calm_looks = time.monotonic(), 0
        for _ in range(LOOKS):
            if not self._stopped or self._child.returncode is not None:
                return True
            calm_looks = calm_looks + 1 if self._tree.stop() else 0
            if calm_looks == CALM_LOOKS:
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
        """Kills everything that is left of it. Says whether it is certain that nothing remains."""
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
    """A pipe for a command's output. It is read one piece at a time, so that others get a turn."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._start, self.end = os.pipe()
        os.set_blocking(self._start, False)
        self._loop.add_reader(self._start, self._read)

    def started(self) -> None:
        """Closes our copy of the end. The command has its own: when that is closed, nothing more will come."""
        os.close(self.end)
        self.end = -1

    async def drained(self, seconds: float) -> bool:
        """Says whether everything was read. It was not if a process that cannot be ended still holds the pipe."""
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
    """Says whether the process ends soon. The kernel ends a sandbox's first process after all its others."""
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

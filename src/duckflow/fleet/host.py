"""The Duckflow process of an attempt: in a group of its own, reached by its socket as `duckflow attach` does."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
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

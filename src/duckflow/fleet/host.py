"""The Duckflow process of an attempt: in a group of its own, reached by its socket as `duckflow attach` does."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from duckflow.errors import DuckflowError
from duckflow.programs.launch import Launch
from duckflow.remote.conversation import RemoteConversation

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
END_SECONDS = 3.0
LONGEST_REASON = 400


class HostCall(NamedTuple):
    """How it is started, and where it can be reached then."""

    command: Sequence[str]
    socket: Path
    session_id: str


class Host:
    """Started by `open`; it does not outlive this process, which holds its stdin."""

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes], call: HostCall) -> None:
        self._process = process
        self._errors = errors
        self._call = call
        self.conversation = RemoteConversation(call.socket)

    @classmethod
    async def open(cls, call: HostCall, folder: Path, marks: Mapping[str, str]) -> "Host":
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

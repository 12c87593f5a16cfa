"""`!command`: the user's own command, in the user's own shell. Nobody asks, since the user typed it."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from duckflow.safety.sandbox.sandbox import Launch
from duckflow.tools.shell.output import CommandOutput
from duckflow.tools.shell.process import Process

HEAD, TAIL = 4000, 8000
INTERRUPTED = 130
# Nobody could answer a pager.
WITHOUT_PAGER = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True)
class Ran:
    """How it ended, and the beginning and the end of what it printed."""

    code: int
    output: str
    seconds: float


async def run_own(command: str, folder: str, show: Callable[[str, int], None]) -> Ran:
    """To its end. Cancelled, it is ended with everything it started, and that is a result too."""
    start = time.monotonic()
    output = CommandOutput(HEAD, TAIL, show)
    shell = os.environ.get("SHELL", "")
    launch = Launch((shell if shutil.which(shell) else "/bin/sh", "-c", command))
    process: Process | None = None
    try:
        process = await Process.start(launch, folder, {**os.environ, **WITHOUT_PAGER}, output.take)
        code = await process.wait()
    except asyncio.CancelledError:
        # Cancelled while it was being started, it is ended already.
        if process:
            await process.end()
        code = INTERRUPTED
    finally:
        output.take(b"", last=True)
        output.leave_screen()
    return Ran(code, output.text(), round(time.monotonic() - start, 1))

"""Lines that a search brings, and the process that brings them."""

import asyncio
import contextlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.tools.files.large import line_text

LONGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    line: int
    text: str


@dataclass(slots=True)
class Found:
    """What a search brought, and how it ended."""

    matches: list[Match] = field(default_factory=list[Match])
    more: bool = False
    timed_out: bool = False
    exit_code: int = 0


async def collect(command: Sequence[str], folder: Path, request: bytes, limit: int, seconds: float) -> Found:
    """Runs a search that prints `path NUL line : text`, takes at most `limit` matches, and ends it."""
    found = Found()
    async with _running(command, folder) as process:
        try:
            async with asyncio.timeout(seconds):
                await _send(process, request)
                async for match in _matches(process):
                    if len(found.matches) == limit:
                        found.more = True
                        return found
                    found.matches.append(match)
                found.exit_code = await process.wait()
        except TimeoutError:
            found.timed_out = True
    return found


@contextlib.asynccontextmanager
async def _running(command: Sequence[str], folder: Path) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=LONGEST
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _send(process: Process, request: bytes) -> None:
    if process.stdin:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(request)
            await process.stdin.drain()
        process.stdin.close()


async def _matches(process: Process) -> AsyncGenerator[Match]:
    if not process.stdout:
        return
    while True:
        try:
            path = await process.stdout.readuntil(b"\0")
            number, _, text = (await process.stdout.readuntil(b"\n")).partition(b":")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        if number.isdigit():
            yield Match(path[:-1].decode("utf-8", "surrogateescape").removeprefix("./"), int(number), line_text(text))

"""Runs one program to its end."""

import asyncio
from functools import partial
from typing import NamedTuple

from duckflow.programs.launch import Launch
from duckflow.programs.limits import Overrun
from duckflow.programs.process import Process, Take


class OverrunError(Exception):
    """Raised for a program that was ended because it took too much of the machine."""

    def __init__(self, overrun: Overrun) -> None:
        super().__init__(overrun.kind)
        self.overrun = overrun


class FloodError(Exception):
    """Raised for a program that was ended because it printed more than anybody reads."""


class Printed(NamedTuple):
    """The exit code of a program, and its output."""

    code: int
    out: bytes
    err: bytes


def ignore(piece: bytes) -> None:
    """Drops output that nobody wants."""


async def run(
    launch: Launch,
    take: Take,
    take_errors: Take | None = None,
    stdin_data: bytes = b"",
    seconds: float | None = None,
    enough: asyncio.Event | None = None,
) -> int:
    """Runs a program and returns its exit code. A program that takes too long (TimeoutError), takes too much
    (OverrunError) or is cancelled is ended with all processes it started. It is also ended when `enough` is set,
    because enough was printed; then the exit code does not matter."""
    process = await Process.start(launch, take, take_errors, stdin_data)
    end_task = asyncio.create_task(process.wait())
    flood_task = asyncio.create_task(enough.wait()) if enough else None
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait(
                [end_task, flood_task] if flood_task else [end_task], return_when=asyncio.FIRST_COMPLETED
            )
        if process.overrun:
            raise OverrunError(process.overrun)
        return end_task.result() if end_task.done() else 0
    finally:
        end_task.cancel()
        if flood_task:
            flood_task.cancel()
        await process.end()


async def collect(
    launch: Launch, stdin_data: bytes = b"", seconds: float | None = None, most: int | None = None
) -> Printed:
    """Runs a program and returns its output. Raises FloodError for more than `most` bytes on one stream."""
    stdout, stderr, flood_event = bytearray(), bytearray(), asyncio.Event()

    def keep(into: bytearray, piece: bytes) -> None:
        """Stores a piece of output. Pieces after too many bytes are dropped."""
        if most is None or len(into) <= most:
            into += piece
        else:
            flood_event.set()

    code = await run(launch, partial(keep, stdout), partial(keep, stderr), stdin_data, seconds, flood_event)
    if flood_event.is_set():
        raise FloodError
    return Printed(code, bytes(stdout), bytes(stderr))

"""A server that is a program on this machine: each message is a line on its streams."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable, Mapping

from duckflow.programs.launch import AT_ONCE, Launch
from duckflow.programs.process import ProcessTree
from duckflow.rpc import GONE, Message, RpcError, line_of

INHERITED = ("HOME", "PATH", "TERM", "USER", "SHELL", "LOGNAME")
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
LONGEST_LINE = 16 * 1024 * 1024
BREATH_SECONDS = 0.005
"""The pause in seconds after a large read. It lets other tasks run, and slows down a server that sends too much."""
LOG_TAIL = 2000
PATIENCE_SECONDS = 3.0


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """Replaces `${NAME}` and `${NAME:-default}` by the values of the user's variables."""
    return VARIABLE.sub(lambda match: variables.get(match[1]) or match[2] or "", text)


def unset_in(texts: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    """Returns the variables that these texts want and that have neither a value nor a default."""
    variable_matches = (match for text in texts for match in VARIABLE.finditer(text))
    return list(
        dict.fromkeys(match[1] for match in variable_matches if not variables.get(match[1]) and match[2] is None)
    )


def child_environment(environ: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that every program needs, and the variables that the server's entry names. The server sees
    no other variable of the user."""
    inherited_variables = {name: environ[name] for name in INHERITED if name in environ}
    return inherited_variables | {name: filled_in(value, environ) for name, value in named.items()}


class StdioTransport:
    """A server's process. `take` gets every line. `ended` gets the reason when the process has ended."""

    def __init__(self, take: Callable[[bytes], None], ended: Callable[[str], None]) -> None:
        self._take = take
        self._ended = ended
        self._process: asyncio.subprocess.Process | None = None
        self._launch: Launch | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._log = ""

    async def start(self, launch: Launch) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process, self._launch = await launch.spawn(pipe, pipe, pipe), launch
        self._reading = [asyncio.create_task(self._read()), asyncio.create_task(self._read_log())]

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def send(self, message: Message) -> None:
        stdin = self._process.stdin if self._process else None
        if stdin and not stdin.is_closing():
            stdin.write(line_of(message))
        # Only writing shows that the server has closed its end.
        if stdin is None or stdin.is_closing():
            raise RpcError(GONE, "the server does not listen any more")

    async def aclose(self) -> None:
        """Asks the server to end, then ends it, together with everything it started."""
        process = self._process
        if process is None or self._launch is None:
            return
        if process.stdin:
            process.stdin.close()
        ProcessTree(self._launch, process.pid).end()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._launch.close()
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def _read(self) -> None:
        """Reads line by line. A line that is longer than any real message ends the server."""
        assert self._process and self._process.stdout
        buffer = bytearray()
        end_reason = ""
        while not end_reason and (output_bytes := await self._process.stdout.read(AT_ONCE)):
            buffer += output_bytes
            *lines, unfinished_line = buffer.split(b"\n") if b"\n" in output_bytes else [buffer]
            buffer = bytearray(unfinished_line)
            for line in lines:
                self._take(bytes(line))
                await asyncio.sleep(0)
            end_reason = "it sent a line without end" if len(buffer) > LONGEST_LINE else ""
            if len(output_bytes) == AT_ONCE:
                await asyncio.sleep(BREATH_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
        self._ended(end_reason or self._cause())

    async def _read_log(self) -> None:
        assert self._process and self._process.stderr
        while log_bytes := await self._process.stderr.read(AT_ONCE):
            self._log = (self._log + log_bytes.decode("utf-8", "replace"))[-LOG_TAIL:]
            await asyncio.sleep(BREATH_SECONDS)

    def _cause(self) -> str:
        """Returns how the process ended, and the last line that it wrote to its log."""
        code = self._process.returncode if self._process else None
        lines = [line.strip() for line in self._log.splitlines() if line.strip()]
        return " · ".join([f"exit code {code}", *lines[-1:]])

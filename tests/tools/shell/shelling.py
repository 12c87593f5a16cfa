"""A shell tool on a real folder, and a look at the processes it starts."""

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

from duckflow.clock import PauseControl
from duckflow.errors import ToolError
from duckflow.safety.commands.verdict import CommandVerdict
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.tools.settings import ShellSettings
from duckflow.tools.shell.background import Background
from duckflow.tools.shell.run import ShellArgs, ShellRun
from duckflow.tools.tool import CallContext, Done


def reads(command: str) -> CommandVerdict:
    return CommandVerdict("safe" if command.startswith(("cat ", "ls")) else "ask", ())


class Shell:
    """Runs commands as the model would."""

    def __init__(self, sandbox: Sandbox, settings: ShellSettings | None = None) -> None:
        self.sandbox = sandbox
        self.background = Background()
        self.heard: list[str] = []
        settings = settings or ShellSettings()
        self.tool = ShellRun(self._find, settings, reads, self.background)
        self.call = CallContext(PauseControl(), self._hear)

    async def _find(self) -> Sandbox:
        return self.sandbox

    def _hear(self, text: str, left_out: int) -> None:
        self.heard.append(text)

    async def run(
        self, command: str, timeout: int | None = None, background: bool = False, network: bool = False
    ) -> Done:
        given = ShellArgs(command=command, timeout_seconds=timeout, background=background, network=network)
        return await self.tool.run_for(given, self.call)

    async def problem(self, command: str, timeout: int | None = None, background: bool = False) -> ToolError:
        try:
            done = await self.run(command, timeout, background)
        except ToolError as problem:
            return problem
        raise AssertionError(f"no error: {done.for_model}")


def shell_in(folder: Path, kind: str = "auto", settings: ShellSettings | None = None) -> Shell:
    return Shell(choose(SandboxSettings.model_validate({"kind": kind}), folder), settings)


class Mark:
    """An unusual number of seconds, by which a process that sleeps that long can be found among all others."""

    def __init__(self) -> None:
        self.seconds = f"{1000 + secrets.randbelow(1000)}.{secrets.randbelow(10**9)}"

    def alive(self) -> int:
        """Returns how many processes sleep that long."""
        return sum(self.seconds in command for command in _commands())

    async def appears(self, count: int) -> None:
        await until(lambda: self.alive() >= count)


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(2000):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def _commands() -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep":
            found.append(b" ".join(words).decode(errors="replace"))
    return found

"""Commands that go on in the background, such as servers and watchers."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from duckflow.programs.process import Process
from duckflow.state.checks import CheckReport


@dataclass
class BackgroundCommand:
    """A command in the background."""

    command: str
    process: Process
    output: Callable[[bool], str]
    """A function that returns the command's output so far: the beginning and the end, and the lines that say why it
    failed, if it has."""
    judge: Callable[[int, str], Awaitable[CheckReport | None]]
    """A function that judges the run by its exit code and output, and returns a report if the command is a check."""
    job_id: str = field(default_factory=lambda: f"job_{secrets.token_hex(4)}")
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.end = asyncio.create_task(self.process.wait(), name=self.job_id)

    @property
    def running(self) -> bool:
        return not self.end.done()

    def report(self) -> str:
        """Returns a report for the model on how the command ended, with its output."""
        code = self.process.code
        return f"Background {self.job_id} has ended with exit code {code}:\n{self.output(code != 0)}"

    async def check(self) -> CheckReport | None:
        code = self.process.code or 0
        return await self.judge(code, self.output(code != 0))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


class Background:
    """All commands in the background. No command outlives Duckflow: `close` ends them, or the sandbox does if `close`
    cannot."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundCommand] = {}
        self._told: set[str] = set()
        self._last: tuple[str, str] = ("", "")
        """The last command in the foreground, and its output."""

    def add(self, job: BackgroundCommand) -> None:
        self._jobs[job.job_id] = job

    def jobs(self) -> tuple[BackgroundCommand, ...]:
        return tuple(self._jobs.values())

    def running(self) -> tuple[BackgroundCommand, ...]:
        return tuple(job for job in self._jobs.values() if job.running)

    def find(self, job_id: str) -> BackgroundCommand | None:
        return self._jobs.get(job_id)

    def told(self, job: BackgroundCommand) -> None:
        """Notes that the model knows that the command has ended."""
        self._told.add(job.job_id)

    def ended(self) -> tuple[BackgroundCommand, ...]:
        """Returns the commands that have ended by themselves since the last call."""
        ended_jobs = [job for job in self._jobs.values() if not job.running and job.job_id not in self._told]
        self._told |= {job.job_id for job in ended_jobs}
        return tuple(ended_jobs)

    def better_way(self, command: str, output: str) -> str:
        """Returns advice on how to wait for a background command, if the model repeats a command and its output has not
        changed."""
        last_run, self._last = self._last, (command, output)
        if last_run != self._last or not (jobs := [job.job_id for job in self.running()]):
            return ""
        return f"Nothing new, and {', '.join(jobs)} still runs. `wait {jobs[-1]}` returns when it has ended."

    async def stop(self, job_id: str) -> bool:
        """Ends a command. Returns True if certainly no process of the command is left, also if it had already ended;
        False for an unknown id."""
        job = self._jobs.get(job_id)
        if job is None:
            return False
        self._told.add(job_id)
        has_ended = await job.process.end()
        if has_ended:
            await job.end
        return has_ended

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(job.job_id) for job in self.running()))

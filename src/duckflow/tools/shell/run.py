"""Running a shell command in the sandbox."""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field, field_validator

from duckflow.clock import PauseControl
from duckflow.errors import ToolError
from duckflow.programs.find import find_shell, path_outside
from duckflow.programs.launch import Launch, Limits
from duckflow.programs.limits import Overrun
from duckflow.programs.process import Process
from duckflow.safety.commands.verdict import CommandVerdict
from duckflow.safety.environment import GIT_ALONE, environment
from duckflow.safety.path_names import shown, shown_line
from duckflow.safety.risk import READS_SECRET, Deed, JudgedCommand
from duckflow.safety.sandbox.sandbox import Sandbox, SecretAccess
from duckflow.state.action import NO_OUTPUT
from duckflow.state.checks import CheckReport
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.question import Preview
from duckflow.tools.settings import ShellSettings
from duckflow.tools.shell.background import Background, BackgroundCommand
from duckflow.tools.shell.causes import hint, kept_from, other_ways, refused, telling_part
from duckflow.tools.shell.check_watch import CheckWatch
from duckflow.tools.shell.output import CommandOutput, without_progress
from duckflow.tools.tool import Args, CallContext, ChangeLimit, Done, Tool

Judge = Callable[[str], CommandVerdict]
SHOWN_COMMAND = 80
LONGEST_COMMAND = 2000
"""The length in characters of the longest command that is kept whole with its result."""
LOOKED_AT = r"\|\s*(?:tail|head|tee|cat|less|more)\b[^|;&\n]*$"
"""A pattern for a command whose output goes through a program that only shows it."""
CLOSED_PIPE = 141
SHOWN_CAUSE = 600
SANDBOX_BROKEN = "bwrap: "

WAITS_FOR = re.compile(r"\s*wait\s+(job_\w+)\s*")
"""The command by which the model waits for a background command. It is not a program."""


class ShellArgs(Args):
    command: str = Field(min_length=1)
    timeout_seconds: int | None = Field(default=None, ge=1)
    background: bool = False
    network: bool = False
    secrets: bool = False
    beyond_limit: bool = False

    @field_validator("command")
    @classmethod
    def _can_be_run(cls, command: str) -> str:
        if "\0" in command or not command.strip():
            raise ValueError("command must have text and no NUL character")
        return command


@dataclass
class Running:
    """A running command: its process, its output so far, and the means to pause it and to judge its checks."""

    args: ShellArgs
    process: Process
    output: CommandOutput
    writes: bool
    pause: PauseControl
    watch: CheckWatch
    limit: ChangeLimit | None
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self.started - self.process.stood_seconds, 1)

    def limit_note(self, has_failed: bool, output: str) -> str:
        """Returns the note about the limit of what the command could change, if it may have failed because of that. A
        check that fails mostly has a reason of its own, so it does not count as failed."""
        return self.limit.note if self.limit and (has_failed or refused(output)) else ""


class ShellRun(Tool[ShellArgs]):
    """Runs a command in the work folder, in the sandbox. A command that fails is a result, not an error."""

    operation = "shell.run"
    effect = "run"
    subject = ("command",)
    known_as = "Bash"
    hook_args = MappingProxyType({"command": "command", "background": "run_in_background"})
    led_in_tasks = True
    untold = frozenset({"timeout_seconds", "secrets", "beyond_limit"})
    args = ShellArgs
    _sandbox: Sandbox

    def __init__(
        self,
        find_sandbox: Callable[[], Awaitable[Sandbox]],
        settings: ShellSettings,
        judge: Judge,
        background: Background,
        secrets_allowed: Callable[[], bool] = lambda: False,
    ) -> None:
        """`secrets_allowed` says whether the user lets the commands of this project read its secret files."""
        self._find_sandbox = find_sandbox
        self._settings = settings
        self._judge = judge
        self._background = background
        self._secrets_allowed = secrets_allowed

    async def get_ready(self, calls: Sequence[Mapping[str, Any]] = ()) -> None:
        """Finds the sandbox before the first command, because most conversations need no sandbox. Commands are judged
        in a thread, since judging a long command takes time; the judge remembers its verdicts."""
        self._sandbox = await self._find_sandbox()
        for call in calls:
            await asyncio.to_thread(self._judge, str(call.get("command", "")))

    def reads_only(self, args: ShellArgs) -> bool:
        """Says whether the command only reads: it is judged safe, and the sandbox keeps it from writing."""
        return not self._writes(args) and (self._sandbox.kind != "none" or bool(WAITS_FOR.fullmatch(args.command)))

    def preview(self, args: ShellArgs) -> Preview:
        unusual_args = args.model_dump(exclude={"command"}, exclude_defaults=True)
        notes = " ".join(f"{name}={value}" for name, value in unusual_args.items())
        lines = "\n> ".join(shown_line(line) for line in args.command.split("\n"))
        return Preview(diff=f"$ {lines}" + (f"\n# {notes}" if notes else ""))

    def command(self, args: ShellArgs) -> str:
        return args.command.strip()

    def goes_on(self, args: ShellArgs) -> bool:
        return args.background

    def keeps_limits(self, args: ShellArgs) -> bool:
        """Says whether the sandbox holds the limit of a user's yes for as long as the command runs. A command in the
        background may go on when the limit is another one."""
        is_held = self._sandbox.kind != "none" and not (args.background or args.beyond_limit)
        return is_held or not self._writes(args)

    def editable(self, args: ShellArgs) -> str:
        return "command"

    def deed(self, args: ShellArgs, preview: Preview) -> Deed:
        if WAITS_FOR.fullmatch(args.command):
            return Deed("read")
        judgement = self._judge(args.command)
        network_always, is_sandboxed = self._sandbox.paths.settings.network, self._sandbox.kind != "none"
        is_fully_confined = is_sandboxed and not (args.network or network_always or args.secrets or args.background)
        command = JudgedCommand(
            judgement.verdict,
            judgement.reasons,
            sandboxed=is_sandboxed,
            network=args.network and not network_always,
            online=args.network or network_always,
            spares_packs=self._sandbox.kind == "bubblewrap",
            secrets=args.secrets and not self._secrets_allowed(),
            shut_in=is_fully_confined,
            tools=judgement.tools if is_fully_confined else (),
            leaves=judgement.leaves,
        )
        return Deed("read" if self.reads_only(args) else "run", command=command)

    def for_hooks(self, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        hook_args = super().for_hooks(args, folder)
        if isinstance(seconds := hook_args.pop("timeout_seconds", None), int):
            hook_args["timeout"] = seconds * 1000
        return hook_args

    def result_for_hooks(self, text: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}

    async def run(self, args: ShellArgs) -> Done:
        return await self.run_for(args, CallContext.alone())

    async def run_for(self, args: ShellArgs, call: CallContext) -> Done:
        await self.get_ready()
        if wait_match := WAITS_FOR.fullmatch(args.command):
            return await self._wait(wait_match[1], args, call)
        if args.background and len(self._background.running()) >= self._settings.background_jobs:
            raise self._too_many()
        running = await self._start(args, call)
        running.pause.add(running.process)
        try:
            if args.background:
                return await self._leave(running)
            return await self._finish(running)
        except BaseException:
            await running.process.end()
            raise
        finally:
            running.output.leave_screen()
            if running.process.gone:
                running.pause.drop(running.process)

    def _writes(self, args: ShellArgs) -> bool:
        if WAITS_FOR.fullmatch(args.command):
            return False
        return args.network or args.background or args.secrets or self._judge(args.command).verdict != "safe"

    def _secret_access(self, args: ShellArgs) -> SecretAccess:
        names_secret = any(reason.key == READS_SECRET for reason in self._judge(args.command).reasons)
        return _access(names_secret, args.secrets or self._secrets_allowed())

    async def _start(self, args: ShellArgs, call: CallContext) -> Running:
        may_write, settings = self._writes(args), self._settings
        output = CommandOutput(settings.head_characters, settings.tail_characters, settings.cause_characters, call.show)
        limit, paths = call.limit, self._sandbox.paths
        sandbox = self._sandbox.within(limit.names) if limit else self._sandbox
        check_watch = CheckWatch(args.command, paths.folder, paths.scratch.folder, may_write)
        launch = shell_launch(sandbox, settings, check_watch.command, args.network)
        # A command that only looks at the end of the output must not hide how the program before it ended.
        if launch.argv[0].endswith("bash") and re.search(LOOKED_AT, args.command):
            launch.argv = (launch.argv[0], "-o", "pipefail", *launch.argv[1:])
        if not may_write:
            # A command that needs no permission must use the programs of the system, not programs of the same name in
            # the folder, and not the folder's settings of git.
            outside_path = path_outside(launch.folder, launch.environment.get("PATH", os.defpath))
            launch.environment = {**launch.environment, **GIT_ALONE, "PATH": outside_path}
        confined_launch = await _confined(sandbox, launch, args.network, may_write, self._secret_access(args))
        # Where the machine itself is the sandbox, a command keeps the machine's own place for temporary files.
        reports = confined_launch.environment["TMPDIR"] if confined_launch.temporary else str(paths.scratch.folder)
        confined_launch.environment = check_watch.environment(confined_launch.environment, reports)
        process = await Process.start(confined_launch, partial(_take, output, check_watch))
        return Running(args, process, output, may_write, call.pause, check_watch, limit if may_write else None)

    async def _finish(self, running: Running) -> Done:
        limit = self._limit(running.args)
        try:
            async with asyncio.timeout(limit) as timeout:
                with running.pause.timing(timeout):
                    code = await running.process.wait()
        except TimeoutError:
            has_ended = await running.process.end()
            raise self._timed_out(running, limit, has_ended) from None
        # A program that writes on after the reader has closed the pipe has not failed.
        is_cut_short = code == CLOSED_PIPE and re.search(LOOKED_AT, running.args.command)
        return await self._result(running, 0 if is_cut_short else code)

    def _limit(self, args: ShellArgs) -> int:
        return min(args.timeout_seconds or self._settings.timeout_seconds, self._settings.longest_seconds)

    async def _wait(self, job_id: str, args: ShellArgs, call: CallContext) -> Done:
        """Waits until a background command has ended, or until the time limit."""
        job = self._background.find(job_id)
        if job is None:
            jobs = ", ".join(job.job_id for job in self._background.running()) or "-"
            raise ToolError(
                f"There is no background command {job_id}. Running: {jobs}.", "shell.no_such_job", job=shown(job_id)
            )
        limit = self._limit(args)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit) as timeout:
                with call.pause.timing(timeout):
                    await asyncio.shield(job.end)
        if job.running:
            state = f"{job_id} still runs after {limit} s of waiting. timeout_seconds sets how long to wait."
            return Done(f"{state} Output:\n{job.output(False) or '(none)'}", say("shell.still_runs", job=job_id))
        self._background.told(job)
        values = {"command": _short(job.command), "whole": _whole(job.command)}
        waited_phrase = say("shell.waited", job=job_id, code=job.process.code or 0, **values)
        return Done(job.report(), waited_phrase, check=await job.check())

    async def _leave(self, running: Running) -> Done:
        """Watches the command for a moment, then leaves it in the background."""
        try:
            async with asyncio.timeout(self._settings.first_output_seconds):
                code = await running.process.wait()
        except TimeoutError:
            job = BackgroundCommand(running.args.command, running.process, running.output.text, running.watch.judged)
            self._background.add(job)
            job.end.add_done_callback(lambda _: running.pause.drop(running.process))
            return Done(
                f"Runs in the background as {job.job_id}. It is ended when Duckflow ends. To wait for its end, run the "
                f"command `wait {job.job_id}`. Other commands reach its ports only when both have network=true. "
                f"First output:\n{running.output.text() or '(none yet)'}",
                say("shell.background", job=job.job_id, command=_short(job.command)),
            )
        return await self._result(running, code)

    async def _result(self, running: Running, code: int) -> Done:
        running.output.take(b"", last=True)
        output = running.output.text(failed=code != 0)
        if code and output.startswith(SANDBOX_BROKEN):
            raise ToolError(f"The sandbox could not be set up: {output}", "shell.sandbox_failed", reason=output)
        if overrun := running.process.overrun:
            excess = f"{overrun.kind.replace('_', ' ')}; the limit is {overrun.limit}"
            text = f"Ended after {running.seconds} s: {excess}. Do it in smaller parts. Output until then:\n{output}"
            phrase = overrun_phrase(overrun, running.args.command)
            raise ToolError(text, phrase.key, **phrase.values)
        network = running.args.network or self._sandbox.paths.settings.network
        check = await running.watch.judged(code, output)
        lines = [f"exit code {code} after {running.seconds} s", _printed(output, check) or NO_OUTPUT]
        limit_note = running.limit_note(bool(code and not check), output)
        if self._sandbox.kind != "none" and (code or limit_note):
            lines.append(hint(output, network, running.writes, limit_note))
        if self._sandbox.kind != "none" and code and self._secret_access(running.args) == "none":
            lines.append(await asyncio.to_thread(kept_from, self._sandbox))
        if code:
            plain_launch = shell_launch(self._sandbox, self._settings, "", network=False)
            lines.append(await other_ways(output, plain_launch, self._sandbox))
        if files := ", ".join(running.process.meddled):
            lines.append(f"Warning: changed while the command ran, and can change what git runs or shows: {files}")
        ended_jobs = self._background.ended()
        lines += [job.report() for job in ended_jobs]
        lines.append(self._background.better_way(running.args.command, output))
        shown_as = _shown_as(running, code, files, telling_part(output, SHOWN_CAUSE) if code else "")
        if running.watch.check and running.watch.check.hidden:
            words = running.watch.check.words
            lines.append(f"A passing check counts only when it is run by itself: `{' '.join(words)}`.")
        # A background command whose end is reported here may have been a check that failed.
        other_checks = [await job.check() for job in ended_jobs]
        check = next((other for other in other_checks if other and other.ok is False), check)
        return Done("\n".join(line for line in lines if line), shown_as, check=check)

    def _timed_out(self, running: Running, limit: int, gone: bool) -> ToolError:
        ending_text = "It was ended" if gone else "It was told to end, but some of it may still run"
        return ToolError(
            f"Timed out after {limit} s. {ending_text}. Give a larger timeout_seconds (at most "
            f"{self._settings.longest_seconds}), or background=true for a server. Output until then:\n"
            f"{running.output.text(failed=True) or '(none)'}",
            "shell.timed_out" if gone else "shell.not_ended",
            command=_short(running.args.command),
            seconds=limit,
        )

    def _too_many(self) -> ToolError:
        jobs = "; ".join(f"{job.job_id}: {job.command}" for job in self._background.running())
        return ToolError(
            f"Not run: {self._settings.background_jobs} commands already run in the background ({jobs}).",
            "shell.too_many",
            count=self._settings.background_jobs,
        )


def _shown_as(running: Running, code: int, meddled: str, cause: str) -> Phrase:
    values = {"command": _short(running.args.command), "code": code, "seconds": running.seconds}
    values["whole"] = _whole(running.args.command)
    phrase = say("shell.meddled", **values, files=shown(meddled)) if meddled else say("shell.finished", **values)
    return phrase.with_cause(cause) if cause else phrase


def _printed(output: str, check: CheckReport | None) -> str:
    return without_progress(output) if check and check.ok and check.kind == "tests" else output


def _access(names_secret: bool, may_read: bool) -> SecretAccess:
    """Returns what a command may do with secret files. A command that names one may also change it, because the user
    has seen that. A command that only asks for access, or that the user's rule allows, may read them."""
    return "write" if names_secret else "read" if may_read else "none"


async def _confined(sandbox: Sandbox, launch: Launch, network: bool, writes: bool, secrets: SecretAccess) -> Launch:
    """Confines the launch in a thread, because confining walks through the folder, which may be large."""
    confining = asyncio.ensure_future(asyncio.to_thread(sandbox.confine, launch, network, writes, secrets))
    try:
        return await asyncio.shield(confining)
    except asyncio.CancelledError:
        confining.add_done_callback(lambda made: made.exception() or made.result().close())
        raise


def shell_launch(sandbox: Sandbox, settings: ShellSettings, command: str, network: bool) -> Launch:
    """Returns the launch of a command line in the work folder, not yet confined."""
    folder, network_allowed = sandbox.paths.folder, network or sandbox.paths.settings.network
    variables = environment(os.environ, settings.environment, network_allowed) | settings.set_environment
    limits = Limits(
        processes=settings.max_processes,
        memory_mib=settings.max_memory_mib,
        file_mib=settings.max_file_mib,
        free_mib=settings.min_free_mib,
        temporary_mib=settings.max_temporary_mib,
    )
    return Launch((find_shell(folder), "-c", command), folder, variables, limits)


def overrun_phrase(overrun: Overrun, command: str) -> Phrase:
    return say(f"shell.{overrun.kind}", limit=overrun.limit, command=_short(command))


def _take(output: CommandOutput, watch: CheckWatch, data: bytes) -> None:
    output.take(watch.without_its_lines(data))


def _whole(command: str) -> str:
    """Returns the whole command; an empty text if it is too long. Half a command would mislead: the other half may hide
    a failure."""
    return command.strip() if len(command.strip()) <= LONGEST_COMMAND else ""


def _short(command: str) -> str:
    return shown(shorten(command, SHOWN_COMMAND))

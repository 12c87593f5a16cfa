"""A copy of the work folder that takes its place inside the sandbox. Programs there see the folder at its usual path,
and the user's own files stay as they are."""

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from duckflow.code.store import source_text
from duckflow.errors import DuckflowError, PathRefused
from duckflow.programs.launch import Launch
from duckflow.programs.run import FloodError, OverrunError, Printed, collect, ignore, run
from duckflow.proof import inside
from duckflow.proof.settings import ProofSettings
from duckflow.proof.verdicts import TrialEnd
from duckflow.safety.files import open_regular
from duckflow.safety.ignore_rules import HEAVY
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import READ_FOLDER, Workspace

MIB = 1024 * 1024
PREPARES = re.compile(r"\s*(?:cd|export|set|source|\.)\s")
UNITTEST = re.compile(r"-m\s+unittest\b")
LONGEST_REPORT, MOST_ENDS = 20 * MIB, 20_000
COMPILED = "__pycache__"
SHARED = (HEAVY | {".git"}) - {COMPILED}
"""Folders that are not copied but visible as they are, read-only. Virtual environments are treated in the same way."""
INSIDE = Path("/dev/shm/duckflow-trial")
"""The place where a run finds its orders. It is a separate file system in memory, so no earlier command could have put
a link there."""
Versions = Mapping[str, bytes | None]
"""Files that have another content in the copy, by their paths; None means that they do not exist there."""
MakeLaunch = Callable[[Sandbox, str], Launch]
"""A function that returns the launch of a command line in the work folder, which is not yet in the sandbox."""


class EndlessRun(TimeoutError):
    """A run took too long. `ends` holds the ends of the tests that had ended until then."""

    def __init__(self, ends: list[TrialEnd]) -> None:
        super().__init__()
        self.ends = ends


class TrialCopy(NamedTuple):
    """The copy of the folder for one trial run: the sandbox that shows it, and the open file of the run's report."""

    sandbox: Sandbox
    orders: Path
    report: int


class TrialFolder:
    """Makes a copy for each run, in a place that no other command reaches, and removes it after the run. Nothing is
    ever written to a place where an earlier command could write. Remains of a killed process are removed with the
    sandbox's folder."""

    def __init__(self, sandbox: Sandbox, make_launch: MakeLaunch, settings: ProofSettings) -> None:
        self._folder = sandbox.paths.folder
        self._make_launch = make_launch
        self._settings = settings
        self._sandbox = sandbox

    async def run(
        self,
        command: str,
        tests: Mapping[str, Collection[str]],
        lines: Mapping[str, Collection[int]] | None,
        versions: Versions,
        seconds: float,
    ) -> list[TrialEnd]:
        """Runs these tests of the command, by file. Returns how each test ended and which of `lines` it ran (of all
        lines of the folder if `lines` is None). Raises an EndlessRun where that takes too long, and a DuckflowError
        where the folder cannot be copied."""
        deadline = time.monotonic() + seconds
        async with self._copied(versions) as trial_copy:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                raise TimeoutError
            orders = {
                "folder": str(self._folder),
                "tests": {path: sorted(names) for path, names in tests.items()},
                "lines": None if lines is None else {path: sorted(numbers) for path, numbers in lines.items()},
                "report": str(INSIDE / "report"),
                "seconds": seconds_left,
                "place": str(INSIDE),
            }
            trial_copy.orders.write_text(json.dumps(orders), "utf-8")
            launch = self._make_launch(trial_copy.sandbox, in_trial(command, INSIDE))
            confined_launch = trial_copy.sandbox.confine(launch, writes=False)
            environment = confined_launch.environment
            confined_launch.environment = {
                **environment,
                inside.VARIABLE: str(INSIDE / trial_copy.orders.name),
                "PYTEST_ADDOPTS": f"{environment.get('PYTEST_ADDOPTS', '')} -p {inside.MODULE}".strip(),
                "PYTHONPATH": os.pathsep.join(filter(None, (str(INSIDE), environment.get("PYTHONPATH", "")))),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            try:
                await run(confined_launch, ignore, ignore, seconds=seconds_left)
            except (TimeoutError, OverrunError) as problem:
                raise EndlessRun(await asyncio.to_thread(_read, trial_copy.report)) from problem
            return await asyncio.to_thread(_read, trial_copy.report)

    async def printed(self, command: str, versions: Versions, deadline: float) -> str:
        """Returns the output of the command in a copy of the folder. Raises a TimeoutError if it takes too long."""
        return (await self._ended(in_trial(command, INSIDE), versions, deadline)).out.decode("utf-8", "replace")

    async def exit_code(self, command: str, versions: Versions, deadline: float) -> int:
        """Returns the exit code of the unchanged command in a copy. Raises a TimeoutError like `printed`."""
        return (await self._ended(command, versions, deadline)).code

    async def _ended(self, command: str, versions: Versions, deadline: float) -> Printed:
        async with self.launch(command, versions) as launch:
            seconds_left = deadline - time.monotonic()
            try:
                return await collect(launch, seconds=max(seconds_left, 0.1), most=LONGEST_REPORT)
            except (OverrunError, FloodError) as problem:
                raise TimeoutError from problem

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Returns the files of the folder that a run has named, as far as Duckflow may read them."""
        with contextlib.closing(Workspace(self._folder)) as workspace:
            texts = {path: source_text(workspace, path) for path in paths if not secret_name(path)}
        return {path: text for path, text in texts.items() if text}

    @asynccontextmanager
    async def launch(self, command: str, versions: Versions) -> AsyncGenerator[Launch]:
        """Yields the launch of any other command, which sees the copy in place of the folder."""
        async with self._copied(versions) as trial_copy:
            yield trial_copy.sandbox.confine(self._make_launch(trial_copy.sandbox, command), writes=False)

    @asynccontextmanager
    async def _copied(self, versions: Versions) -> AsyncGenerator[TrialCopy]:
        trial_folder = self._sandbox.paths.scratch.top / f"trial-{secrets.token_hex(8)}"
        copy_folder, own_folder = trial_folder / "folder", trial_folder / "own"
        for folder in (trial_folder, copy_folder, own_folder):
            folder.mkdir(mode=0o700)
        report = os.open(own_folder / "report", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            shutil.copyfile(inside.__file__, own_folder / f"{inside.MODULE}.py")
            shared_folders = await asyncio.to_thread(self._fill, copy_folder, versions)
            paths = replace(
                self._sandbox.paths,
                folder_writable=False,
                stand_ins=((copy_folder, self._folder), (own_folder, INSIDE)),
                readable=(*self._sandbox.paths.readable, *shared_folders),
            )
            yield TrialCopy(self._sandbox.reaching(paths), own_folder / "orders.json", report)
        finally:
            os.close(report)
            # The removal works by handles, so that a link in it is removed and not followed.
            await asyncio.to_thread(shutil.rmtree, trial_folder, ignore_errors=True)

    def _fill(self, copy: Path, versions: Versions) -> list[Path]:
        """Copies the work folder, and returns the folders that are shared with it. Everything is opened by handle,
        because commands that still run can put links into the work folder."""
        secret_paths = {str(secret.path) for secret in self._sandbox.paths.covered().secrets}
        stems = {Path(path).stem for path in versions}
        files, size = 0, 0
        shared_folders, folders = list[Path](), [(self._folder, os.open(self._folder, READ_FOLDER))]
        try:
            while folders:
                folder, folder_descriptor = folders.pop()
                target = copy / folder.relative_to(self._folder)
                try:
                    for name in os.listdir(folder_descriptor):
                        path, file_stat = folder / name, os.stat(name, dir_fd=folder_descriptor, follow_symlinks=False)
                        if str(path) in secret_paths or (folder.name == COMPILED and name.partition(".")[0] in stems):
                            continue
                        if stat.S_ISLNK(file_stat.st_mode):
                            (target / name).symlink_to(os.readlink(name, dir_fd=folder_descriptor))
                        elif stat.S_ISDIR(file_stat.st_mode):
                            if name in SHARED or (path / "pyvenv.cfg").exists():
                                shared_folders.append(path)
                                continue
                            folders.append((path, os.open(name, READ_FOLDER, dir_fd=folder_descriptor)))
                            (target / name).mkdir()
                        elif stat.S_ISREG(file_stat.st_mode):
                            files, size = files + 1, size + file_stat.st_size
                            if files > self._settings.copied_files or size > self._settings.copied_mb * MIB:
                                raise DuckflowError("proof.too_large")
                            _copy(folder_descriptor, name, target / name)
                finally:
                    os.close(folder_descriptor)
        finally:
            for _, folder_descriptor in folders:
                os.close(folder_descriptor)
        _put(copy, versions)
        return shared_folders


def in_trial(command: str, place: Path) -> str:
    """Returns the command without what it does before its tests, except for preparations such as `cd`. A run of
    unittest goes through Duckflow's own module instead."""
    *earlier_parts, last_part = command.split("&&")
    preparations = [part for part in earlier_parts if PREPARES.match(part)]
    trial_command = UNITTEST.sub(f"-m {inside.MODULE}", "&&".join((*preparations, last_part)))
    return trial_command.replace("PYTHONPATH=", f"PYTHONPATH={place}{os.pathsep}")


def _copy(folder: int, name: str, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError, PathRefused):
        source = open_regular(folder, name)
        with os.fdopen(source, "rb") as file, target.open("xb") as copied_file:
            shutil.copyfileobj(file, copied_file, MIB)
            source_stat = os.fstat(source)
            os.fchmod(copied_file.fileno(), stat.S_IMODE(source_stat.st_mode) & 0o777)
            copied_file.flush()
            os.utime(copied_file.fileno(), ns=(source_stat.st_atime_ns, source_stat.st_mtime_ns))


def _put(copy: Path, versions: Versions) -> None:
    """Writes these versions of files into the copy. The user's links are in the copy too, so a path that leads out of
    the copy is refused."""
    with contextlib.closing(Workspace(copy)) as workspace:
        for path, content in versions.items():
            if content is not None:
                workspace.write_atomic(path, content)
            else:
                with contextlib.suppress(FileNotFoundError):
                    workspace.delete(path)


def _read(report: int) -> list[TrialEnd]:
    if os.fstat(report).st_size > LONGEST_REPORT:
        return []
    adapter, test_ends = TypeAdapter(TrialEnd), list[TrialEnd]()
    for line in os.pread(report, LONGEST_REPORT, 0).split(b"\n", MOST_ENDS)[:MOST_ENDS]:
        with contextlib.suppress(ValueError):
            test_ends.append(adapter.validate_json(line))
    ended_tests = {(end.file, end.test) for end in test_ends if end.outcome != "begun"}
    return [end for end in test_ends if end.outcome != "begun" or (end.file, end.test) not in ended_tests]

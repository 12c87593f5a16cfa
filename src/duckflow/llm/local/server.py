"""Starts, watches and ends the server process of the local model, and counts the cores it may use."""

import asyncio
import json
import os
import secrets
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, cast

from duckflow.errors import ProviderUnreachable
from duckflow.llm.settings import LocalSettings
from duckflow.programs.find import own_module
from duckflow.programs.launch import Launch

SYSTEM = Path("/sys")


def usable_cores(system: Path = SYSTEM) -> int:
    """Returns the number of physical cores that this process may use; 0 if the system does not tell, so that the server
    decides."""
    siblings = {first_line(path) for path in _allowed_topologies(system)} - {""}
    return min(filter(None, (len(siblings), _container_limit(system))), default=0)


def _allowed_topologies(system: Path) -> list[Path]:
    if not hasattr(os, "sched_getaffinity"):
        return []
    cpus = system / "devices" / "system" / "cpu"
    return [cpus / f"cpu{number}" / "topology" / "thread_siblings_list" for number in os.sched_getaffinity(0)]


def _container_limit(system: Path) -> int:
    """Returns the CPUs that a container's quota of time is worth, rounded up; 0 without a limit."""
    quota_text, _, period = first_line(system / "fs" / "cgroup" / "cpu.max").partition(" ")
    if not quota_text.isdigit() or not period.isdigit() or int(period) == 0:
        return 0
    return max(1, -(-int(quota_text) // int(period)))


def first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


LOG_TAIL = 2000
LOG_LINES = 2
RUNTIME = "xllamacpp"
DEFAULT_CONTEXT = 8_192


class LocalServer:
    """An OpenAI-compatible endpoint on a loopback port, guarded by a random key. `start` may be called again."""

    def __init__(
        self, weights: Path, settings: LocalSettings, log: Path | None = None, prefixes: Path | None = None
    ) -> None:
        """`prefixes` is the folder for saved states of prompts that were read."""
        self._prefixes = prefixes
        self._weights = weights
        self._settings = settings
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._wanted = False
        self.url = ""
        """The base of the API, such as `http://127.0.0.1:40000/v1`; empty until the server answers."""
        self.key = ""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Starts the server, and returns when the model answers. If the start fails or is cancelled, no process is left
        behind."""
        async with self._starting:
            if self.alive():
                return
            self._wanted = True
            if find_spec(RUNTIME) is None:
                raise ProviderUnreachable("local.missing")
            if not self._weights.is_file():
                raise ProviderUnreachable("local.no_weights", name=self._settings.model, path=str(self._weights))
            with self._open_log() as log:
                await self._start(log)

    async def aclose(self) -> None:
        """Ends the server and waits until its process is gone. A start that is under way fails."""
        self._wanted = False
        process, self._process = self._process, None
        self.url = self.key = ""
        if process and process.returncode is None:
            # The server has nothing to clean up, so it can be killed.
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _open_log(self) -> BinaryIO:
        try:
            if self._log is not None:
                self._log.parent.mkdir(parents=True, exist_ok=True)
                file_descriptor = os.open(self._log, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                os.fchmod(file_descriptor, 0o600)
                return os.fdopen(file_descriptor, "w+b")
        except OSError:
            # A log that cannot be written must not keep the server from starting.
            pass
        return cast("BinaryIO", tempfile.TemporaryFile())

    async def _start(self, log: BinaryIO) -> None:
        name, seconds = self._settings.model, self._settings.start_seconds
        self.url = ""
        try:
            async with asyncio.timeout(seconds):
                process = await self._spawn(log)
                answer = await self._instruct(process)
        except TimeoutError:
            await self.aclose()
            raise ProviderUnreachable("local.slow", name=name, seconds=round(seconds)) from None
        except OSError as error:
            await self.aclose()
            raise ProviderUnreachable("local.failed", name=name, reason=str(error)) from error
        except BaseException:
            await self.aclose()
            raise
        if url := answer.get("url"):
            self.url = url
            return
        await self.aclose()
        raise ProviderUnreachable("local.failed", name=name, reason=_cause(answer, process.returncode, log))

    async def _spawn(self, log: BinaryIO) -> asyncio.subprocess.Process:
        weights = self._weights.resolve()
        argv = own_module("duckflow.llm.local.serve", str(weights))
        # PASSIVE: threads that spin while they wait are ten times slower where cores are shared.
        launch = Launch(argv, weights.parent, os.environ | {"OMP_WAIT_POLICY": "PASSIVE"})
        self._process = await launch.spawn(asyncio.subprocess.PIPE, asyncio.subprocess.PIPE, log)
        if not self._wanted:
            self._process.kill()
        return self._process

    async def _instruct(self, process: asyncio.subprocess.Process) -> dict[str, str]:
        """Sends the child process its settings and returns its answer; empty if the process died before."""
        assert process.stdin is not None and process.stdout is not None
        self.key = secrets.token_urlsafe(24)
        sent_settings = self._settings.model_dump() | {
            "parent": os.getpid(),
            "key": self.key,
            "context": self._settings.context or DEFAULT_CONTEXT,
            "threads": self._settings.threads or usable_cores(),
            # The server appends the file name directly to this.
            "prefixes": f"{self._prefixes}/" if self._prefixes else "",
        }
        process.stdin.write(json.dumps(sent_settings).encode() + b"\n")
        line = await process.stdout.readline()
        return cast("dict[str, str]", json.loads(line)) if line.endswith(b"\n") else {}


def _cause(answer: dict[str, str], status: int | None, log: BinaryIO) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return " · ".join([answer.get("failed") or f"exit status {status}", *lines[-LOG_LINES:]])

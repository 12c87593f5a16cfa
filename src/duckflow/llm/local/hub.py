"""Downloads model files from the Hugging Face hub, resumes broken downloads, and checks the files by hash."""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from duckflow.errors import ModelError
from duckflow.llm.local.catalogue import LocalModel

if TYPE_CHECKING:
    import httpx


LOOK_AGAIN_SECONDS = 0.2


def has_hash(path: Path, sha256: str) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


class Incoming:
    """A partly downloaded model file. All sources give the same bytes, so any source can continue the download."""

    def __init__(self, folder: Path, model: LocalModel) -> None:
        self.model = model
        self.final = folder / model.file
        self.partial = folder / f".{model.file}.partial"
        self._lock = folder / f".{model.file}.lock"
        self._scratch = f".{model.file}.scratch-"

    def size(self) -> int:
        try:
            return self.partial.stat().st_size
        except OSError:
            # There is no such file, or its folder cannot be one.
            return 0

    def append(self) -> BinaryIO:
        return self.partial.open("ab")

    def cut(self, size: int) -> None:
        """Drops everything after the first `size` bytes of the file."""
        if self.size() > size:
            os.truncate(self.partial, size)

    def is_right(self) -> bool:
        return self.size() == self.model.size and has_hash(self.partial, self.model.sha256)

    def place(self) -> Path:
        with self.partial.open("rb") as file:
            os.fsync(file.fileno())
        self.partial.replace(self.final)
        return self.final

    def discard(self) -> None:
        self.partial.unlink(missing_ok=True)
        self.sweep()

    def sweep(self) -> None:
        """Removes the folders that an interrupted download left behind."""
        for folder in self.final.parent.glob(f"{self._scratch}*"):
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def scratch(self) -> Generator[Path]:
        """Makes a temporary folder on the same disk as the file."""
        folder = Path(tempfile.mkdtemp(prefix=self._scratch, dir=self.final.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def alone(self, waiting: Callable[[], None] | None = None) -> Generator[None]:
        """Holds the model's lock. While another process has the lock, `waiting` is called again and again. Without
        `waiting`, a ModelError is raised instead."""
        with self._lock.open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if waiting is None:
                        raise ModelError("models.busy", name=self.model.name) from None
                    waiting()
                    time.sleep(LOOK_AGAIN_SECONDS)
            yield


Stage = Literal["hub", "packages", "other_pull", "check"]
Progress = Callable[[int, int, Stage], None]
"""A callback that gets the bytes done, the bytes in all, and the stage. When the callback raises an error, the download
stops and can be resumed later."""

REPORT_SECONDS = 0.2


class SourceUnavailable(Exception):
    """Raised when a source cannot deliver. The message says why, and the next source is tried."""


class Meter:
    """Reports the progress of a download, at most a few times a second."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._shown: dict[Stage, float] = {}

    def show(self, done: int, stage: Stage) -> None:
        if self._progress is None:
            return
        now = time.monotonic()
        if done < self._total and now < self._shown.get(stage, 0.0) + REPORT_SECONDS:
            return
        self._shown[stage] = now
        self._progress(min(done, self._total), self._total, stage)


DEFAULT_ENDPOINT = "https://huggingface.co"
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
CHUNK = 256 * 1024
TRIES_AFTER_A_BREAK = 3
PAUSE_SECONDS = 0.5


class Hub:
    """Downloads the file of a model from the hub."""

    stage: Stage = "hub"

    def __init__(self, model: LocalModel, environment: Mapping[str, str]) -> None:
        endpoint = environment.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
        self._model = model
        self._url = f"{endpoint.rstrip('/')}/{model.hub}/resolve/main/{model.file}"

    def with_sums(self) -> LocalModel:
        """Returns the model with its size and sha256, which the hub sends before it redirects to the storage."""
        import httpx

        try:
            with _client() as client:
                answer = client.head(self._url, follow_redirects=False)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceUnavailable(f"{type(error).__name__}: {error}") from error
        if answer.status_code >= HTTPStatus.BAD_REQUEST:
            raise SourceUnavailable(f"HTTP {answer.status_code}")
        size, sha256 = answer.headers.get("x-linked-size", ""), answer.headers.get("x-linked-etag", "").strip('"')
        if not size.isdigit() or not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise SourceUnavailable("it does not say what the file must be")
        return replace(self._model, size=int(size), sha256=sha256)

    def fill(self, incoming: Incoming, meter: Meter) -> None:
        """Appends the missing bytes to the file. Raises SourceUnavailable if that fails; bytes that arrived stay."""
        import httpx

        meter.show(incoming.size(), self.stage)
        with _client() as client:
            # A hub that does not answer at all is given up at once. A hub that broke off is asked again.
            tries_left = 1
            while (start := incoming.size()) < incoming.model.size:
                try:
                    self._stream(client, incoming, meter)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    tries_left = TRIES_AFTER_A_BREAK if incoming.size() > start else tries_left - 1
                    if tries_left <= 0:
                        raise SourceUnavailable(f"{type(error).__name__}: {error}") from error
                    time.sleep(PAUSE_SECONDS)

    def _stream(self, client: "httpx.Client", incoming: Incoming, meter: Meter) -> None:
        start, total_bytes = incoming.size(), incoming.model.size
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with client.stream("GET", self._url, headers=headers) as response:
            if response.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                raise SourceUnavailable(f"HTTP {response.status_code}")
            first_byte, file_length = _extent(response.status_code, response.headers)
            if file_length not in (None, total_bytes):
                raise SourceUnavailable(f"its file has {file_length} bytes, not {total_bytes}")
            if first_byte > start:
                raise SourceUnavailable("it skipped a part of the file")
            incoming.cut(first_byte)
            bytes_done = first_byte
            with incoming.append() as file:
                for chunk in response.iter_raw(CHUNK):
                    bytes_done += len(chunk)
                    if bytes_done > total_bytes:
                        raise SourceUnavailable(f"its file has more than {total_bytes} bytes")
                    file.write(chunk)
                    meter.show(bytes_done, self.stage)
        if bytes_done <= start:
            raise SourceUnavailable("it sent nothing new")


def _client() -> "httpx.Client":
    import httpx

    try:
        return httpx.Client(timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS), follow_redirects=True)
    except (ImportError, ValueError, OSError) as error:
        # httpx cannot use the user's proxy or certificate settings. The download by pip may still work.
        raise SourceUnavailable(f"{type(error).__name__}: {error}") from error


def _extent(status: int, headers: Mapping[str, str]) -> tuple[int, int | None]:
    """Returns the offset of the body in the file, and the length of the whole file if the reply gives it."""
    if status == HTTPStatus.PARTIAL_CONTENT:
        content_range = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("content-range", "").strip())
        if content_range is None:
            raise SourceUnavailable("it does not say which part of the file it sends")
        return int(content_range[1]), None if content_range[2] == "*" else int(content_range[2])
    length_header = headers.get("content-length", "")
    return 0, int(length_header) if length_header.isdigit() else None

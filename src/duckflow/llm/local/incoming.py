"""A model file on its way in: it gets its name only when its hash is right."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from duckflow.llm.local.catalogue import LocalModel

LOOK_AGAIN_SECONDS = 0.2


def has_hash(path: Path, sha256: str) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


class Incoming:
    """The bytes of a model so far, from whichever source; all sources give the same bytes, so any can go on."""

    def __init__(self, folder: Path, model: LocalModel) -> None:
        self.model = model
        self.final = folder / model.file
        self.partial = folder / f".{model.file}.partial"
        self._lock = folder / f".{model.file}.lock"
        self._scratch = f".{model.file}.scratch-"

    def size(self) -> int:
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return 0

    def append(self) -> BinaryIO:
        return self.partial.open("ab")

    def cut(self, size: int) -> None:
        """Forget everything after `size` bytes."""
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
        """Remove what an interrupted download left behind."""
        for left in self.final.parent.glob(f"{self._scratch}*"):
            shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def scratch(self) -> Generator[Path]:
        """A folder on the same disk as the file, gone afterwards."""
        folder = Path(tempfile.mkdtemp(prefix=self._scratch, dir=self.final.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def alone(self, waiting: Callable[[], None]) -> Generator[None]:
        """Hold the model's lock; `waiting` is called again and again while another process has it."""
        with self._lock.open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waiting()
                    time.sleep(LOOK_AGAIN_SECONDS)
            yield

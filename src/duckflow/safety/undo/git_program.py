"""Asking git, with a repository folder of our own, so that no setting of the user's makes it run anything."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

NOWHERE = Path(os.devnull)
SEPARATE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitProgram:
    """Git as `folder` configures it, looking at the work folder. All answers may fail to come."""

    def __init__(self, program: str | None, folder: Path, work: Path, seconds: float) -> None:
        self._program = program
        self._folder = folder
        self._work = work
        self._seconds = seconds

    @property
    def there(self) -> bool:
        return self._program is not None

    def ask(
        self, arguments: Sequence[str], index: Path = NOWHERE, top: Path | None = None, given: Sequence[str] = ()
    ) -> bytes | None:
        """The whole answer; nothing when it fails. `given`: lines for git to read."""
        try:
            with _lines(given) as stdin:
                return self._run(arguments, stdin, subprocess.PIPE, index, top).stdout
        except (OSError, subprocess.SubprocessError):
            return None

    def contents(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Of the blobs that are there, one after the other."""
        wanted = list(blobs)
        if not wanted:
            return
        with _lines(wanted) as given, tempfile.TemporaryFile() as answer:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                self._run(("cat-file", "--batch"), given, answer, NOWHERE, None)
            answer.seek(0)
            while header := answer.readline():
                words = header.split()
                if len(words) != 3:
                    continue
                size = int(words[2])
                data = answer.read(size)
                answer.read(1)
                if len(data) == size:
                    yield words[0].decode(), data

    def _run(
        self, arguments: Sequence[str], stdin: IO[bytes] | int, stdout: IO[bytes] | int, index: Path, top: Path | None
    ) -> "subprocess.CompletedProcess[bytes]":
        if self._program is None:
            raise FileNotFoundError("git")
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        places = {
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(top or self._work),
            "GIT_INDEX_FILE": str(self._folder / "no-index" if index == NOWHERE else index),
        }
        return subprocess.run(
            [self._program, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env=outside | SEPARATE | places,
            cwd=self._work,
            timeout=self._seconds,
            check=True,
        )


def find_git() -> str | None:
    """A program of the system; never one that happens to lie in the current folder."""
    found = shutil.which("git")
    return found if found and Path(found).is_absolute() else None


@contextlib.contextmanager
def _lines(words: Sequence[str]) -> Generator[IO[bytes] | int]:
    """A file to read from instead of a pipe, which could fill up while the answer waits to be read."""
    if not words:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write("\n".join(words).encode() + b"\n")
        file.seek(0)
        yield file

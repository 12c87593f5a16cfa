"""What a snapshot around a command costs: `python -m benchmarks.undo [files]`.

Builds a repository in a temporary folder and prints milliseconds: passed, and of processor time (git's included), which
says more on a busy machine. Checks that the user's repository stays as it is, byte by byte."""

import asyncio
import hashlib
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import WorkAuthor

FILES = 5000
ROUNDS = 21
WORDS = [f"word{number}" for number in range(500)]


def build(folder: Path, files: int) -> None:
    """Source-like files of some kilobytes, an ignored folder, a few untracked files."""
    chance = random.Random(1)
    for number in range(files):
        place = folder / f"package{number % 50}" / f"module{number % 10}"
        place.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(chance.choices(WORDS, k=8)) for _ in range(chance.randint(20, 200)))
        (place / f"file{number}.py").write_text("\n".join(lines) + "\n")
    (folder / ".gitignore").write_text("build/\n*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    (folder / "build").mkdir()
    for number in range(200):
        (folder / f"build/{number}.o").write_bytes(os.urandom(1000))
    for number in range(20):
        (folder / f"untracked{number}.txt").write_text("not yet added\n")


def git(folder: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = os.environ | who | {"GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "-c", "gc.auto=0", *arguments], cwd=folder, env=environment, check=True)


def repository_state(folder: Path) -> dict[str, str]:
    """Every file of .git, with the bytes it has."""
    files = (path for path in sorted((folder / ".git").rglob("*")) if path.is_file())
    return {str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files}


class Took(NamedTuple):
    """Milliseconds."""

    passed: float
    processor: float

    def __str__(self) -> str:
        return f"{self.passed:7.1f} ms ({self.processor:.1f} of processor time)"


async def timed(work: Callable[[], Awaitable[object]]) -> Took:
    start, used = time.perf_counter(), processor()
    await work()
    return Took(1000 * (time.perf_counter() - start), 1000 * (processor() - used))


def processor() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def median(times: list[Took]) -> Took:
    return Took(statistics.median(one.passed for one in times), statistics.median(one.processor for one in times))


async def measure(folder: Path, data: Path) -> None:
    undo = Undo(Workspace(folder), data, UndoSettings(), "benchmark")
    befores: list[Took] = []
    afters: list[Took] = []
    for number in range(ROUNDS):
        window = undo.command(WorkAuthor(1))
        befores.append(await timed(window.__aenter__))
        (folder / "package1/module1/file1.py").write_text(f"print({number})\n")
        afters.append(await timed(lambda window=window: window.__aexit__(None, None, None)))
    print(f"first snapshot            {befores[0]}")
    print(f"before a command, median  {median(befores[1:])}")
    print(f"after a command, median   {median(afters)}")
    print(f"preview                   {await timed(undo.preview)}")
    print(f"undo                      {await timed(undo.restore)}")
    await undo.close()
    again = Undo(Workspace(folder), data, UndoSettings(), "benchmark")
    window = again.command(WorkAuthor(1))
    print(f"first after a restart     {await timed(window.__aenter__)}")
    await window.__aexit__(None, None, None)
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file() and path.stat().st_nlink == 1)
    print(f"disk used beside git's    {size / 1024 / 1024:7.1f} MB")


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with tempfile.TemporaryDirectory() as top:
        folder, data = Path(top, "work"), Path(top, "data")
        folder.mkdir()
        build(folder, files)
        for packed in (False, True):
            if packed:
                git(folder, "gc", "--quiet")
            before = repository_state(folder)
            print(f"{files} files, objects {'packed' if packed else 'loose'}")
            asyncio.run(measure(folder, data / str(packed)))
            same = repository_state(folder) == before
            print(f"the user's .git           {'unchanged, byte by byte' if same else 'CHANGED'}\n")


if __name__ == "__main__":
    main()

"""What a sandbox adds to the start of a command: `python -m benchmarks.sandbox_start [ROUNDS]`.

Starts `bash -c true` in a folder with a git repository, by turns plain, in bubblewrap and in Landlock, and prints
medians in milliseconds, and what each sandbox takes over the plain start."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

COMMAND = ("bash", "-c", "true")
KINDS = ("bubblewrap", "landlock")
ROUNDS = 100


def plain(folder: Path) -> None:
    subprocess.run(COMMAND, cwd=folder, check=True)


def shut_in(sandbox: Sandbox, folder: Path) -> None:
    launch = sandbox.confine(Launch(COMMAND, folder, {}))
    try:
        subprocess.run(launch.argv, cwd=folder, pass_fds=launch.fds, env=launch.environment, check=True)
        launch.meddled()
    finally:
        launch.close()


def milliseconds(start: Callable[[], None]) -> float:
    before = time.perf_counter()
    start()
    return (time.perf_counter() - before) * 1000


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        sandboxes = [choose(SandboxSettings.model_validate({"kind": kind}), folder) for kind in KINDS]
        ways: dict[str, Callable[[], None]] = {"plain": lambda: plain(folder)}
        for one in sandboxes:
            ways[one.kind] = lambda one=one: shut_in(one, folder)
        taken = {name: list[float]() for name in ways}
        for _ in range(rounds):
            for name, start in ways.items():
                taken[name].append(milliseconds(start))
        usual = {name: statistics.median(times) for name, times in taken.items()}
        for name, median in usual.items():
            least = min(taken[name])
            print(f"{name:12}{median:7.1f} ms median, {median - usual['plain']:5.1f} over plain; {least:.1f} at least")
        for one in sandboxes:
            one.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)

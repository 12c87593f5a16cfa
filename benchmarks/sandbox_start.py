"""What a sandbox adds to a command: `python -m benchmarks.sandbox_start [ROUNDS] [PACKS] [CHECKOUT] [COMMAND]`.

Starts a command (`true`) in bash in a folder with a git repository of so many packs, by turns plain, in bubblewrap and
in Landlock, and prints medians in milliseconds, of time and of processor time. One that speaks of git gets more mounts
in bubblewrap. With a checkout of another version
(`git worktree add`) its sandboxes take turns with these, and the last lines say how many times its start this one
takes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent.parent
KINDS = ("plain", "bubblewrap", "landlock")
ROUNDS, PACKS = 100, 0
STARTER = """
import json, resource, subprocess, sys, time
from pathlib import Path

folder, kind, COMMAND = Path(sys.argv[1]), sys.argv[2], ("bash", "-c", sys.argv[3])
if kind != "plain":
    from duckflow.safety.sandbox.choose import choose
    from duckflow.safety.sandbox.settings import SandboxSettings
    sandbox = choose(SandboxSettings.model_validate({"kind": kind}), folder)
    assert sandbox.kind == kind, sandbox.kind

def start():
    if kind == "plain":
        subprocess.run(COMMAND, cwd=folder, check=True)
        return
    try:
        from duckflow.programs.launch import Launch
    except ImportError:
        launch = sandbox.launch(COMMAND)
    else:
        launch = sandbox.confine(Launch(COMMAND, folder, {}))
    try:
        subprocess.run(launch.argv, cwd=folder, pass_fds=launch.fds, env=launch.environment, check=True)
        launch.meddled()
    finally:
        launch.close()

def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)

for _ in sys.stdin:
    before, processor = time.perf_counter(), used()
    start()
    print(json.dumps([(time.perf_counter() - before) * 1000, (used() - processor) * 1000]), flush=True)
if kind != "plain":
    sandbox.close()
"""


class Starter:
    """A process of one version that starts a command whenever it is told to."""

    def __init__(self, checkout: Path, kind: str, folder: Path, shell_command: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        command = [sys.executable, "-c", STARTER, str(folder), kind, shell_command]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.times: list[float] = []
        self.processor: list[float] = []

    def start(self) -> None:
        assert self._process.stdin and self._process.stdout
        print(file=self._process.stdin, flush=True)
        taken, processor = json.loads(self._process.stdout.readline())
        self.times.append(taken)
        self.processor.append(processor)

    def told(self) -> str:
        time, processor = self.medians()
        return f"{time:7.1f} ms, {processor:6.1f} ms of the processor; {min(self.times):.1f} at least"

    def medians(self) -> tuple[float, float]:
        """Returns the medians of the time, and of the processor time."""
        return statistics.median(self.times), statistics.median(self.processor)

    def close(self) -> None:
        self._process.communicate()


def make_repository(folder: Path, packs: int) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=d", "-c", "user.email=d@p", *words], cwd=folder, check=True)

    git("init", "-q")
    for number in range(packs):
        (folder / "a.txt").write_text(f"{number}\n")
        git("add", "a.txt")
        git("commit", "-qm", str(number))
        git("repack", "-dq")


def main(rounds: int, packs: int, other: Path | None, command: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        make_repository(folder, packs)
        checkouts = {"": HERE, **({"before": other} if other else {})}
        starters = {
            (kind, name): Starter(checkout, kind, folder, command)
            for kind in KINDS
            for name, checkout in checkouts.items()
            if kind != "plain" or not name
        }
        for _ in range(rounds):
            for starter in starters.values():
                starter.start()
        for (kind, name), starter in starters.items():
            print(f"{kind + ' ' + name:20}{starter.told()}")
        for kind in KINDS[1:] if other else ():
            (time, processor), (time_before, before) = (starters[kind, name].medians() for name in ("", "before"))
            print(f"{kind}: {time / time_before:.2f} times the time of the version before, ", end="")
            print(f"{processor / before:.2f} times its processor time")
        for starter in starters.values():
            starter.close()


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int(given[0]) if given else ROUNDS,
        int(given[1]) if len(given) > 1 else PACKS,
        Path(given[2]).resolve() if len(given) > 2 else None,
        given[3] if len(given) > 3 else "true",
    )

"""Starts of this program beside another state of it: `--version`, a headless turn, the first key.

usage: python -m benchmarks.starts COMMIT [RUNS]        (COMMIT is the other state; default 25 runs)
       python -m benchmarks.starts COMMIT --count

Both run with this Python and its packages and take turns, so that whatever else the machine does hits both; the first
round only warms the disk cache and compiles. Medians in milliseconds, and ours as a share of the other's.

With `--count` valgrind counts millions of instructions instead, which other work on the machine hardly changes. The
first key is left out then: how much is drawn until it is echoed is a matter of time.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.first_key import first_key
from benchmarks.revisions import TOP, unpack

INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]

Measure = Callable[[list[str], list[str], Path], dict[str, float]]
"""Takes the program, the options that choose its model, and the folder to work in."""


def in_milliseconds(program: list[str], model: list[str], work: Path) -> dict[str, float]:
    return {
        "version": _milliseconds([*program, "--version"], work),
        "turn": _milliseconds([*program, *model, "-p", "hi"], work),
        "key": 1000 * first_key([*program, *model], work),
    }


def _milliseconds(command: list[str], work: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=work, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - start)


def in_instructions(program: list[str], model: list[str], work: Path) -> dict[str, float]:
    return {
        "version": _instructions([*program, "--version"], work),
        "turn": _instructions([*program, *model, "-p", "hi"], work),
    }


def _instructions(command: list[str], work: Path) -> float:
    counted = subprocess.run(
        [*VALGRIND, *command], cwd=work, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    (instructions,) = INSTRUCTIONS.findall(counted.stderr)
    return int(instructions.replace(",", "")) / 1e6


def compare(commit: str, runs: int, measure: Measure) -> dict[str, dict[str, float]]:
    rounds: dict[str, list[dict[str, float]]] = {"this": [], "other": []}
    with tempfile.TemporaryDirectory() as top:
        work, script, other = Path(top) / "work", Path(top) / "script.jsonl", Path(top) / "other"
        work.mkdir()
        script.write_text(json.dumps({"text": "Good day."}), encoding="utf-8")
        unpack(commit, other)
        # The order of sets is a matter of chance otherwise, and with it the number of instructions.
        own = {"HOME": top, "DUCKFLOW_HOME": str(Path(top) / "home"), "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
        os.environ |= own
        # Else the other state, which is new on this disk, would be compiled at every start.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        program, model = [sys.executable, "-m", "duckflow"], ["-m", f"scripted:{script}"]
        for number in range(runs + 1):
            for name, tree in (("this", TOP), ("other", other)):
                os.environ["PYTHONPATH"] = str(tree / "src")
                if number == 0:
                    in_milliseconds(program, model, work)
                else:
                    rounds[name].append(measure(program, model, work))
    return {what: _beside(what, rounds) for what in rounds["this"][0]}


def _beside(what: str, rounds: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    medians = {name: statistics.median(each[what] for each in taken) for name, taken in rounds.items()}
    shown = {name: round(median, 1) for name, median in medians.items()}
    return shown | {"ratio": round(medians["this"] / medians["other"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("runs", nargs="?", type=int, default=25)
    parser.add_argument("--count", action="store_true", help="count instructions, once each")
    options = parser.parse_args()
    if options.count:
        print(json.dumps(compare(options.commit, 1, in_instructions)))
    else:
        print(json.dumps(compare(options.commit, options.runs, in_milliseconds)))


if __name__ == "__main__":
    main()

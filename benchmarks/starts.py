"""Starts of this program beside another state of it: `--version`, a headless turn, the first key.

usage: python -m benchmarks.starts TREE [RUNS]      (TREE: a checkout of the other state; default 25 runs)

    git worktree add ../before COMMIT && python -m benchmarks.starts ../before

Both run with this Python and its packages and take turns, so that whatever else the machine does hits both; the first
round only warms the disk cache. Medians in milliseconds, and ours as a share of the other's.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.first_key import first_key

OURS = Path(__file__).resolve().parents[1]


def timed(command: list[str], work: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=work, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(other: Path, runs: int) -> dict[str, dict[str, float]]:
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as top:
        work, script = Path(top) / "work", Path(top) / "script.jsonl"
        work.mkdir()
        script.write_text(json.dumps({"text": "Good day."}), encoding="utf-8")
        os.environ |= {"HOME": top, "DUCKFLOW_HOME": str(Path(top) / "home"), "LC_ALL": "C.UTF-8"}
        for _ in range(runs + 1):
            for name, tree in (("this", OURS), ("other", other)):
                program = ["env", f"PYTHONPATH={tree / 'src'}", sys.executable, "-m", "duckflow"]
                model = ["-m", f"scripted:{script}"]
                spent = {
                    "version": timed([*program, "--version"], work),
                    "turn": timed([*program, *model, "-p", "hi"], work),
                    "key": first_key([*program, *model], work),
                }
                for what, seconds in spent.items():
                    taken.setdefault(what, {}).setdefault(name, []).append(seconds)
    medians = {
        what: {name: 1000 * statistics.median(each[1:]) for name, each in by.items()} for what, by in taken.items()
    }
    return {
        what: {**{name: round(each, 1) for name, each in by.items()}, "ratio": round(by["this"] / by["other"], 3)}
        for what, by in medians.items()
    }


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 25)))

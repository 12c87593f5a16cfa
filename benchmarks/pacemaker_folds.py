"""Whether the Pacemaker's figures carry over: chosen on one part of the recorded runs, scored on the other.

usage: python -m benchmarks.pacemaker_folds [DATA_FOLDER]      (default ../shared/data/pacemaker)

The runs are parted by their id, three ways into halves. In each half the candidates below are ranked (enough stuck runs
found, enough steps saved, then fewest false alarms; the calmest of equals), and the winner is scored on the other half,
as are the product's own settings. `strict` is the product with every threshold one notch lower: what false alarms would
be if the runs were a little less lucky. At last the numbers are counted that the Pacemaker has by a name (in settings
and constants), beside those of the revision that the halves were first measured at.
"""

import ast
import gzip
import json
import math
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.pacing import BenchDetector, recorded
from benchmarks.revisions import TOP, is_here, unpack
from duckflow.pacemaker.settings import DetectorSettings, PacemakerSettings, Threshold, VitalsSettings
from duckflow.pacemaker.signatures import LoopStep

ENOUGH, SAVED = 96.0, 72.0
NORMAL_95 = 1.96
FIRST = "277bd77"
DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "pacemaker"


class RecordedRun(NamedTuple):
    """A run with what became of it; `loops` and `no_loops`: people saw repetition in a row, or none at all."""

    name: str
    steps: list[LoopStep]
    succeeded: bool
    onset: int | None
    loops: bool
    no_loops: bool


class Score(NamedTuple):
    """Scores in percent."""

    recall: float
    cut: float
    false_alarms: float
    human: float
    human_false: float

    def __str__(self) -> str:
        return "  ".join(f"{name} {value:5.1f}" for name, value in self._asdict().items())


def read(folder: Path) -> Iterator[RecordedRun]:
    """Yields the runs about which something is known."""
    with (folder / "labels.dev.jsonl").open() as lines:
        labels: dict[str, Any] = {label["id"]: label for label in map(json.loads, lines)}
    with gzip.open(folder / "trajectories.dev.jsonl.gz", "rt") as lines:
        for run in map(json.loads, lines):
            if run.get("no_results"):
                continue
            label, steps = labels[run["id"]], [recorded(step) for step in run["steps"]]
            if run["steps"][-1]["kind"] == "submit":
                steps.pop()
            stuck = label["stuck"] and run["outcome"] is not True
            seen = "".join(
                "R" if one == "Repetition" else "." for one in run["labels"].get("human_action_action") or ""
            )
            onset, loops, no_loops = label["onset"] if stuck else None, "RR" in seen, bool(seen) and "R" not in seen
            succeeded = run["outcome"] is True
            if succeeded or stuck or loops or no_loops:
                yield RecordedRun(run["id"], steps, succeeded, onset, loops, no_loops)


def find_alarms(run: RecordedRun, detector: BenchDetector) -> list[int]:
    found: list[int] = []
    detector.reset()
    for number, step in enumerate(run.steps):
        if detector.hear(step):
            found.append(number)
            detector.reset()
    return found


Alarms = dict[str, list[int]]


def score(runs: list[RecordedRun], alarms: Alarms) -> Score:
    stuck = [(run, run.onset) for run in runs if run.onset is not None]
    first = {run.name: next((at for at in alarms[run.name] if at >= onset), None) for run, onset in stuck}
    saved = sum(len(run.steps) - 1 - at for run, _ in stuck if (at := first[run.name]) is not None)
    return Score(
        share([at is not None for at in first.values()]),
        100 * saved / max(1, sum(len(run.steps) - onset for run, onset in stuck)),
        share([bool(alarms[run.name]) for run in runs if run.succeeded]),
        share([bool(alarms[run.name]) for run in runs if run.loops]),
        share([bool(alarms[run.name]) for run in runs if run.no_loops]),
    )


def share(found: list[bool]) -> float:
    return 100 * sum(found) / max(1, len(found))


def with_interval(found: list[bool]) -> str:
    """The share in percent with its 95 % confidence interval after Wilson."""
    count, rate = len(found), sum(found) / len(found)
    middle = (rate + NORMAL_95**2 / (2 * count)) / (1 + NORMAL_95**2 / count)
    spread = NORMAL_95 * math.sqrt(rate * (1 - rate) / count + (NORMAL_95 / (2 * count)) ** 2)
    spread /= 1 + NORMAL_95**2 / count
    low, high = 100 * (middle - spread), 100 * (middle + spread)
    return f"{share(found):.1f} % ({low:.1f} to {high:.1f}; {sum(found)} of {count})"


def count_constants(top: Path) -> int:
    """The numbers in what the Pacemaker's modules and classes set."""
    trees = [ast.parse(path.read_text()) for path in (top / "src/duckflow/pacemaker").glob("*.py")]
    bodies = [node.body for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    values = [line.value for body in bodies for line in body if isinstance(line, ast.Assign | ast.AnnAssign)]
    nodes = [node for value in values if value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return sum(type(node.value) in (int, float) for node in nodes)


def candidates() -> Iterator[tuple[str, PacemakerSettings]]:
    """Yields the candidates, the calm ones first."""
    for stale, new, again in product((0.12, 0.14, 0.16), (0.1, 0.06), (5, 4)):
        vitals = VitalsSettings(stale_focus=stale, new_focus=new)
        detectors = DetectorSettings(again=Threshold(replan=3, call=again))
        yield f"stale {stale} new {new} again {again}", PacemakerSettings(vitals=vitals, detectors=detectors)


STRICT = PacemakerSettings(
    vitals=VitalsSettings(focus_lost=0.37, stamina_depleted=0.16),
    detectors=DetectorSettings(again=Threshold(replan=3, call=3)),
)


def main(folder: Path) -> None:
    runs = list(read(folder))

    def alarms_with(settings: PacemakerSettings, limits: bool = True) -> Alarms:
        detector = BenchDetector(settings, limits)
        return {run.name: find_alarms(run, detector) for run in runs}

    ours = alarms_with(PacemakerSettings())
    print(f"all runs, product            {score(runs, ours)}")
    print(f"all runs, without the limits {score(runs, alarms_with(PacemakerSettings(), limits=False))}")
    print(f"all runs, strict             {score(runs, alarms_with(STRICT))}")
    tried = {name: alarms_with(settings) for name, settings in candidates()}
    held_back: list[Score] = []
    for salt in ("a", "b", "c"):
        for half in (0, 1):
            part = _in_half(salt, half)
            chosen_on, scored_on = [run for run in runs if part(run)], [run for run in runs if not part(run)]
            best = max(tried, key=lambda name: _rank(score(chosen_on, tried[name])))
            print(f"{salt}{half} chosen {best}")
            print(f"   chosen on  {score(chosen_on, tried[best])}")
            print(f"   scored on  {score(scored_on, tried[best])}")
            print(f"   product    {score(scored_on, ours)}")
            held_back.append(score(scored_on, tried[best]))
    mean = Score(*(sum(column) / len(held_back) for column in zip(*held_back, strict=True)))
    print(f"out of fold, on average      {mean}")
    for half in (0, 1):
        part = [run for run in runs if _in_half("a", half)(run)]
        alarmed = [bool(ours[run.name]) for run in part if run.succeeded]
        caught = [any(at >= run.onset for at in ours[run.name]) for run in part if run.onset is not None]
        print(f"half {half}, product: false alarms {with_interval(alarmed)}; recall {with_interval(caught)}")
    with tempfile.TemporaryDirectory() as name:
        if is_here(FIRST):
            unpack(FIRST, Path(name))
        print(f"constants {count_constants(TOP)}; at {FIRST} {count_constants(Path(name)) or 'unknown'}")


def _in_half(salt: str, half: int) -> Callable[[RecordedRun], bool]:
    return lambda run: zlib.crc32(f"{salt}{run.name}".encode()) % 2 == half


def _rank(found: Score) -> tuple[bool, bool, float]:
    return found.recall >= ENOUGH, found.cut >= SAVED, -found.false_alarms


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)

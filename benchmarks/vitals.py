"""How the vitals do on recorded runs, what the loop limit would do there, and what a step costs.

usage: python -m benchmarks.vitals [DATA_FOLDER]      (default ../shared/data/pacemaker)

alarm face    one of the worst faces: mood 😔, focus 😵, stamina 💀
"""

import gzip
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pacing import recorded
from duckflow.pacemaker.interventions import DuckCall, Reason, Replan
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.pacemaker.signatures import LoopStep

SETTINGS = PacemakerSettings()
WORST_FACES = frozenset("😔😵💀")
SHARE = 0.05
LOW_FOCUS = 0.5
ROUNDS = 5


@dataclass
class Run:
    """One recorded run with its label."""

    succeeded: bool
    onset: int | None
    steps: list[LoopStep]


@dataclass
class Tally:
    """What is counted over all runs."""

    successes: int = 0
    steps: int = 0
    alarmed_steps: int = 0
    alarmed_runs: int = 0
    replanned_runs: int = 0
    out_of_loops: int = 0
    long_successes: int = 0
    called: int = 0
    low_before_call: int = 0
    least_stamina: list[float] = field(default_factory=list[float])


def read(folder: Path) -> Iterator[Run]:
    labels: dict[str, Any] = {}
    with (folder / "labels.dev.jsonl").open() as lines:
        for label in map(json.loads, lines):
            labels[label["id"]] = label
    with gzip.open(folder / "trajectories.dev.jsonl.gz", "rt") as lines:
        for run in map(json.loads, lines):
            if run.get("no_results"):
                continue
            label = labels[run["id"]]
            stuck = label["stuck"] and run["outcome"] is not True
            steps = [recorded(step) for step in run["steps"]]
            yield Run(run["outcome"] is True, label["onset"] if stuck else None, steps)


def watch_success(run: Run, tally: Tally) -> None:
    """The Duck Calls of a successful run are answered with "go on"; the faces are counted at every step."""
    pacemaker, alarmed, replanned, least = Pacemaker(SETTINGS), 0, False, 1.0
    for step in run.steps:
        pacemaker.observe(step)
        verdict = pacemaker.beat()
        health = pacemaker.health()
        alarmed += not WORST_FACES.isdisjoint(sign.face for sign in health)
        least = min(least, pacemaker.vitals.stamina)
        replanned |= isinstance(verdict, Replan)
        if isinstance(verdict, DuckCall):
            pacemaker.answered(verdict, "go_on")
    tally.successes += 1
    tally.steps += len(run.steps)
    tally.alarmed_steps += alarmed
    tally.alarmed_runs += alarmed > SHARE * len(run.steps)
    tally.replanned_runs += replanned
    tally.least_stamina.append(least)


def watch_stuck(run: Run, onset: int, tally: Tally) -> None:
    """Focus as it stands when the first Duck Call at or after the onset is put."""
    pacemaker = Pacemaker(SETTINGS)
    for number, step in enumerate(run.steps):
        pacemaker.observe(step)
        verdict = pacemaker.beat()
        if not isinstance(verdict, DuckCall):
            continue
        if number >= onset:
            tally.called += 1
            tally.low_before_call += pacemaker.vitals.focus < LOW_FOCUS
            return
        pacemaker = Pacemaker(SETTINGS)


def watch_loops(run: Run, tally: Tally) -> None:
    """Whether a successful run longer than the highest limit would be stopped for its loops."""
    if len(run.steps) <= SETTINGS.limits.highest:
        return
    tally.long_successes += 1
    pacemaker = Pacemaker(SETTINGS)
    for number, step in enumerate(run.steps, 1):
        pacemaker.observe(step)
        verdict = pacemaker.beat(LoopView(loop=number, profile="DEBUGGING", files=4, turns=1))
        if isinstance(verdict, DuckCall) and verdict.reason is Reason.LOOP_EXHAUSTED:
            tally.out_of_loops += 1
            return
        if isinstance(verdict, DuckCall):
            pacemaker.answered(verdict, "go_on", loop=number)


def microseconds(runs: list[Run]) -> float:
    """Cost of one step with its beat, in processor time; the best of some rounds, since the machine is shared."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for run in runs:
            pacemaker = Pacemaker(SETTINGS)
            for step in run.steps:
                pacemaker.observe(step)
                if isinstance(pacemaker.beat(), DuckCall):
                    pacemaker = Pacemaker(SETTINGS)
        best = min(best, time.process_time() - began)
    return 1e6 * best / sum(len(run.steps) for run in runs)


def main(folder: Path) -> None:
    runs, tally = list(read(folder)), Tally()
    for run in runs:
        if run.succeeded:
            watch_success(run, tally)
            watch_loops(run, tally)
        elif run.onset is not None:
            watch_stuck(run, run.onset, tally)
    print(f"successful runs: {tally.successes}, steps: {tally.steps}")
    print(f"  steps with an alarm face: {100 * tally.alarmed_steps / tally.steps:.2f} %")
    print(f"  runs with one on more than 5 % of their steps: {tally.alarmed_runs}")
    print(f"  runs that were told to plan anew: {tally.replanned_runs}")
    print(f"  least stamina, worst five: {[round(value, 2) for value in sorted(tally.least_stamina)[:5]]}")
    print(
        f"  longer than {SETTINGS.limits.highest} steps: {tally.long_successes}, of them stopped: {tally.out_of_loops}"
    )
    print(f"stuck runs with a Duck Call: {tally.called}, of them with focus below 0.5: {tally.low_before_call}")
    print(f"cost of a step: {microseconds(runs):.1f} µs")


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "pacemaker"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)

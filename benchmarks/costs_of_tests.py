"""Measures the processor time of each test, with that of the programs it starts.

usage: COSTS=FOLDER pytest -n 2 -p benchmarks.costs_of_tests
       python -m benchmarks.costs_of_tests FOLDER

The first command writes a file for each worker, a line for each case; the second prints the tests from the dearest
down: seconds of all cases, how many cases there are, and the name. `tests/long_tests.txt` is chosen from that table.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(process: int) -> float:
    """Returns the seconds that a process, its ended children and those still at work have taken."""
    try:
        _, _, fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")
        children = " ".join(path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        return 0.0
    # The fields behind the name begin with the third: times of the process, and of children that it has waited for.
    own = sum(int(ticks) for ticks in fields.split()[11:15]) / TICKS
    return own + sum(processor_time(int(child)) for child in children.split())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = processor_time(os.getpid())
    result = yield
    seconds = processor_time(os.getpid()) - before
    with (Path(os.environ["COSTS"]) / f"{os.getpid()}.tsv").open("a", encoding="utf-8") as lines:
        lines.write(f"{max(seconds, 0.0):.3f}\t{item.nodeid}\n")
    return result


def main(folder: Path) -> None:
    costs: dict[str, list[float]] = defaultdict(list)
    for file in folder.glob("*.tsv"):
        for line in file.read_text(encoding="utf-8").splitlines():
            seconds, _, name = line.partition("\t")
            costs[name.partition("[")[0]].append(float(seconds))
    for name, cases in sorted(costs.items(), key=lambda cost: -sum(cost[1])):
        print(f"{sum(cases):8.2f} {len(cases):5} {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""How many threads the model should use: one for each physical core this process may run on."""

import os
from pathlib import Path

SYSTEM = Path("/sys")


def usable_cores(system: Path = SYSTEM) -> int:
    """0 where the system does not tell; the server then decides by itself."""
    siblings = {_first_line(path) for path in _allowed_topologies(system)} - {""}
    limit = _container_limit(system)
    if not siblings:
        return limit
    return min(len(siblings), limit) if limit else len(siblings)


def _allowed_topologies(system: Path) -> list[Path]:
    if not hasattr(os, "sched_getaffinity"):
        return []
    cpus = system / "devices" / "system" / "cpu"
    return [cpus / f"cpu{number}" / "topology" / "thread_siblings_list" for number in os.sched_getaffinity(0)]


def _container_limit(system: Path) -> int:
    """CPUs' worth of time a container may use, rounded up; 0 without a limit."""
    quota, _, period = _first_line(system / "fs" / "cgroup" / "cpu.max").partition(" ")
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return 0
    return max(1, -(-int(quota) // int(period)))


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""

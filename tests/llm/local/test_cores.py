"""Threads for the model: physical cores, and no more than a container allows."""

import os
from pathlib import Path

import pytest

from duckflow.llm.local.server import usable_cores

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux tells which cores may be used")


def machine(folder: Path, siblings: str, quota: str) -> Path:
    for number in os.sched_getaffinity(0):
        topology = folder / f"devices/system/cpu/cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text((siblings or str(number)) + "\n")
    if quota:
        (folder / "fs/cgroup").mkdir(parents=True)
        (folder / "fs/cgroup/cpu.max").write_text(quota + "\n")
    return folder


def test_every_core_counts_once(tmp_path: Path) -> None:
    assert usable_cores(machine(tmp_path / "a", siblings="", quota="max 100000")) == len(os.sched_getaffinity(0))
    assert usable_cores(machine(tmp_path / "b", siblings="0-99", quota="")) == 1


@pytest.mark.parametrize(
    ("quota", "cores"), [("100000 100000", 1), ("50000 100000", 1), ("nonsense", None), ("", None)]
)
def test_the_limit_of_a_container_counts(tmp_path: Path, quota: str, cores: int | None) -> None:
    every = len(os.sched_getaffinity(0))
    assert usable_cores(machine(tmp_path, siblings="", quota=quota)) == (cores or every)


def test_without_facts_about_the_system_the_server_decides(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 0

"""A command that takes too much of the machine is ended, and says of what it took too much."""

import shutil
from pathlib import Path

import pytest
from shelling import Mark, shell_in

from duckflow.errors import ToolError
from duckflow.tools.shell.settings import ShellSettings

MEMORY = 'python3 -c "x = bytearray(300 << 20); import time; time.sleep(30)"'


@pytest.mark.parametrize("kind", ["auto", "landlock"])
async def test_too_many_processes_end_the_command(tmp_path: Path, kind: str) -> None:
    mark = Mark()
    shell = shell_in(tmp_path, kind, ShellSettings(max_processes=20))
    try:
        done = await shell.run(f"for n in $(seq 60); do sleep {mark.seconds} & done; wait", 20)
    except ToolError as problem:
        assert problem.key in ("shell.too_many_processes", "shell.timed_out")
    else:
        # An ordinary user's shell is refused the next process by the kernel, before anybody looks.
        assert "Resource temporarily unavailable" in done.for_model
    assert not mark.alive()


async def test_too_much_memory_ends_the_command(tmp_path: Path) -> None:
    problem = await shell_in(tmp_path, settings=ShellSettings(max_memory_mib=150)).problem(MEMORY, 25)
    assert problem.key == "shell.too_much_memory" and "limit is 150" in problem.for_model
    assert "exit code 0" in (await shell_in(tmp_path).run("echo fine")).for_model


async def test_a_disk_that_runs_full_ends_the_command(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free // 2**20
    shell = shell_in(tmp_path, settings=ShellSettings(min_free_mib=free - 100))
    problem = await shell.problem("head -c 400M /dev/zero > big; sleep 20", 25)
    assert problem.key == "shell.disk_full"


async def test_a_file_does_not_grow_beyond_its_limit(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=ShellSettings(max_file_mib=1))
    await shell.run("sleep 0.5; head -c 5M /dev/zero > big || true")
    assert (tmp_path / "big").stat().st_size <= 2**20


async def test_a_disk_that_was_full_before_ends_nothing(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free // 2**20
    shell = shell_in(tmp_path, settings=ShellSettings(min_free_mib=free + 10_000))
    assert "exit code 0" in (await shell.run("sleep 1.5; echo fine")).for_model

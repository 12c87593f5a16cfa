"""A command that takes too much of the machine is ended, and says of what it took too much."""

import shutil
from pathlib import Path

import pytest
from shelling import Mark, shell_in

from duckflow.errors import ToolError
from duckflow.tools.shell.settings import ShellSettings

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
SANDBOXES = [pytest.param("bubblewrap", marks=needs_bubblewrap), "landlock"]

TAKES_MEMORY = {
    "its own": "x = bytearray(300 << 20)",
    "shared": "import mmap; x = mmap.mmap(-1, 300 << 20); x.write(bytes(300 << 20))",
    "a file without a name": "import os; os.write(os.memfd_create('x'), bytes(300 << 20))",
    "many small processes": "import os; [os.fork() for _ in range(3)]; x = bytearray(40 << 20)",
}
FILLS = "head -c 40M /dev/zero > {place}/{name}"


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


@pytest.mark.parametrize("way", TAKES_MEMORY)
async def test_too_much_memory_ends_the_command(tmp_path: Path, way: str) -> None:
    command = f'python3 -c "{TAKES_MEMORY[way]}; import time; time.sleep(30)"'
    problem = await shell_in(tmp_path, settings=ShellSettings(max_memory_mib=150)).problem(command, 25)
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


@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize("place", ["/tmp", "$TMPDIR", "$TMPDIR/deep", "/var/tmp", "~/../tmp"])
async def test_temporary_files_have_a_limit(tmp_path: Path, kind: str, place: str) -> None:
    shell = shell_in(tmp_path, kind, ShellSettings(max_temporary_mib=20))
    made = f"mkdir -p {place}; {FILLS.format(place=place, name='big')} && sleep 20"
    try:
        done = await shell.run(made, 25)
    except ToolError as problem:
        assert problem.key == "shell.too_much_temporary"
    else:
        # Under Landlock a command has only one such place.
        assert kind == "landlock" and "exit code 0" not in done.for_model


@needs_bubblewrap
@pytest.mark.parametrize("place", ["/dev/shm", "/dev", "/dev/pts", "/run", "/proc", "/home", "/"])
async def test_no_mount_in_memory_can_be_filled(tmp_path: Path, place: str) -> None:
    """A quarter of what a command may take is left for /dev/shm."""
    shell = shell_in(tmp_path, "bubblewrap", ShellSettings(max_memory_mib=80))
    done = await shell.run(f"{FILLS.format(place=place, name='big')}; stat -c %b {place}/big")
    blocks = [int(line) for line in done.for_model.splitlines() if line.isdigit()]
    assert sum(blocks) * 512 <= 20 * 2**20
    if place == "/dev/shm":
        assert blocks and "No space left" in done.for_model


@needs_bubblewrap
async def test_programs_that_share_memory_work(tmp_path: Path) -> None:
    program = "from multiprocessing import Pool, shared_memory as s; m = s.SharedMemory(create=True, size=1 << 20)"
    program += "; print(Pool(2).map(abs, [-1])); m.buf[5] = 7; m.unlink()"
    done = await shell_in(tmp_path, "bubblewrap").run(f'python3 -c "{program}"')
    assert "[1]" in done.for_model and "exit code 0" in done.for_model

"""A command that takes too much of the machine is ended, and the message says what it took too much of."""

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest
from shelling import Mark, shell_in

from duckflow.errors import ToolError
from duckflow.tools.settings import ShellSettings

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
    limited = 'until [ "$(ulimit -f)" != unlimited ]; do sleep 0.05; done'
    await shell.run(f"{limited}; head -c 5M /dev/zero > big || true")
    assert (tmp_path / "big").stat().st_size <= 2**20


async def test_a_disk_that_was_full_before_ends_nothing(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free // 2**20
    shell = shell_in(tmp_path, settings=ShellSettings(min_free_mib=free + 10_000))
    assert "exit code 0" in (await shell.run("sleep 1.5; echo fine")).for_model


@pytest.mark.one_in(2)
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
        # Under Landlock a command has only one such place, and few homes lie beside one: elsewhere nothing is written.
        assert (kind == "landlock" or place == "~/../tmp") and "exit code 0" not in done.for_model


@needs_bubblewrap
@pytest.mark.parametrize("place", ["/dev/shm", "/dev", "/dev/pts", "/run", "/proc", "/home", "/"])
async def test_no_mount_in_memory_can_be_filled(tmp_path: Path, place: str) -> None:
    """A quarter of the memory that a command may take is left for /dev/shm."""
    shell = shell_in(tmp_path, "bubblewrap", ShellSettings(max_memory_mib=80))
    done = await shell.run(f"{FILLS.format(place=place, name='big')}; stat -c %b {place}/big")
    blocks = [int(line) for line in done.for_model.splitlines() if line.isdigit()]
    assert sum(blocks) * 512 <= 20 * 2**20
    if place == "/dev/shm":
        assert blocks and "No space left" in done.for_model


MANAGER = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
for word; do
  shift
  case $word in
    --property=MemoryMax=*) memory=${word##*=} ;;
    --) break ;;
  esac
done
test -S "$XDG_RUNTIME_DIR/systemd/private" && exec prlimit --data="${memory:-unlimited}" -- "$@"
"""
FAILING = "#!/bin/sh\nexit 3\n"


def manager_in(place: Path, monkeypatch: pytest.MonkeyPatch, program: str = MANAGER) -> Path:
    """A stand-in for the user's systemd: a socket, and a program that limits what it runs."""
    with contextlib.chdir(place), socket.socket(socket.AF_UNIX) as private:
        Path("run/systemd").mkdir(parents=True)
        Path("bin").mkdir()
        private.bind("run/systemd/private")
        Path("bin/systemd-run").write_text(program)
        Path("bin/systemd-run").chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    monkeypatch.setenv("PATH", f"{place}/bin:{os.environ['PATH']}")
    return place / "bin/asked"


@pytest.mark.parametrize("kind", SANDBOXES)
async def test_where_the_user_has_a_systemd_a_command_is_a_scope_of_its_own(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    asked = manager_in(tmp_path, monkeypatch)
    for name in ("env", "true", "systemd-run"):
        (work / "bin" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hit\n")
        (work / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}/bin:{os.environ['PATH']}")
    shell = shell_in(work, kind, ShellSettings(max_memory_mib=300, max_processes=50))
    done = await shell.run("python3 -c 'x = bytearray(400 << 20)'; echo seen: $XDG_RUNTIME_DIR.")
    assert "MemoryError" in done.for_model and "seen: ." in done.for_model
    _, scope = asked.read_text().splitlines()
    assert f"--property=MemoryMax={300 << 20}" in scope and "--property=TasksMax=58" in scope
    assert "seen: ." in (await shell.run("echo seen: $XDG_RUNTIME_DIR.")).for_model
    assert len(asked.read_text().splitlines()) == 3, "whether there is a manager is tried once"
    assert not (tmp_path / "hit").exists(), "nothing of the folder runs outside of the sandbox"


@pytest.mark.parametrize("why", ["it fails", "it lies in the work folder", "no manager runs"])
async def test_without_a_manager_that_works_commands_run_as_ever(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path if why == "it lies in the work folder" else tmp_path / "work"
    work.mkdir(exist_ok=True)
    asked = manager_in(tmp_path, monkeypatch, FAILING if why == "it fails" else MANAGER)
    if why == "no manager runs":
        (tmp_path / "run/systemd/private").unlink()
    assert "exit code 0" in (await shell_in(work).run("echo fine")).for_model
    assert not asked.exists()


@needs_bubblewrap
async def test_programs_that_share_memory_work(tmp_path: Path) -> None:
    program = "from multiprocessing import Pool, shared_memory as s; m = s.SharedMemory(create=True, size=1 << 20)"
    program += "; print(Pool(2).map(abs, [-1])); m.buf[5] = 7; m.unlink()"
    done = await shell_in(tmp_path, "bubblewrap").run(f'python3 -c "{program}"')
    assert "[1]" in done.for_model and "exit code 0" in done.for_model

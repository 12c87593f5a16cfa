"""A command that reaches for the first process of its sandbox, which is bubblewrap itself: its program lies on a mount
that can be written, it ends when Duckflow does, and it tells Duckflow that the command has ended."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")

LIBRARY = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
SYSCALL = LIBRARY + "print('GOT' if libc.syscall({}) >= 0 else 'refused')"
TRIES = {
    "its mode": "import os; os.chmod('/proc/1/exe', os.stat('/proc/1/exe').st_mode & 0o7777); print('GOT')",
    "its times": "import os; a = os.stat('/proc/1/exe'); os.utime('/proc/1/exe', ns=(a.st_atime_ns, a.st_mtime_ns)); "
    "print('GOT')",
    "a handle of its program": "import os; os.open('/proc/1/exe', os.O_RDONLY); print('GOT')",
    "by its thread": "import os; os.open('/proc/1/task/1/exe', os.O_RDONLY); print('GOT')",
    "by a way around": "import os; os.open('/proc/self/task/../../1/exe', os.O_RDONLY); print('GOT')",
    "by a handle of the folder": "import os; p = os.open('/proc', 0); os.open('1/exe', 0, dir_fd=p); print('GOT')",
    "its root": "import os; print('GOT', os.listdir('/proc/1/root'))",
    "its folder": "import os; print('GOT', os.listdir('/proc/1/cwd'))",
    "its open files": "import os; print('GOT', os.listdir('/proc/1/fd'))",
    "its memory": "print('GOT', open('/proc/1/mem', 'rb'))",
    "its maps": "print('GOT', open('/proc/1/maps').read())",
    "tracing by SEIZE": SYSCALL.format("101, 0x4206, 1, 0, 0"),
    "tracing by ATTACH": SYSCALL.format("101, 16, 1, 0, 0"),
    "tracing, a number with more bits": SYSCALL.format("101, 0x4206, ctypes.c_long(2**32 + 1), 0, 0"),
    "reading its memory": SYSCALL.format("310, 1, None, 0, None, 0, 0"),
    "writing its memory": SYSCALL.format("311, 1, None, 0, None, 0, 0"),
    "a file of its own": SYSCALL.format("438, os.pidfd_open(1), 0, 0"),
    "the file by which it tells the end": SYSCALL.format("438, os.pidfd_open(1), 3, 0"),
}
TRACES_ITS_OWN = LIBRARY + (
    "child = os.fork()\n"
    "if not child: import time; time.sleep(20)\n"
    "print('traced' if libc.syscall(101, 0x4206, child, 0, 0) == 0 else 'refused'); os.kill(child, 9)"
)


def run(sandbox: Sandbox, code: str) -> subprocess.CompletedProcess[str]:
    launch = sandbox.confine(Launch((PYTHON, "-I", "-c", code), sandbox.paths.folder, {"PATH": "/usr/bin:/bin"}))
    try:
        return subprocess.run(
            launch.argv, pass_fds=launch.fds, env=launch.environment, capture_output=True, text=True, check=False
        )
    finally:
        launch.close()


PYTHON = str(Path(sys.executable).resolve())


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return choose(SandboxSettings(kind="bubblewrap"), tmp_path)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("code", TRIES.values(), ids=list(TRIES))
def test_nothing_reaches_the_first_process(sandbox: Sandbox, code: str) -> None:
    if "libc.syscall" in code and platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    done = run(sandbox, code)
    said = done.stdout + done.stderr
    assert "GOT" not in said
    assert "refused" in said or "No such file" in said


def test_a_command_may_trace_its_own_processes(sandbox: Sandbox) -> None:
    assert "traced" in run(sandbox, TRACES_ITS_OWN).stdout

"""Tests once more as a user without any powers, when they are run by root."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
NOBODY = pwd.getpwnam("nobody")
PYTHONS = (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")

only_for_root = pytest.mark.skipif(os.getuid() != 0, reason="not root: they already run as an ordinary user")


def run_tests_as_nobody(*arguments: str) -> str:
    """What pytest prints at the end. Fails when one of them fails."""
    python = next(filter(_usable, PYTHONS), None)
    if python is None:
        pytest.skip("no Python here that another user may run")
    with _yard() as yard:
        given = ("-p", "no:cacheprovider", "--inline-snapshot=disable", f"--basetemp={yard}/tests", *arguments)
        done = _as_nobody(python, "-m", "pytest", *given, yard=yard)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert " passed" in done.stdout
    return done.stdout.strip().splitlines()[-1]


def _as_nobody(python: str, *arguments: str, yard: str = "/tmp") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        cwd=TOP,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": yard,
            "TMPDIR": yard,
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SANDBOX_YARD": yard,
        },
        user=NOBODY.pw_uid,
        group=NOBODY.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def _usable(python: str) -> bool:
    """Whether nobody may run it, and it finds what the tests need."""
    try:
        return _as_nobody(python, "-c", "import pydantic, pytest").returncode == 0
    except OSError:
        return False


@contextmanager
def _yard() -> Generator[str]:
    top = Path(tempfile.mkdtemp(prefix="duckflow-yard-", dir="/var/lib"))
    os.chown(top, NOBODY.pw_uid, NOBODY.pw_gid)
    try:
        yield str(top)
    finally:
        shutil.rmtree(top, ignore_errors=True)

"""The same attacks as a user without any powers, when the tests run as root."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
NOBODY = pwd.getpwnam("nobody")
PYTHONS = (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")


def as_nobody(python: str, *arguments: str, yard: str = "/tmp") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        cwd=TOP,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": yard,
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


def usable(python: str) -> bool:
    """Whether nobody may run it, and it finds what the tests need."""
    try:
        return as_nobody(python, "-c", "import pydantic, pytest").returncode == 0
    except OSError:
        return False


@pytest.fixture
def yard() -> Generator[str]:
    top = Path(tempfile.mkdtemp(prefix="duckflow-yard-", dir="/var/lib"))
    os.chown(top, NOBODY.pw_uid, NOBODY.pw_gid)
    yield str(top)
    shutil.rmtree(top)


@pytest.mark.skipif(os.getuid() != 0, reason="not root: the attacks already run as an ordinary user")
def test_nothing_more_gets_through_as_an_ordinary_user(yard: str) -> None:
    python = next(filter(usable, PYTHONS), None)
    if python is None:
        pytest.skip("no Python here that another user may run")
    tests = [str(Path(__file__).with_name(name)) for name in ("test_attacks.py", "test_git_guard.py")]
    done = as_nobody(python, "-m", "pytest", "-p", "no:cacheprovider", "-k", "not real", *tests, yard=yard)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout

"""A place to try a sandbox: a work folder, a home with a secret, and things outside that must stay as they are."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.bubblewrap import TEMPORARY
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

SECRET = "a-secret-that-nobody-may-read"
TOP = Path(__file__).parents[3]
SECONDS = 60

PYTHON = str(Path(sys.executable).resolve())
"""The interpreter itself: a virtual environment may lie where the sandbox hides it."""


@dataclass(frozen=True)
class Ran:
    """The result of a command."""

    code: int
    output: str
    meddled: tuple[str, ...]


@dataclass
class Yard:
    """The place of a test. Its folders are outside /tmp, since a sandbox may have a /tmp of its own."""

    top: Path
    folder: Path
    home: Path
    outside: Path
    victim: "subprocess.Popen[bytes]"
    tcp: socket.socket = field(default_factory=lambda: _listener(socket.AF_INET, socket.SOCK_STREAM))
    udp: socket.socket = field(default_factory=lambda: _listener(socket.AF_INET, socket.SOCK_DGRAM))

    def sandbox(self, settings: SandboxSettings) -> Sandbox:
        return choose(settings, self.folder, private=[self.top / "private"], home=self.home)

    def run(self, sandbox: Sandbox, command: str, network: bool = False, writes: bool = True) -> Ran:
        plain = Launch(("/bin/sh", "-c", command), self.folder, self.environment())
        launch = sandbox.confine(plain, network, writes)
        try:
            done = subprocess.run(
                launch.argv,
                pass_fds=launch.fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=launch.folder,
                env=launch.environment,
                start_new_session=True,
                timeout=SECONDS,
                check=False,
            )
            return Ran(done.returncode, done.stdout.decode(errors="replace"), launch.meddled())
        finally:
            launch.close()

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "O": str(self.outside),
            "VICTIM": str(self.victim.pid),
            "PYTHON": PYTHON,
            "TCP": str(self.tcp.getsockname()[1]),
            "UDP": str(self.udp.getsockname()[1]),
        }


@contextmanager
def yard() -> Generator[Yard]:
    beside = Path.home() / ".cache" if any(TOP.is_relative_to(top) for top in TEMPORARY) else TOP / ".pytest_cache"
    base = Path(os.environ.get("SANDBOX_YARD") or beside)
    base.mkdir(exist_ok=True)
    top = Path(tempfile.mkdtemp(prefix="yard-", dir=base))
    victim = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "HIDDEN": SECRET})
    made = Yard(top, top / "work", top / "home", top / "outside", victim)
    try:
        _fill(made)
        yield made
    finally:
        victim.kill()
        victim.wait()
        made.tcp.close()
        made.udp.close()
        shutil.rmtree(top, ignore_errors=True)


def _fill(made: Yard) -> None:
    for folder in (made.folder, made.outside / "folder", made.home / ".ssh", made.top / "private"):
        folder.mkdir(parents=True)
    (made.outside / "file").write_text("as it was\n")
    for path in (made.home / ".ssh/id_ed25519", made.home / ".netrc", made.top / "private/journal"):
        path.write_text(SECRET)
    (made.home / "link").symlink_to(made.home / ".ssh")


def _listener(family: int, kind: int) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(("127.0.0.1", 0))
    made.settimeout(0)
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made

"""Which sandbox this machine has. Each is tried once with a real command: being installed is not being usable."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from duckflow.safety.sandbox.grounds import Grounds
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.seatbelt import PROGRAM, Seatbelt
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.sandbox.unconfined import Unconfined
from duckflow.state.phrase import say

TRY_SECONDS = 10.0
ATTEMPT = ("sh", "-c", "exit 0")


def choose(
    settings: SandboxSettings, folder: Path, private: Sequence[Path] = (), home: Path | None = None
) -> Sandbox:
    """The best that works here. `private`: folders that no command may see, such as Duckflow's own."""
    grounds = Grounds(folder.resolve(), (home or Path.home()).resolve(), settings, tuple(private))
    if settings.kind == "none":
        return Unconfined(grounds, say("sandbox.off"))
    if sys.platform == "darwin":
        return _seatbelt(grounds)
    if sys.platform != "linux":
        return Unconfined(grounds, say("sandbox.none_here"))
    return _on_linux(grounds)


def _seatbelt(grounds: Grounds) -> Sandbox:
    sandbox = Seatbelt(grounds)
    problem = _fails(sandbox) if Path(PROGRAM).exists() else "sandbox-exec"
    return Unconfined(grounds, say("sandbox.none_broken", reason=problem)) if problem else sandbox


def _on_linux(grounds: Grounds) -> Sandbox:
    from duckflow.safety.sandbox.seccomp import machine

    known = machine()
    if known is None:
        return Unconfined(grounds, say("sandbox.none_here"))
    wanted = grounds.settings.kind
    problem = ""
    if wanted != "landlock":
        program = shutil.which("bwrap")
        if program:
            from duckflow.safety.sandbox.bubblewrap import Bubblewrap

            sandbox = Bubblewrap(program, known, grounds)
            problem = _fails(sandbox)
            if not problem:
                return sandbox
    ...

"""Starting a command by the launcher; and no sandbox: the command can do what the user can, but nothing outlives it."""

import marshal
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from duckflow.safety.sandbox.repositories import repositories
from duckflow.safety.sandbox.sandbox import Launch, Sandbox

# As a module and not as a script, so that Python keeps it compiled.
START = "import sys; sys.path.append(sys.argv[1]); import launcher; launcher.main(int(sys.argv[2]), int(sys.argv[3]))"
HERE = str(Path(__file__).parent)
UNRESTRICTED = (0, 0, 0)


def launch_by_orders(
    command: Sequence[str],
    handled: tuple[int, int, int] = UNRESTRICTED,
    rules: Sequence[tuple[int, str]] = (),
    program: bytes = b"",
) -> Launch:
    """A launch through the launcher, which ends everything when its lifeline is let go."""
    orders = os.memfd_create("orders")
    data = memoryview(marshal.dumps((list(command), handled, list(rules), program)))
    while data:
        data = data[os.write(orders, data) :]
    os.lseek(orders, 0, os.SEEK_SET)
    lifeline, held = os.pipe()
    argv = (sys.executable, "-I", "-S", "-c", START, HERE, str(orders), str(lifeline))
    return Launch(argv=argv, fds=(orders, lifeline), lifeline=held)


class Unconfined(Sandbox):
    """Every command must be asked for."""

    kind = "none"

    def launch(self, command: Sequence[str], network: bool = False, writes: bool = True) -> Launch:
        found = repositories(self.paths.folder)
        before = found.traces()
        launch = launch_by_orders(command) if sys.platform == "linux" else Launch(argv=command)
        launch.environment["TMPDIR"] = str(self.paths.scratch.folder)
        launch.meddled = lambda: found.meddled(before, self.paths.folder)
        return launch

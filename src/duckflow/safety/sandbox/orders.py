"""Orders for the launcher."""

import marshal
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from duckflow.safety.sandbox.launcher import Orders
from duckflow.safety.sandbox.sandbox import Launch

LAUNCHER = Path(__file__).with_name("launcher.py")
UNRESTRICTED = (0, 0, 0)


def launch_by_orders(
    command: Sequence[str],
    handled: tuple[int, int, int] = UNRESTRICTED,
    rules: Sequence[tuple[int, str]] = (),
    filter: bytes = b"",
) -> Launch:
    """A launch through the launcher, which ends everything when it is asked to."""
    orders = Orders(parent=os.getpid(), command=list(command), handled=handled, rules=list(rules), filter=filter)
    file = os.memfd_create("orders")
    with open(file, "wb", closefd=False) as stream:
        stream.write(marshal.dumps(orders))
    os.lseek(file, 0, os.SEEK_SET)
    argv = (sys.executable, "-I", "-S", str(LAUNCHER), str(file), *command)
    return Launch(argv=argv, fds=(file,), end_signal=signal.SIGTERM)

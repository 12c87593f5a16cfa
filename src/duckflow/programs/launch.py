"""How one program is started."""

import contextlib
import marshal
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# As a module and not as a script, so that Python keeps it compiled.
START = "import sys; sys.path.append(sys.argv[1]); import launcher; launcher.main(int(sys.argv[2]), int(sys.argv[3]))"
HERE = str(Path(__file__).parent)
UNRESTRICTED = (0, 0, 0)


def nothing() -> tuple[str, ...]:
    return ()


@dataclass
class Launch:
    """How to start one command: spawn `argv` with `fds` inherited, call `started`, and `close` when it has ended."""

    argv: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    fds: tuple[int, ...] = ()
    meddled: Callable[[], tuple[str, ...]] = nothing
    """Called at the end: files that make git run programs, and that the command changed all the same."""
    info: int | None = None
    """Where bubblewrap tells its first process."""
    lifeline: int | None = None
    """Closing it ends everything that the launcher looks after."""

    def __post_init__(self) -> None:
        self.takes_along = self.info is not None or self.lifeline is not None
        """Whether all processes of the command end with it, those that left its group too."""

    def started(self) -> None:
        """The child has its own copies now."""
        close_all(self.fds)
        self.fds = ()

    def close(self) -> None:
        self.started()
        close_all(fd for fd in (self.info, self.lifeline) if fd is not None)
        self.info = self.lifeline = None


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


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)

"""What a sandbox is: it turns a command into one that cannot do harm."""

import contextlib
import os
import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.state.phrase import Phrase

if TYPE_CHECKING:
    from duckflow.safety.sandbox.process_tree import ProcessTree

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]
CHILD = re.compile(rb'"child-pid"\s*:\s*(\d+)')


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
    _first: int | None = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)
    _processes: "ProcessTree | None" = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.takes_along = self.info is not None or self.lifeline is not None
        """Whether all processes of the command end with it, those that left its group too."""

    def started(self) -> None:
        """The child has its own copies now."""
        close_all(self.fds)
        self.fds = ()

    def first_process(self) -> int | None:
        """The process that all others in the sandbox die with; none when there is no such process."""
        if self.info is not None and self._first is None:
            with contextlib.suppress(OSError):
                found = CHILD.search(os.read(self.info, 4096))
                self._first = int(found[1]) if found else None
        return self._first

    def stop(self, pid: int) -> bool:
        """One look at all processes of the command: those that move are stopped. Whether none moved; else look again.
        The launcher is not stopped: it sees to it that nothing is left when Duckflow dies."""
        if not self.takes_along:
            return _signal_group(pid, signal.SIGSTOP)
        from duckflow.safety.sandbox.process_tree import ProcessTree

        if self._processes is None:
            self._processes = ProcessTree(pid, head_too=self.lifeline is None)
        return self._processes.stop()

    def go_on(self, pid: int) -> None:
        if self._processes:
            self._processes.go_on()
        elif not self.takes_along:
            _signal_group(pid, signal.SIGCONT)

    def end(self, pid: int) -> None:
        """End all processes of the command; `pid` is the one that was spawned. Once is enough."""
        if self._ended:
            return
        self._ended = True
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None
        elif self.info is not None:
            from duckflow.safety.sandbox.process_tree import end_process_tree

            end_process_tree(pid)
        else:
            _signal_group(pid, signal.SIGKILL)

    def close(self) -> None:
        self.started()
        close_all(fd for fd in (self.info, self.lifeline) if fd is not None)
        self.info = self.lifeline = None


class Sandbox(ABC):
    """Runs commands where they cannot do harm. `says` tells people what holds here."""

    kind: ClassVar[Kind]

    def __init__(self, paths: SandboxPaths, says: Phrase) -> None:
        self.paths = paths
        self.says = says

    @abstractmethod
    def launch(self, command: Sequence[str], network: bool = False, writes: bool = True) -> Launch:
        """Without `writes` even the work folder is read-only, where the sandbox can do that."""

    def close(self) -> None:
        """Remove what was kept for the commands: their temporary files."""
        self.paths.scratch.close()


def _signal_group(pid: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
        return True
    return False


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)

"""What a sandbox is: it turns a command into one that cannot do harm."""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.state.phrase import Phrase

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]


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


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)

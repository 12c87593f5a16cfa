"""What a sandbox is: it turns a command into one that cannot do harm."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from duckflow.programs.launch import Launch, launch_by_orders
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.repositories import repositories
from duckflow.state.phrase import Phrase

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]


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


class Unconfined(Sandbox):
    """No sandbox: the command can do what the user can, but nothing outlives it. Every command must be asked for."""

    kind = "none"

    def launch(self, command: Sequence[str], network: bool = False, writes: bool = True) -> Launch:
        found = repositories(self.paths.folder)
        before = found.traces()
        launch = launch_by_orders(command) if sys.platform == "linux" else Launch(argv=command)
        launch.environment["TMPDIR"] = str(self.paths.scratch.folder)
        launch.meddled = lambda: found.meddled(before, self.paths.folder)
        return launch

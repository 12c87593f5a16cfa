"""The interface of a sandbox: it turns the launch of a command into one that cannot do harm."""

import sys
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from typing import ClassVar, Literal, Self

from duckflow.programs.launch import Launch, on_lifeline
from duckflow.safety.environment import caches, folder_caches
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.repositories import repositories
from duckflow.state.data import Phrase

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]
SecretAccess = Literal["none", "read", "write"]
"""The access of a command to the secret files of its folder."""


class Sandbox(ABC):
    """Runs commands where they cannot do harm. `says` tells people what this sandbox stops."""

    kind: ClassVar[Kind]

    def __init__(self, paths: SandboxPaths, says: Phrase) -> None:
        self.paths = paths
        self.says = says

    @abstractmethod
    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        """Returns the launch in the sandbox. Without `writes` even the work folder is read-only. `secrets` says what
        the command may do with its secret files, where that can be enforced."""

    def reaching(self, paths: SandboxPaths) -> Self:
        """Returns the same sandbox for a command that may reach other places. Its scratch folder stays the same."""
        new_sandbox = copy(self)
        new_sandbox.paths = paths
        return new_sandbox

    def within(self, limit: tuple[str, ...]) -> Self:
        """Returns the same sandbox for a command that may change only these files and folders of the work folder."""
        return self.reaching(replace(self.paths, limit=limit))

    def environment(self, launch: Launch, temporary: str) -> dict[str, str]:
        """Returns the launch's environment, with a place for temporary files and caches."""
        seen = launch.environment
        own_caches = {} if self.paths.limit is None else folder_caches(seen, temporary)
        return {**caches(seen, temporary), **seen, **own_caches, "TMPDIR": temporary}

    def close(self) -> None:
        """Removes the commands' temporary files."""
        self.paths.scratch.close()


class Unconfined(Sandbox):
    """Stands for no sandbox: a command can do everything that the user can, but its processes end with it. The user is
    asked before every command."""

    kind = "none"

    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        git_places = repositories(self.paths.folder)
        traces_before = git_places.traces()
        return replace(
            on_lifeline(launch) if sys.platform == "linux" else launch,
            temporary=self.paths.scratch.folder,
            environment=self.environment(launch, str(self.paths.scratch.folder)),
            meddled=lambda: git_places.meddled(traces_before, self.paths.folder),
        )


class Contained(Sandbox):
    """The machine itself is the sandbox: a command runs without limits, and services that it starts go on after it
    ends."""

    kind = "none"

    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        return replace(launch, leaves_rest=True)

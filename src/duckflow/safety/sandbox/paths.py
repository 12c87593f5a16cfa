"""What commands may touch: folders to write in, and places that they must not see."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.safety.path_names import IN_HOME, ON_THE_MACHINE
from duckflow.safety.sandbox.scratch import Scratch
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.secret_index import CoveredSecret, secret_index


@dataclass(frozen=True)
class SandboxPaths:
    """The same for every kind of sandbox."""

    folder: Path
    home: Path
    settings: SandboxSettings
    private: tuple[Path, ...] = ()
    """Duckflow's own data: the record of what was done must not be written by what did it."""
    scratch: Scratch = field(default_factory=Scratch)

    def writable(self) -> tuple[Path, ...]:
        """The work folder and what the settings add to it, as far as it is there."""
        added = [self._place(name) for name in self.settings.writable]
        return (self.folder, *(Path(os.path.realpath(path)) for path in added if path.exists()))

    def hidden(self) -> tuple[Path, ...]:
        """Real paths of what must not be read, outermost only; what this user cannot read anyway is left out."""
        shown = {str(self._place(name)) for name in self.settings.shown}
        # As texts: most of them are not there, and a command waits for this.
        named = [*(f"{self.home}/{name}" for name in IN_HOME), *ON_THE_MACHINE]
        wanted = [path for path in named if path not in shown]
        wanted += [str(self._place(name)) for name in self.settings.hidden] + [str(path) for path in self.private]
        return outermost(Path(os.path.realpath(path)) for path in wanted if os.access(path, os.R_OK))

    def covered(self) -> tuple[CoveredSecret, ...]:
        """The secret files of the work folder that no command gets to see unless the user says so."""
        shown = {str(self._place(name)) for name in self.settings.shown}
        return tuple(one for one in secret_index(self.folder).covered() if str(self.folder / one.path) not in shown)

    def _place(self, name: str) -> Path:
        return self.home / name[2:] if name == "~" or name.startswith("~/") else self.folder / name


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(parent) for parent in kept):
            kept.append(path)
    return tuple(kept)


def between(top: Path, path: Path) -> tuple[Path, ...]:
    """The folders strictly between the two, outermost first; none when `path` is not beneath `top`."""
    if not path.is_relative_to(top):
        return ()
    return tuple(parent for parent in reversed(path.parents) if parent != top and parent.is_relative_to(top))

"""Command lines that start and remove the podman or docker container of an attempt."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import UsageError
from duckflow.programs.find import find_program

ENGINES = ("podman", "docker")
LABEL = "duckflow"


class Container(NamedTuple):
    """A container image, and the parts of this machine that it gets: folders under the same paths, named variables."""

    engine: str
    image: str
    name: str
    folder: Path
    writable: Sequence[Path]
    readable: Sequence[Path]
    variables: Iterable[str]

    def running(self, command: Sequence[str]) -> tuple[str, ...]:
        """Returns the command line that runs `command` in the container. It names the variables without their values,
        because everybody on the machine can read command lines."""
        # Files that the container writes must belong to the user, in either engine.
        as_user = (
            ("--userns=keep-id",) if Path(self.engine).name == "podman" else ("--user", f"{os.getuid()}:{os.getgid()}")
        )
        words = [self.engine, "run", "--rm", "--init", "--interactive", "--name", self.name, "--label", LABEL, *as_user]
        words += ["--workdir", str(self.folder), "--env", "HOME=/tmp"]
        words += [word for path in self.writable for word in ("--volume", f"{path}:{path}")]
        words += [word for path in self.readable for word in ("--volume", f"{path}:{path}:ro")]
        words += [word for name in sorted(self.variables) for word in ("--env", name)]
        return (*words, self.image, *command)

    def removing(self) -> tuple[str, ...]:
        return (self.engine, "rm", "--force", self.name)


def container_engine() -> str:
    for name in ENGINES:
        if engine := find_program(name):
            return engine
    raise UsageError("fleet.no_container", known=", ".join(ENGINES))


def container_name(folder: Path) -> str:
    """Returns a fixed name for each worktree, so that the next worker finds the container that a dead one has left."""
    return f"{LABEL}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"

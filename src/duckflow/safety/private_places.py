"""Places that no tool opens, even where they lie inside the work folder: keys, logins, Duckflow's own state."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.sandbox.secrets import IN_HOME
from duckflow.safety.shown import shown


def private_places(folder: Path, home: Path, own: Iterable[Path], opened: Sequence[str] = ()) -> tuple[Path, ...]:
    """Those beneath the folder, whether they are there yet or not; and Duckflow's own ones around it as well.

    `opened`: what the user's settings let commands read, such as `~/.npmrc`."""
    top, real_home = os.path.realpath(folder), os.path.realpath(home)
    named = [f"{real_home}/{name}" for name in IN_HOME if f"~/{name}" not in opened]
    beneath = [path for path in named if path.startswith(top.rstrip("/") + "/")]
    # A link to a place of keys makes that place private too.
    places = {Path(path) for path in beneath} | {Path(os.path.realpath(path)) for path in beneath}
    places |= {Path(os.path.realpath(path)) for path in own}
    return tuple(sorted(path for path in places if path.is_relative_to(top) or Path(top).is_relative_to(path)))


def refuse_private(places: Iterable[Path], real: Path, given: str, whole: bool = False) -> None:
    """`whole`: all that lies in it is meant too, as when it is moved or deleted."""
    for place in places:
        if real.is_relative_to(place) or (whole and place.is_relative_to(real)):
            name = shown(given)
            raise PathRefused(
                f"{name} is private (keys, logins, or Duckflow's own state): no tool opens or changes it. "
                "Do without it, or tell the user.",
                "path.private",
                path=name,
            )


def path_of_handle(handle: int) -> Path | None:
    """Where an open folder really lies; nothing where the system does not tell."""
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    except OSError:
        return None

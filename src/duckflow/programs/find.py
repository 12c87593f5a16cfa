"""Programs that Duckflow starts by itself. None comes from the work folder, whose files others may have made."""

import os
import shutil
from pathlib import Path

_found: dict[tuple[str, str, str], str] = {}


def find_program(name: str, folder: Path | None = None, search_path: str | None = None) -> str | None:
    """Where it lies outside of the work folder, which is where Duckflow runs unless another is given.

    What was found stays: a program that turns up later is not taken in its place."""
    path = os.environ.get("PATH", os.defpath) if search_path is None else search_path
    wanted = name, str((folder or Path.cwd()).resolve()), path
    if wanted not in _found and (found := _find(*wanted)):
        _found[wanted] = found
    return _found.get(wanted)


def find_shell(folder: Path) -> str:
    """The shell for a command in that folder."""
    return find_program("bash", folder) or "/bin/sh"


def path_outside(folder: Path, search_path: str) -> str:
    """The places of programs without those in the folder and without relative ones."""
    top, places = str(folder.resolve()), search_path.split(os.pathsep)
    outside = [place for place in places if Path(place).is_absolute() and not _beneath(Path(place), top)]
    return os.pathsep.join(outside) or os.defpath


def _find(name: str, folder: str, search_path: str) -> str | None:
    places = (str(Path(name).parent),) if "/" in name else search_path.split(os.pathsep)
    for place in places:
        found = shutil.which(Path(name).name, path=place) if Path(place).is_absolute() else None
        if found and not any(_beneath(path, folder) for path in (Path(place), Path(found))):
            return found
    return None


def _beneath(path: Path, folder: str) -> bool:
    """By its name or by where it leads to. Everything lies beneath `/`: there the rule would leave no program."""
    return folder != "/" and any(one.is_relative_to(folder) for one in (path, path.resolve()))

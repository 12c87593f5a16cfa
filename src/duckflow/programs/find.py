"""Programs that Duckflow starts by itself. None comes from the work folder, whose files others may have made."""

import os
import shutil
import sys
from pathlib import Path

VARIABLE = "PYTHONPATH"
OWN = os.path.realpath(f"{__file__}/../../..")
"""Where the package itself lies."""
STANDARD = os.path.realpath(f"{os.__file__}/..")
PACKAGES = ("/site-packages", "/dist-packages")
_given: dict[str, str] = {}


def keep_modules_out(folder: str) -> None:
    """From now on nothing is imported from the folder, from one in it, or from one that holds it."""
    here = os.path.realpath(folder)
    sys.path[:] = [place for place in sys.path if not _is_near(place, here)]
    if VARIABLE in os.environ:
        given = os.environ[VARIABLE]
        _given.setdefault(VARIABLE, given)
        os.environ[VARIABLE] = os.pathsep.join(place for place in given.split(os.pathsep) if not _is_near(place, here))


def user_environment() -> dict[str, str]:
    """The variables as the user has set them, for programs of the user's."""
    return {**os.environ, **_given}


def _is_near(place: str, here: str) -> bool:
    real = os.path.realpath(place)
    if real == OWN or here == os.sep or _is_installed(real):
        return False
    return os.path.commonpath((real, here)) in (real, here)


def _is_installed(real: str) -> bool:
    """The standard library, and the packages of the environment that Duckflow runs in."""
    if real.startswith(STANDARD):
        return True
    prefixes = tuple(os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix))
    return real.endswith(PACKAGES) and real.startswith(prefixes)


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

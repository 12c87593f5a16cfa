"""Keeps modules of a work folder out of Duckflow itself, and out of the processes of its own that it starts.

`python -m` and PYTHONPATH let Python look for modules in the folder that one is in. A model writes there, and what it
calls `xml.py` would run in Duckflow's own process, with all rights of the user."""

import os
import sys

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

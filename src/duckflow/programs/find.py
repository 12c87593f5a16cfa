"""Finds programs that Duckflow starts by itself. No program is taken from the work folder, whose files others may have
made."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "PYTHONPATH"
OWN = os.path.realpath(f"{__file__}/../../..")
"""The folder in which the package `duckflow` lies."""
STANDARD = os.path.realpath(f"{os.__file__}/..")
PACKAGES = ("/site-packages", "/dist-packages")
MAIN_REPOSITORY = "DUCKFLOW_FLEET_REPOSITORY"
"""A variable with the path of the main repository, for a process that works in a worktree of it. Other sessions work in
that repository, so its programs are trusted no more than those of the work folder."""
INSTALLED = ("bin", "lib", "lib64", "pyvenv.cfg")
TEMPORARY_VARIABLE = "TMPDIR"
TEMPORARY = ("/var/tmp", "/tmp")
"""Folders for temporary files that every system has."""
RUN_MODULE = (
    "import runpy, sys; sys.path[:] = sys.argv.pop(1).split(':'); "
    "runpy.run_module(sys.argv.pop(1), {}, '__main__', True)"
)
users_variables: dict[str, str] = {}
"""The user's own values of the variables that Duckflow has changed for itself."""


def keep_modules_out(folder: str) -> None:
    """Keeps Python from importing anything from this folder, from a folder in it, or from a folder that contains it."""
    real_folder = os.path.realpath(folder)
    sys.path[:] = [search_folder for search_folder in sys.path if not _is_near(search_folder, real_folder)]
    if VARIABLE in os.environ:
        search_path = os.environ[VARIABLE]
        users_variables.setdefault(VARIABLE, search_path)
        os.environ[VARIABLE] = os.pathsep.join(
            search_folder for search_folder in search_path.split(os.pathsep) if not _is_near(search_folder, real_folder)
        )


def keep_temporary_files_out(folders: Iterable[str | Path]) -> None:
    """Keeps temporary files of this process, and of the programs that it starts, out of these folders. A command that
    writes there could swap such a file for a link, or change it."""
    import tempfile

    tops = [os.path.realpath(folder) for folder in folders]
    places = [path for path in map(os.path.realpath, (tempfile.gettempdir(), *TEMPORARY)) if os.access(path, os.W_OK)]
    outer_places = [place for place in places if not any(os.path.commonpath((top, place)) == top for top in tops)]
    if outer_places and outer_places[0] != places[0]:
        if TEMPORARY_VARIABLE in os.environ:
            users_variables.setdefault(TEMPORARY_VARIABLE, os.environ[TEMPORARY_VARIABLE])
        tempfile.tempdir = os.environ[TEMPORARY_VARIABLE] = outer_places[0]


def own_installation(folder: Path) -> tuple[Path, ...]:
    """Returns the parts of the environment that Duckflow runs in. They may lie in the work folder (in `.venv`), and who
    changes them changes Duckflow itself."""
    prefix = Path(os.path.realpath(sys.prefix))
    return tuple(prefix / name for name in INSTALLED) if prefix == folder.resolve() else (prefix,)


def own_module(name: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command that runs a module of Duckflow in another process. Python would load a `sitecustomize.py` of
    the work folder at its start where a variable or an installation to be edited leads there, so it gets the search
    path of this process and looks for no other."""
    search_path = ":".join(dict.fromkeys((*filter(os.path.isabs, sys.path), OWN)))
    return (sys.executable, "-I", "-S", "-W", "ignore", "-c", RUN_MODULE, search_path, name, *arguments)


def user_environment() -> dict[str, str]:
    """Returns the variables as the user has set them. Programs of the user are started with them."""
    return {**os.environ, **users_variables}


def _is_near(place: str, here: str) -> bool:
    real_path = os.path.realpath(place)
    if real_path == OWN or here == os.sep or _is_installed(real_path):
        return False
    return os.path.commonpath((real_path, here)) in (real_path, here)


def _is_installed(real: str) -> bool:
    """Says whether a path is the standard library, or the packages of the environment that Duckflow runs in."""
    if real.startswith(STANDARD):
        return True
    prefixes = tuple(os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix))
    return real.endswith(PACKAGES) and real.startswith(prefixes)


_found: dict[tuple[str, str, str], str] = {}


def find_program(name: str, folder: Path | None = None, search_path: str | None = None) -> str | None:
    """Returns the path of a program outside of the work folder. Without a `folder`, the current folder is the work
    folder.

    The result is remembered: a program that turns up later does not take its place."""
    path = _search_path(search_path)
    key = name, str((folder or Path.cwd()).resolve()), path
    if key not in _found and (program := _find(*key)):
        _found[key] = program
    return _found.get(key)


def is_stand_in(program: str) -> bool:
    """Says whether this is a script, or a version manager under the name of a program (as `shims` have them). Such a
    one asks files of the folder in which it starts what to start."""
    real_path = Path(os.path.realpath(program))
    try:
        with real_path.open("rb") as open_file:
            return real_path.name != Path(program).name or open_file.read(2) == b"#!"
    except OSError:
        return True


def find_shell(folder: Path) -> str:
    """Returns the shell for a command in that folder."""
    return find_program("bash", folder) or "/bin/sh"


def path_outside(folder: Path, search_path: str) -> str:
    """Returns the search path without places in the folder and without relative places."""
    folder_path, search_folders = str(folder.resolve()), search_path.split(os.pathsep)
    outside_folders = [
        search_folder
        for search_folder in search_folders
        if Path(search_folder).is_absolute() and not _beneath(Path(search_folder), folder_path)
    ]
    return os.pathsep.join(outside_folders) or os.defpath


def environment_outside(folder: Path, repository: str = "") -> dict[str, str]:
    """Returns the environment for a program that is started outside the sandbox. Programs start others by their names.
    So PATH names no place where a command could have put a program: none in the folder (such as `.venv/bin`), and none
    in the `repository`, if the folder is a worktree of it."""
    search_path = path_outside(Path(repository), _search_path()) if repository else _search_path()
    return {**os.environ, "PATH": path_outside(folder, search_path)}


def worked_in(folder: Path) -> tuple[Path, ...]:
    """Returns the folder, and the repository whose worktree this process works in."""
    repository = os.environ.get(MAIN_REPOSITORY)
    return (folder, Path(repository)) if repository else (folder,)


def environment_as_typed(folder: Path) -> dict[str, str]:
    """Returns the user's variables for a command that Duckflow makes in the user's place. Programs that are found
    outside the folder come first, so that none in the folder takes the place of one of them."""
    variables = user_environment()
    search_path = variables.get("PATH", os.defpath)
    return variables | {"PATH": os.pathsep.join((path_outside(folder, search_path), search_path))}


def _search_path(given: str | None = None) -> str:
    """Returns the search path, by default PATH, without places in the repository whose worktree this process works
    in."""
    search_path = os.environ.get("PATH", os.defpath) if given is None else given
    repository = os.environ.get(MAIN_REPOSITORY)
    return path_outside(Path(repository), search_path) if repository else search_path


def _find(name: str, folder: str, search_path: str) -> str | None:
    search_folders = (str(Path(name).parent),) if "/" in name else search_path.split(os.pathsep)
    for search_folder in search_folders:
        program = shutil.which(Path(name).name, path=search_folder) if Path(search_folder).is_absolute() else None
        if program and not any(_beneath(path, folder) for path in (Path(search_folder), Path(program))):
            return program
    return None


def _beneath(path: Path, folder: str) -> bool:
    """Says whether a path lies in the folder, by its name or, for a link, by its target. Returns False for the folder
    `/`, because every program lies in it."""
    return folder != "/" and any(candidate.is_relative_to(folder) for candidate in (path, path.resolve()))

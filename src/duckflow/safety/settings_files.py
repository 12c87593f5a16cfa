"""Finds the files from which git takes its settings: those of a repository and the user's own, with all that they
include."""

import os
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from duckflow.safety.files import read_plain
from duckflow.safety.git_settings import is_harmless, plain_value, read_settings
from duckflow.safety.repository import LARGEST_CONFIG, MOST_NESTED, Repository

INCLUDES = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
OWN_PLACE = "core.worktree"
EVERYWHERE = ("/etc/gitconfig",)
MOST_FILES = 500
MOST_REPOSITORIES = 200

Stamp = tuple[int, ...]
Settings = tuple[tuple[str, str], ...]


def stamp_of(file: Path) -> Stamp:
    """Returns a stamp that changes with the file; empty where there is none."""
    try:
        file_stat = file.stat()
    except (OSError, ValueError):
        return ()
    return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns


def with_inner(repository: Repository, depth: int = 0) -> list[Repository]:
    """Returns the repository and those that its index names, and theirs: git enters them too."""
    found_repositories = [repository]
    try:
        for inner_repository in repository.inner() if depth < MOST_NESTED else ():
            if len(found_repositories) < MOST_REPOSITORIES:
                found_repositories += with_inner(inner_repository, depth + 1)
    except (OSError, ValueError, KeyError, IndexError, struct.error):
        pass
    return found_repositories


def settings_of(repository: Repository) -> list[str]:
    """Returns the files with settings that this repository brings, whether they are there or not."""
    own_files = own_settings(repository)
    return [*own_files, *included_by(own_files)]


def own_settings(repository: Repository) -> list[str]:
    return [str(repository.common / "config"), str(repository.folder / "config.worktree")]


def users_settings() -> list[str]:
    """Returns the files with the user's own settings and those of the machine."""
    config_home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    names = (*EVERYWHERE, os.environ.get("GIT_CONFIG_GLOBAL") or "~/.gitconfig", f"{config_home}/git/config")
    files = [str(expanded(name)) for name in names]
    return [*files, *included_by(files)]


def settings_stamps(repository: Repository | None) -> dict[str, Stamp]:
    """Returns stamps of all files with settings that count here, whether they are there or not."""
    files = [file for each in (with_inner(repository) if repository else ()) for file in settings_of(each)]
    return {file: stamp_of(Path(file)) for file in (*files, *users_settings())}


def included_files(repository: Repository | None) -> list[str]:
    """Returns all files that the user's settings include, and those of the repository and the ones within it."""
    repositories = with_inner(repository) if repository else []
    return included_by([file for each in repositories for file in own_settings(each)] + users_settings())


def included_by(files: Iterable[str]) -> list[str]:
    """Returns the files that these include, under whatever condition, and what those include in turn."""
    waiting_files, known_files = list(files), dict[str, None]()
    while waiting_files and len(known_files) < MOST_FILES:
        file = waiting_files.pop()
        new_files = [path for path in _included(file, stamp_of(Path(file))) if path not in known_files]
        known_files |= dict.fromkeys(new_files)
        waiting_files += new_files
    return list(known_files)


def expanded(path: str) -> Path:
    """Returns a path with the home folder that `~` stands for, where there is such a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


@lru_cache(1024)
def _included(file: str, stamp: Stamp) -> tuple[str, ...]:
    values = [plain_value(value) for name, value in read_file(file, stamp) or () if INCLUDES.fullmatch(name)]
    return tuple(os.path.normpath(Path(file).parent / expanded(value)) for value in values)


@lru_cache(256)
def read_file(file: str, stamp: Stamp) -> Settings | None:
    """Returns the settings of a file: none where it is not there, None where it cannot be read. `stamp`, a key of the
    cache, changes with the file."""
    if not stamp:
        return ()
    try:
        return read_settings(read_plain(Path(file), LARGEST_CONFIG).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def names_program(file: str) -> bool:
    """Says whether a file of settings may name a program itself, and not only by what it includes."""
    settings = read_file(file, stamp_of(Path(file)))
    if settings is None:
        return True
    return not all(
        is_harmless(name, value) or name == OWN_PLACE or INCLUDES.fullmatch(name) for name, value in settings
    )

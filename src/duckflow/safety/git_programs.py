"""Finds the files of a work folder that git starts as programs or reads as settings, because its settings name them."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from duckflow.safety.files import read_plain
from duckflow.safety.repository import LARGEST_CONFIG, find_repository, is_harmless, read_settings

MOST_NESTED = 5
BETWEEN_WORDS = re.compile(r"[\s'\"=;&|()!<>`$]+")
HOOKS = "core.hookspath"
INCLUDES = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
IN_HOME = (".gitconfig", ".config/git/config")


def git_runs(path: str, folder: Path) -> bool:
    """Says whether settings of git name this file of the work folder, or a folder that it lies in: as a program, as the
    place of hooks, or as more settings."""
    repository = find_repository(folder)
    if repository is None:
        return False
    files = [repository.common / "config", repository.folder / "config.worktree"]
    files += [Path.home() / name for name in IN_HOME]
    named_paths = frozenset[str]().union(*(_named_in(str(file), _stamp(file), repository.top, 0) for file in files))
    full_path = Path(os.path.normpath(folder / path))
    path_and_parents = [
        str(parent) for parent in (full_path, *full_path.parents) if str(parent).startswith(f"{repository.top}/")
    ]
    return not named_paths.isdisjoint(path_and_parents) or f"{full_path.parent}/" in named_paths


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        file_stat = file.stat()
    except OSError:
        return ()
    return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns


@lru_cache(64)
def _named_in(file: str, stamp: tuple[int, ...], top: Path, depth: int) -> frozenset[str]:
    """Returns the paths that a file of settings names. The stamp changes with the file. A place of hooks that is the
    top itself ends with `/`: only what lies directly in it is meant."""
    if not stamp or depth > MOST_NESTED:
        return frozenset()
    try:
        text = read_plain(Path(file), LARGEST_CONFIG).decode("utf-8", "replace")
        return frozenset(_paths(text, Path(file).parent, top, depth))
    except (OSError, ValueError, RuntimeError):
        return frozenset()


def _paths(text: str, beside: Path, top: Path, depth: int) -> Iterator[str]:
    for name, value in read_settings(text):
        value = value.strip('"')
        if INCLUDES.fullmatch(name):
            included_file = os.path.normpath(beside / Path(value).expanduser())
            yield included_file
            yield from _named_in(included_file, _stamp(Path(included_file)), top, depth + 1)
        elif name == HOOKS:
            full_path = os.path.normpath(top / Path(value).expanduser())
            yield from (full_path, f"{full_path}/")
        elif not is_harmless(name, value) and (not name.startswith("alias.") or value.startswith("!")):
            yield from (os.path.normpath(top / word) for word in BETWEEN_WORDS.split(value) if word)

"""Finds the files of a work folder that something else starts: git, whose settings name them as programs or as more
settings, a hook of git, a link in the user's home (as when `~/.bashrc` is a link into a repository), or PATH."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from duckflow.programs.find import path_outside
from duckflow.safety.files import read_plain
from duckflow.safety.git_settings import is_harmless, read_settings
from duckflow.safety.repository import LARGEST_CONFIG, Repository, find_repository

MOST_NESTED = 5
BETWEEN_WORDS = re.compile(r"[\s'\"=;&|()!<>`$]+")
HOOKS = "core.hookspath"
INCLUDES = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
EVERYWHERE = ("/etc/gitconfig",)
IN_HOME = (".", ".config", ".local/bin", "bin", ".config/systemd/user", ".config/autostart", "Library/LaunchAgents")
PARENTS = (".config",)
"""Folders in the user's home whose subfolders are searched for links, too."""
MOST_ENTRIES = 2000
LARGEST_HOOK = 64 * 1024
STILL_TO_DO = "git-rebase-todo"
LARGEST_LIST = 1024 * 1024
COMMAND_TO_DO = re.compile(r"^[ \t]*(?:x|exec)\b", re.MULTILINE)
HOOK_WORD = re.compile(r"[^\s'\"=;&|()<>`$]+/[^\s'\"=;&|()<>`$]+")


def git_runs(path: str, folder: Path) -> bool:
    """Says whether git's settings name this file of the work folder, a folder that it lies in, or something below it:
    as a program, as a folder of hooks, or as a further file of settings. A list of what `git rebase` has still to do
    may name commands, too."""
    full_path = Path(os.path.normpath(folder / path))
    if full_path.name == STILL_TO_DO:
        return _names_command(full_path)
    repository = find_repository(folder)
    if repository is None:
        return False
    named_paths = _named_for(repository)
    path_and_parents = [
        str(parent) for parent in (full_path, *full_path.parents) if str(parent).startswith(f"{repository.top}/")
    ]
    is_named = not named_paths.isdisjoint(path_and_parents) or f"{full_path.parent}/" in named_paths
    return is_named or _any_below(full_path, named_paths)


def programs_of(repository: Repository) -> dict[str, tuple[int, ...]]:
    """Returns the programs that git may start when it commits here, with stamps that change with the files: its hooks,
    and files of the working tree that settings name, the user's own settings among them."""
    named_paths = [Path(os.path.realpath(path)) for path in _named_for(repository)]
    own_paths = [path for path in named_paths if path.is_relative_to(os.path.realpath(repository.top))]
    paths = [path for folder in (repository.common / "hooks", *own_paths) for path in folder.glob("*")]
    programs = {path for path in (*paths, *own_paths) if path.suffix != ".sample" and path.is_file()}
    return {
        path.name if path.parent == repository.common / "hooks" else os.path.relpath(path, repository.top): stamp_of(
            path
        )
        for path in sorted(programs)
        if os.access(path, os.X_OK)
    }


def _named_for(repository: Repository) -> frozenset[str]:
    config_home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    files = [repository.common / "config", repository.folder / "config.worktree", *map(Path, EVERYWHERE)]
    files += [Path(os.environ.get("GIT_CONFIG_GLOBAL") or "~/.gitconfig"), Path(config_home, "git/config")]
    paths = [str(file.expanduser()) for file in files]
    return frozenset[str]().union(*(_named_in(path, stamp_of(Path(path)), repository.top, 0) for path in paths))


def stamp_of(file: Path) -> tuple[int, ...]:
    try:
        file_stat = file.stat()
    except OSError:
        return ()
    return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns


@lru_cache(64)
def _named_in(file: str, stamp: tuple[int, ...], top: Path, depth: int) -> frozenset[str]:
    """Returns the paths that a file of git's settings names. `stamp`, a key of the cache, changes with the file. A
    folder of hooks is listed a second time with `/` at its end, which stands for the files directly in it."""
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
            yield from _named_in(included_file, stamp_of(Path(included_file)), top, depth + 1)
        elif name == HOOKS:
            full_path = os.path.normpath(top / Path(value).expanduser())
            yield from (full_path, f"{full_path}/")
        elif not is_harmless(name, value) and (not name.startswith("alias.") or value.startswith("!")):
            yield from (os.path.normpath(top / word) for word in BETWEEN_WORDS.split(value) if word)


def place_around(path: str) -> Path:
    """Returns the folder whose files could be started along with this one, in a folder that the user has added: the
    repository around it, or else the folder that it lies in."""
    repository = find_repository(Path(path).parent)
    return repository.top if repository else Path(path).parent


def led_to(path: str, folder: Path) -> bool:
    """Says whether a link in the user's home or a hook of git leads to this path, to a folder that it lies in, or to
    something below it: a folder that is moved here brings all its files."""
    real_folder = os.path.realpath(folder)
    full_path = Path(os.path.normpath(Path(real_folder, path)))
    linked_paths = _linked_paths(real_folder, str(Path.home()))
    return not linked_paths.isdisjoint(map(str, (full_path, *full_path.parents))) or _any_below(full_path, linked_paths)


def on_path(path: str, folder: Path) -> bool:
    """Says whether the path lies directly in a folder on PATH."""
    return os.path.realpath((folder / path).parent) in _places_on_path()


def holds_place_on_path(path: str, folder: Path) -> bool:
    """Says whether the path is a folder on PATH, or a folder above one."""
    full_path = Path(os.path.realpath(folder / path))
    return str(full_path) in _places_on_path() or _any_below(full_path, _places_on_path())


def _places_on_path() -> list[str]:
    places = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return [os.path.realpath(place) for place in places]


def _any_below(folder: Path, paths: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for path in paths)


def _names_command(list_file: Path) -> bool:
    """Says whether a list of what is still to do names a command, or cannot be read."""
    try:
        return COMMAND_TO_DO.search(read_plain(list_file, LARGEST_LIST).decode("utf-8", "replace")) is not None
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def shadows(path: str, folder: Path) -> bool:
    """Says whether the path lies on PATH under the name of a program that is found outside the folder."""
    if not on_path(path, folder):
        return False
    return shutil.which(Path(path).name, path=path_outside(folder, os.environ.get("PATH", os.defpath))) is not None


@lru_cache(8)
def _linked_paths(folder: str, home: str) -> frozenset[str]:
    """Returns the paths that links and hooks lead to, as they were at the first look. Commands change neither."""
    repository = find_repository(Path(folder))
    hooks = [repository.common / "hooks"] if repository else []
    places = [Path(home, name) for name in IN_HOME]
    places += [Path(entry.path) for parent in PARENTS for entry in _entries(Path(home, parent)) if entry.is_dir()]
    entries = [entry for place in (*places, *hooks) for entry in _entries(place) if entry.is_symlink()]
    # Other links in the home folder itself are shortcuts to people's files.
    links = [entry.path for entry in entries if str(Path(entry.path).parent) != home or entry.name.startswith(".")]
    paths = {os.path.realpath(link) for link in links}
    if repository:
        hook_files = [entry.path for place in hooks for entry in _entries(place) if not entry.name.endswith(".sample")]
        paths |= {path for hook in hook_files for path in _named_by_hook(hook, repository.top)}
    return frozenset(path for path in paths if path.startswith(f"{folder}/"))


def _named_by_hook(hook: str, top: Path) -> Iterator[str]:
    with contextlib.suppress(OSError, ValueError):
        for word in HOOK_WORD.findall(read_plain(Path(hook), LARGEST_HOOK).decode("utf-8", "replace")):
            path = (top / word).resolve()
            if path.is_file():
                yield str(path)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return [entry for _, entry in zip(range(MOST_ENTRIES), entries, strict=False)]
    except OSError:
        return []

"""Finds the files of a work folder that something else starts: git, whose settings name them as programs or as more
settings, a hook of git, a link in the user's home (as when `~/.bashrc` is a link into a repository), or PATH."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from duckflow.programs.find import path_outside
from duckflow.safety.files import read_plain
from duckflow.safety.git_settings import is_harmless, plain_value
from duckflow.safety.repository import HOOKS_OF_LOOKING, Repository, find_repository
from duckflow.safety.settings_files import (
    Settings,
    Stamp,
    expanded,
    included_files,
    names_program,
    read_file,
    settings_of,
    settings_stamps,
    stamp_of,
    users_settings,
    with_inner,
)

BETWEEN_WORDS = re.compile(r"[\s'\"=;&|()!<>`$]+")
HOOKS = "core.hookspath"
IN_HOME = (".", ".config", ".local/bin", "bin", ".config/systemd/user", ".config/autostart", "Library/LaunchAgents")
PARENTS = (".config",)
"""Folders in the user's home whose subfolders are searched for links, too."""
MOST_ENTRIES = 2000
LARGEST_HOOK = 64 * 1024
STILL_TO_DO = "git-rebase-todo"
LARGEST_LIST = 1024 * 1024
COMMAND_TO_DO = re.compile(r"^[ \t]*(?:x|exec)\b", re.MULTILINE)
MOST_SOURCED = 200
HOOK_WORD = re.compile(r"[^\s'\"=;&|()<>`$]+/[^\s'\"=;&|()<>`$]+")

ANY_WORD = re.compile(r"[^\s'\"=;&|()<>`$]+")


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


def git_reads(path: str, folder: Path) -> bool:
    """Says whether settings of git, the repository's or the user's own, include this file or one below it."""
    places = {place for file in included_files(find_repository(folder)) for place in (file, os.path.realpath(file))}
    full_path = os.path.realpath(folder / path)
    return full_path in places or _any_below(Path(full_path), places)


def programs_of(repository: Repository) -> dict[str, Stamp]:
    """Returns the programs that git may start when it commits here, with stamps that change with the files: its hooks,
    and files of the working tree that settings name, the user's own settings among them."""
    hook_folder = repository.common / "hooks"
    return {
        path.name if path.parent == hook_folder else os.path.relpath(path, repository.top): stamp_of(path)
        for path in _programs_in(repository)
    }


def _programs_in(repository: Repository) -> list[Path]:
    named_paths = [Path(os.path.realpath(path)) for path in _named_for(repository)]
    settings_paths = {Path(os.path.realpath(file)) for file in (*settings_of(repository), *users_settings())}
    own_paths = [path for path in named_paths if path.is_relative_to(os.path.realpath(repository.top))]
    own_paths = [path for path in own_paths if path not in settings_paths]
    hooks = {path for folder in (repository.common / "hooks", *own_paths) for path in folder.glob("*")}
    hooks = {path for path in hooks if path.suffix != ".sample" and os.access(path, os.X_OK)}
    # An interpreter that settings name runs a file of any mode.
    return sorted(path for path in hooks.union(own_paths) if path.is_file())


INTERPRETER = re.compile(
    r"(?:^|[\s;&|(/!])(?:(?:ba|da|z|k|fi)?sh|python[\d.]*|node|ruby|perl|php|lua|tclsh|Rscript|java|go|cargo|g?awk|sed|make|npx|uvx?|pipx|deno|bun|cd|\.)\s+\S"
)


class StartedByCommit(NamedTuple):
    """Holds what git starts when it commits."""

    names: tuple[str, ...]
    """The programs, and the files of settings that name programs, as the user is shown them."""
    stamps: dict[str, Stamp]
    """Stamps of all files that decide what is started, whether they are there or not."""


def started_by_commit(repository: Repository) -> StartedByCommit:
    """Returns what git starts when it commits here, with what it starts in the repositories that the index names."""
    top, names, stamps = repository.top, dict[str, None](), settings_stamps(repository)
    for each in with_inner(repository):
        programs = _programs_in(each)
        if each is not repository:
            hooks = each.common / "hooks"
            programs = [path for path in programs if path.parent != hooks or path.name in HOOKS_OF_LOOKING]
        naming_files = [file for file in settings_of(each) if names_program(file)]
        naming_files += [str(each.folder)] if each.unclear else []
        names |= dict.fromkeys(_short(path, repository) for path in (*programs, *map(Path, naming_files)))
        decisive_paths = [*programs, *_named_by_programs(programs, each.top)]
        decisive_paths += [pointer] if (pointer := each.top / ".git").is_file() else []
        stamps |= {str(path): stamp_of(path) for path in decisive_paths}
    for file in users_settings():
        is_inside = Path(os.path.realpath(file)).is_relative_to(os.path.realpath(top))
        if names_program(file) and (is_inside or _may_run_files(file)):
            names[_short(Path(file), repository)] = None
    return StartedByCommit(tuple(names), stamps)


def _may_run_files(file: str) -> bool:
    """Says whether a file of settings names an interpreter or the like, which may find what it runs in the folder."""
    settings = read_file(file, stamp_of(Path(file))) or ()
    return any(
        not is_harmless(name, value) and INTERPRETER.search(plain_value(value))
        for name, value in settings
        if not name.startswith("alias.")
    )


def _short(path: Path, repository: Repository) -> str:
    """Returns the name of a hook, or the path of another file as seen from the repository."""
    if path.parent == repository.common / "hooks":
        return path.name
    return path.relative_to(repository.top).as_posix() if path.is_relative_to(repository.top) else str(path)


def _named_by_programs(programs: Sequence[Path], top: Path) -> list[Path]:
    """Returns the files of the working tree that these programs name plainly, and those that they name in turn."""
    waiting_files, known_files = [str(program) for program in programs], dict[str, None]()
    while waiting_files and len(known_files) < MOST_SOURCED:
        named_files = set(_named_by_hook(waiting_files.pop(), top, ANY_WORD)) - known_files.keys()
        new_files = [file for file in named_files if Path(file).is_relative_to(os.path.realpath(top))]
        known_files |= dict.fromkeys(new_files)
        waiting_files += new_files
    return [Path(file) for file in known_files]


def _named_for(repository: Repository) -> frozenset[str]:
    files = [*settings_of(repository), *users_settings()]
    named_paths = (_named_in(file, stamp_of(Path(file)), repository.top) for file in files)
    return frozenset(files).union(*named_paths)


@lru_cache(256)
def _named_in(file: str, stamp: Stamp, top: Path) -> frozenset[str]:
    """Returns the paths that a file of git's settings names. `stamp`, a key of the cache, changes with the file. A
    folder of hooks is listed a second time with `/` at its end, which stands for the files directly in it."""
    return frozenset(_paths(read_file(file, stamp) or (), top))


def _paths(settings: Settings, top: Path) -> Iterator[str]:
    for name, value in settings:
        value = plain_value(value)
        if name == HOOKS:
            full_path = os.path.normpath(top / expanded(value))
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
        paths |= {path for hook in hook_files for path in _named_by_hook(hook, repository.top, HOOK_WORD)}
    return frozenset(path for path in paths if path.startswith(f"{folder}/"))


def _named_by_hook(hook: str, top: Path, word_pattern: re.Pattern[str]) -> Iterator[str]:
    with contextlib.suppress(OSError, ValueError):
        for word in word_pattern.findall(read_plain(Path(hook), LARGEST_HOOK).decode("utf-8", "replace")):
            if (top / word).is_file():
                yield os.path.realpath(top / word)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return [entry for _, entry in zip(range(MOST_ENTRIES), entries, strict=False)]
    except OSError:
        return []

"""Finds files of the work folder that are started from elsewhere. Such a file lies on PATH, or a hook of git names it,
or a link in the user's home leads to it (as when `~/.bashrc` is a link into a repository)."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from duckflow.programs.find import path_outside
from duckflow.safety.files import read_plain
from duckflow.safety.repository import find_repository

IN_HOME = (".", ".config", ".local/bin", "bin", ".config/systemd/user", ".config/autostart", "Library/LaunchAgents")
PARENTS = (".config",)
"""Folders in the user's home whose subfolders are searched for links, too."""
MOST_ENTRIES = 2000
LARGEST_HOOK = 64 * 1024
WORD = re.compile(r"[^\s'\"=;&|()<>`$]+/[^\s'\"=;&|()<>`$]+")


def led_to(path: str, folder: Path) -> bool:
    """Says whether a link in the user's home or a hook of git leads to this path, or to a folder that it lies in."""
    real_folder = os.path.realpath(folder)
    full_path = Path(os.path.normpath(Path(real_folder, path)))
    return not _led_to(real_folder, str(Path.home())).isdisjoint(map(str, (full_path, *full_path.parents)))


def on_path(path: str, folder: Path) -> bool:
    """Says whether the path lies directly in a folder on PATH."""
    path_folders = map(os.path.realpath, filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep)))
    return os.path.realpath((folder / path).parent) in path_folders


def shadows(path: str, folder: Path) -> bool:
    """Says whether the path lies on PATH under the name of a program that is found outside the folder."""
    if not on_path(path, folder):
        return False
    return shutil.which(Path(path).name, path=path_outside(folder, os.environ.get("PATH", os.defpath))) is not None


@lru_cache(8)
def _led_to(folder: str, home: str) -> frozenset[str]:
    """Returns the paths that links and hooks lead to, as they were at the first look. Commands change neither."""
    repository = find_repository(Path(folder))
    hooks = [repository.common / "hooks"] if repository else []
    top_folders = [Path(home, name) for name in IN_HOME]
    top_folders += [Path(entry.path) for parent in PARENTS for entry in _entries(Path(home, parent)) if entry.is_dir()]
    link_entries = [entry for place in (*top_folders, *hooks) for entry in _entries(place) if entry.is_symlink()]
    # Other links in the home folder itself are shortcuts to people's files.
    links = [entry.path for entry in link_entries if str(Path(entry.path).parent) != home or entry.name.startswith(".")]
    paths = {os.path.realpath(link_path) for link_path in links}
    if repository:
        hook_files = [entry.path for place in hooks for entry in _entries(place) if not entry.name.endswith(".sample")]
        paths |= {path for hook in hook_files for path in _named_in(hook, repository.top)}
    return frozenset(path for path in paths if path.startswith(f"{folder}/"))


def _named_in(hook: str, top: Path) -> Iterator[str]:
    with contextlib.suppress(OSError, ValueError):
        for word in WORD.findall(read_plain(Path(hook), LARGEST_HOOK).decode("utf-8", "replace")):
            path = (top / word).resolve()
            if path.is_file():
                yield str(path)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return [entry for _, entry in zip(range(MOST_ENTRIES), entries, strict=False)]
    except OSError:
        return []

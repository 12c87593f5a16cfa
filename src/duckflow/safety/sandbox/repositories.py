"""Files by which git runs programs: hooks and configuration of the repositories in the work folder."""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from duckflow.safety.files import folders_in
from duckflow.safety.repository import find_repository
from duckflow.safety.settings_files import included_files, with_inner

HOLD: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
ALWAYS = ("hooks", "config")
IF_THERE = ("config.worktree", "commondir")
REDIRECT = "commondir"
"""The name of a file in a git folder that sends git elsewhere for its configuration and hooks."""
MODULE_DEPTH = 4
MOST_INNER = 60
"""The largest number of repositories further down that are guarded, since each takes mounts of its own."""

LARGEST_READ = 1024 * 1024
SETTLED = 2_000_000_000
"""Nanoseconds after which a second change of a file surely gets another time, on any file system."""

Trace = tuple[int, bytes]
"""A file's mode and a digest of its content. Size and times can be set back. For a file that is too large or
unreadable, the inode and the time of change (ctime) stand for the content: nobody can set that time."""


@dataclass(frozen=True)
class Repositories:
    """The repositories of the work folder and of the folders in it, as they were when this object was made. Links are
    not followed."""

    folder: Path
    git_folders: tuple[Path, ...] = ()
    git_files: tuple[Path, ...] = ()
    further: tuple[Path, ...] = ()
    """Other files here by which git runs programs: files that its settings include, and the settings and hooks of
    repositories further down that the index names."""
    missing: tuple[Path, ...] = ()
    """The files of `further` that are not there."""

    def tops(self) -> tuple[Path, ...]:
        """Returns the folders directly in the work folder that are repositories."""
        depth = len(self.folder.parts)
        paths = (path for path in (*self.git_folders, *self.git_files) if path != self.folder)
        tops = {self.folder / path.parts[depth]: None for path in paths}
        return tuple(top for top in tops if top.name != ".git")

    def among(self, tops: Iterable[Path]) -> "Repositories":
        """Returns only the repositories that lie in one of these folders."""
        chosen_tops = set(tops)
        git_folders = (path for path in self.git_folders if not chosen_tops.isdisjoint(path.parents))
        git_files = (path for path in self.git_files if path.parent in chosen_tops)
        further = (path for path in self.further if not chosen_tops.isdisjoint(path.parents))
        return Repositories(self.folder, tuple(git_folders), tuple(git_files), tuple(further), self.missing)

    def guarded(self) -> tuple[Path, ...]:
        """Returns the paths that commands must not change. The hooks and the configuration may not exist yet."""
        return (*self.git_files, *(path for folder in self.git_folders for path in _guarded(folder)), *self.further)

    def traces(self) -> dict[str, Trace]:
        """Returns a trace (mode and digest) of each guarded file by its path. The paths are texts and not `Path`
        objects, because a command waits for the result."""
        trace_by_path: dict[str, Trace] = {}
        for path in (*self.guarded(), *(folder / REDIRECT for folder in self.git_folders)):
            trace_by_path |= dict(_traces(str(path)))
        return trace_by_path

    def meddled(self, before: dict[str, Trace], top: Path) -> tuple[str, ...]:
        """Returns the paths that have changed since the traces `before` were taken. A redirection (`commondir`) that
        was not there before is removed again, and so is an empty file with which a sandbox has covered settings that
        are not there."""
        traces_after = self.traces()
        names = before.keys() | traces_after.keys()
        changed_paths = sorted(Path(name) for name in names if before.get(name) != traces_after.get(name))
        for path in changed_paths:
            if path.name == REDIRECT and str(path) not in before:
                _remove(top, path)
        for path in self.missing:
            if _kind(path) == stat.S_IFREG and not path.lstat().st_size:
                _remove(top, path)
        return tuple(str(path.relative_to(top)) for path in changed_paths)


def _remove(top: Path, path: Path) -> None:
    with contextlib.suppress(OSError):
        folder = hold(top, path.parent) if path.parent != top else os.open(top, HOLD | os.O_DIRECTORY)
        try:
            os.unlink(path.name, dir_fd=folder)
        finally:
            os.close(folder)


def repositories(folder: Path) -> Repositories:
    """Returns the repositories in the folder itself and in the folders directly in it."""
    git_folders: list[Path] = []
    git_files: list[Path] = []
    for path in (folder, *(inner_folder / ".git" for inner_folder in (folder, *folders_in(folder)))):
        file_type = _kind(path)
        if file_type == stat.S_IFDIR and (path != folder or _is_git_folder(path)):
            git_folders += [path, *_modules(path / "modules", MODULE_DEPTH), *folders_in(path / "worktrees")]
        elif file_type == stat.S_IFREG:
            git_files.append(path)
    further = dict.fromkeys(path for path in _further(folder) if path.is_relative_to(folder))
    missing = tuple(path for path in further if not os.path.lexists(path))
    return Repositories(folder, tuple(git_folders), tuple(git_files), tuple(further), missing)


def _further(folder: Path) -> Iterator[Path]:
    repository = find_repository(folder)
    for inner_repository in with_inner(repository)[1 : MOST_INNER + 1] if repository else ():
        if (pointer := inner_repository.top / ".git").is_file():
            yield pointer
        for git_folder in {inner_repository.common, inner_repository.folder}:
            yield from _guarded(git_folder)
    for file in included_files(repository):
        if not Path(file).is_dir():
            yield from (Path(file), Path(os.path.realpath(file)))


def settings_in(git_folders: Iterable[Path]) -> list[Path]:
    """Returns git's files of settings in these git folders, and copies beside them (`config.bak`)."""
    return [path for git_folder in git_folders for path in git_folder.glob("config*")]


def _guarded(git_folder: Path) -> Iterator[Path]:
    worktree = git_folder.parent.name == "worktrees"
    for name in ALWAYS:
        if not worktree or _kind(git_folder / name):
            yield git_folder / name
    for name in IF_THERE:
        if _kind(git_folder / name):
            yield git_folder / name


def _traces(path: str) -> Iterator[tuple[str, Trace]]:
    with contextlib.suppress(OSError):
        path_stat = os.lstat(path)
        if stat.S_ISDIR(path_stat.st_mode):
            for name in os.listdir(path):
                yield from _traces(f"{path}/{name}")
        elif path_stat.st_size or not stat.S_ISREG(path_stat.st_mode):
            # An empty file says as much as none. The sandbox itself makes one to cover a name that is not there.
            yield path, (path_stat.st_mode, _content(path, path_stat))


def _content(path: str, about: os.stat_result) -> bytes:
    if stat.S_ISLNK(about.st_mode):
        return os.fsencode(Path(path).readlink())
    stat_mark = f"{about.st_ino} {about.st_ctime_ns}".encode()
    if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_READ:
        return stat_mark
    content_stamp = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    try:
        return _settled(path, content_stamp) if time.time_ns() - about.st_ctime_ns > SETTLED else _digest(path)
    except PermissionError:
        return stat_mark


@lru_cache(1024)
def _settled(path: str, _: tuple[int, ...]) -> bytes:
    """Returns the digest of a file that has not changed lately. The second argument, the key of the cache, changes with
    the content."""
    return _digest(path)


def _digest(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return hashlib.sha256(file.read(LARGEST_READ + 1)).digest()


def _modules(folder: Path, depth: int) -> Iterator[Path]:
    """Yields the git folders of submodules, even if their names contain slashes."""
    for entry in folders_in(folder):
        if _is_git_folder(entry):
            yield entry
            yield from _modules(entry / "modules", depth)
        elif depth:
            yield from _modules(entry, depth - 1)


def _is_git_folder(path: Path) -> bool:
    return all(_kind(path / name) for name in ("HEAD", "objects", "refs"))


def _kind(path: Path) -> int:
    """Returns the type of the file (from its mode), or 0 when there is no file."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return 0


def hold(top: Path, path: Path) -> int:
    """Opens a path beneath `top` without going through any link; a link on the way raises an OSError."""
    folder = os.open(top, HOLD | os.O_DIRECTORY)
    *parents, last_name = path.relative_to(top).parts
    for name in parents:
        try:
            subfolder = os.open(name, HOLD | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = subfolder
    try:
        return os.open(last_name, HOLD, dir_fd=folder)
    finally:
        os.close(folder)

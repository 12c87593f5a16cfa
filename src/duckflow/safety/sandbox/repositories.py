"""Files by which git runs programs: hooks and configuration of the repositories in the work folder."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOLD: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
ALWAYS = ("hooks", "config")
IF_THERE = ("config.worktree", "commondir")
REDIRECT = "commondir"
"""A file of this name in a git folder sends git elsewhere for its configuration and hooks."""
MODULE_DEPTH = 4

LARGEST_READ = 1024 * 1024

Trace = tuple[int, bytes]
"""A file's mode and a digest of its content. Size and times can be set back; of a file too large or not readable the
inode and its time of change stand in for the content: nobody can set that time."""


@dataclass(frozen=True)
class Repositories:
    """Of the work folder and of the folders in it, as they were when this was made. Links are not followed."""

    git_folders: tuple[Path, ...]
    git_files: tuple[Path, ...]

    def guarded(self) -> tuple[Path, ...]:
        """What commands must not change. The hooks and the configuration may still be missing."""
        return (*self.git_files, *(path for folder in self.git_folders for path in _guarded(folder)))

    def traces(self) -> dict[Path, Trace]:
        found: dict[Path, Trace] = {}
        for path in (*self.guarded(), *(folder / REDIRECT for folder in self.git_folders)):
            found |= dict(_traces(path))
        return found

    def meddled(self, before: dict[Path, Trace], top: Path) -> tuple[str, ...]:
        """What has changed since then. A redirection that was not there is taken away again."""
        after = self.traces()
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        for path in changed:
            if path.name == REDIRECT and path not in before:
                with contextlib.suppress(OSError):
                    folder = hold(top, path.parent)
                    try:
                        os.unlink(path.name, dir_fd=folder)
                    finally:
                        os.close(folder)
        return tuple(str(path.relative_to(top)) for path in changed)


def repositories(folder: Path) -> Repositories:
    """In the folder itself and in the folders directly in it."""
    git_folders: list[Path] = []
    git_files: list[Path] = []
    for path in (folder, *(entry / ".git" for entry in (folder, *_folders(folder)))):
        kind = _kind(path)
        if kind == stat.S_IFDIR and (path != folder or _is_git_folder(path)):
            git_folders += [path, *_modules(path / "modules", MODULE_DEPTH), *_folders(path / "worktrees")]
        elif kind == stat.S_IFREG:
            git_files.append(path)
    return Repositories(tuple(git_folders), tuple(git_files))


def _guarded(git_folder: Path) -> Iterator[Path]:
    worktree = git_folder.parent.name == "worktrees"
    for name in ALWAYS:
        if not worktree or _kind(git_folder / name):
            yield git_folder / name
    for name in IF_THERE:
        if _kind(git_folder / name):
            yield git_folder / name


def _traces(path: Path) -> Iterator[tuple[Path, Trace]]:
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode):
            for entry in path.iterdir():
                yield from _traces(entry)
        else:
            yield path, (found.st_mode, _content(path, found))


def _content(path: Path, found: os.stat_result) -> bytes:
    if stat.S_ISLNK(found.st_mode):
        return os.fsencode(path.readlink())
    unread = f"{found.st_ino} {found.st_ctime_ns}".encode()
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_READ:
        return unread
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return unread
    with os.fdopen(handle, "rb") as file:
        return hashlib.sha256(file.read(LARGEST_READ + 1)).digest()


def _modules(folder: Path, depth: int) -> Iterator[Path]:
    """The git folders of submodules; their names may have slashes."""
    for entry in _folders(folder):
        if _is_git_folder(entry):
            yield entry
            yield from _modules(entry / "modules", depth)
        elif depth:
            yield from _modules(entry, depth - 1)


def _is_git_folder(path: Path) -> bool:
    return all(_kind(path / name) for name in ("HEAD", "objects", "refs"))


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _kind(path: Path) -> int:
    """The file's type, 0 when there is none."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return 0


def hold(top: Path, path: Path) -> int:
    """Opens what is beneath `top` without going through any link; a link on the way is an OSError."""
    folder = os.open(top, HOLD | os.O_DIRECTORY)
    *parents, last = path.relative_to(top).parts
    for name in parents:
        try:
            below = os.open(name, HOLD | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    try:
        return os.open(last, HOLD, dir_fd=folder)
    finally:
        os.close(folder)

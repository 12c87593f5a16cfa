"""Opening a folder beneath a root, so that no link leads out, even one swapped in meanwhile.

Only handles of folders are held: what is opened next is opened relative to a handle, never by a whole path."""

import contextlib
import errno
import os
from collections import deque
from collections.abc import Sequence

from duckflow.safety.path_names import beneath, outside, split

MAX_LINKS = 40
FOLDER: int = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


def link_text(folder: int, name: str) -> str | None:
    """Where a symbolic link points to; nothing when the name is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


class Trail:
    """The folders from the root down to where the walk is; `..` goes back along it, never by the file system."""

    def __init__(self, root: int) -> None:
        self.names: list[str] = []
        self._root = root
        self._folders: list[int] = []

    @property
    def folder(self) -> int:
        return self._folders[-1] if self._folders else self._root

    def enter(self, name: str) -> None:
        self._folders.append(os.open(name, FOLDER, dir_fd=self.folder))
        self.names.append(name)

    def up(self) -> None:
        if not self._folders:
            raise outside("..")
        os.close(self._folders.pop())
        self.names.pop()

    def to_root(self) -> None:
        while self._folders:
            self.up()

    def take(self) -> int:
        """The folder's handle, now the caller's to close."""
        return self._folders.pop() if self._folders else os.dup(self._root)

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())


class Walk:
    """Goes down name by name, and resolves every link itself."""

    def __init__(self, root: int) -> None:
        self._root = root

    def open_folder(self, names: Sequence[str], create: bool = False) -> int:
        with contextlib.closing(Trail(self._root)) as trail:
            problem = self._descend(trail, deque(names), create)
            if problem:
                raise problem
            return trail.take()

    def real_names(self, names: Sequence[str]) -> list[str]:
        """The same place without links and `..`; names that do not exist (yet) are kept as they are."""
        pending = deque(names)
        with contextlib.closing(Trail(self._root)) as trail:
            self._descend(trail, pending, create=False)
            real = list(trail.names)
        for name in pending:
            if name != "..":
                real.append(name)
            elif real:
                real.pop()
            else:
                raise outside("..")
        return real

    def _descend(self, trail: Trail, pending: deque[str], create: bool) -> OSError | None:
        """Follow the names as far as folders go. What is left stays in `pending`, and the reason is returned."""
        links = 0
        while pending:
            name = pending.popleft()
            if name == "..":
                trail.up()
                continue
            try:
                self._enter(trail, name, create)
            except OSError as problem:
                target = link_text(trail.folder, name) if problem.errno in NOT_A_FOLDER else None
                if target is None:
                    pending.appendleft(name)
                    return problem
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
                pending.extendleft(reversed(self._target(trail, target)))
        return None

    def _enter(self, trail: Trail, name: str, create: bool) -> None:
        try:
            trail.enter(name)
        except FileNotFoundError:
            if not create:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=trail.folder)
            trail.enter(name)

    def _target(self, trail: Trail, target: str) -> list[str]:
        if not target.startswith("/"):
            return split(target)
        names = beneath(target, os.fstat(self._root))
        trail.to_root()
        return names

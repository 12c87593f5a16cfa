"""The work folder as undo reaches it: beneath one handle, and never through a link."""

import contextlib
import errno
import os
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from duckflow.safety.atomic import NEW, changed, rename_new
from duckflow.safety.beneath import Trail
from duckflow.safety.undo.fact import Fact, Seen, Stamp
from duckflow.safety.undo.reader import FactReader

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


def temporary_name(token: str) -> str:
    """One for each process, so that what a dead one left behind is known."""
    return f".duckflow-{token[:12]}.tmp"


class Tree:
    """Looks at single paths and puts things back. Paths are relative, without `.`, `..` and links."""

    def __init__(self, root: Path, reader: FactReader, token: str) -> None:
        self._temporary = temporary_name(token)
        self.root = os.open(root, READ_FOLDER)
        weakref.finalize(self, os.close, self.root)
        self.reader = reader

    def look(self, path: str) -> Seen | None:
        """What lies there; nothing when there is nothing, or only something beyond a link."""
        with _absent_is_nothing(), self._place(path) as (folder, name):
            return self.reader.see(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))
        return None

    def read(self, path: str) -> tuple[Seen, bytes] | None:
        with _absent_is_nothing(), self._place(path) as (folder, name):
            return self.reader.read(folder, name)
        return None

    def open_folder(self, path: str) -> int:
        """For listing; the caller closes it."""
        if not path:
            return os.open(".", READ_FOLDER, dir_fd=self.root)
        with self._place(path) as (folder, name):
            return os.open(name, READ_FOLDER, dir_fd=folder)

    def put_file(self, path: str, data: bytes, fact: Fact, now: Seen | None) -> None:
        """Whole or not at all, with the fact's mode and, where allowed, its owner."""
        with self._place(path) as (folder, name):
            temporary = self._temporary
            handle = os.open(temporary, NEW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    _dress(file.fileno(), fact)
                _refuse_if_touched(folder, name, path, now)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    def put_link(self, path: str, fact: Fact, now: Seen | None) -> None:
        with self._place(path) as (folder, name):
            temporary = self._temporary
            os.symlink(fact.content, temporary, dir_fd=folder)
            try:
                with contextlib.suppress(PermissionError):
                    os.chown(temporary, fact.owner, fact.group, dir_fd=folder, follow_symlinks=False)
                _refuse_if_touched(folder, name, path, now)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    def make_folder(self, path: str) -> None:
        """Open to its owner only, until `dress` gives it its mode: what is put into it must be possible to put."""
        with self._place(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)

    def dress(self, path: str, fact: Fact) -> None:
        """Give a file or folder the fact's mode and owner; its content stays."""
        with self._place(path) as (folder, name):
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if (facts.st_uid, facts.st_gid) != (fact.owner, fact.group):
                with contextlib.suppress(PermissionError):
                    os.chown(name, fact.owner, fact.group, dir_fd=folder, follow_symlinks=False)
            _set_mode(folder, name, fact.mode)

    def remove(self, path: str, now: Seen) -> None:
        """A file or link that is still what was looked at."""
        with self._place(path) as (folder, name):
            _refuse_if_touched(folder, name, path, now)
            os.unlink(name, dir_fd=folder)

    def clean_up(self, token: str, paths: Iterable[str]) -> None:
        """Remove what a process that died while it put these paths back may have left beside them."""
        name = temporary_name(token)
        for folder in {path.rpartition("/")[0] for path in paths}:
            with contextlib.suppress(OSError), self._place(f"{folder}/{name}" if folder else name) as (handle, last):
                os.unlink(last, dir_fd=handle)

    def remove_folder(self, path: str) -> bool:
        """Only an empty one; says whether it is gone."""
        with self._place(path) as (folder, name):
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as problem:
                if problem.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def move(self, source: str, target: str) -> None:
        with self._place(source) as (old_folder, old), self._place(target) as (new_folder, new):
            rename_new(old_folder, old, new_folder, new)

    @contextmanager
    def _place(self, path: str) -> Generator[tuple[int, str]]:
        *parents, name = path.split("/")
        with contextlib.closing(Trail(self.root)) as trail:
            for parent in parents:
                trail.enter(parent)
            yield trail.folder, name


@contextmanager
def _absent_is_nothing() -> Generator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno not in NOT_THERE:
            raise


def _dress(handle: int, fact: Fact) -> None:
    facts = os.fstat(handle)
    if (facts.st_uid, facts.st_gid) != (fact.owner, fact.group):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, fact.owner, fact.group)
    os.fchmod(handle, fact.mode)


def _set_mode(folder: int, name: str, mode: int) -> None:
    """Also of what its owner may not read, and never of what a link points to."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(mode)
    finally:
        os.close(handle)


def _refuse_if_touched(folder: int, name: str, path: str, now: Seen | None) -> None:
    try:
        stamp = Stamp.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        stamp = None
    if _essence(stamp) != _essence(now.stamp if now else None):
        raise changed(path)


def _essence(stamp: Stamp | None) -> Stamp | None:
    """Without the time of the last change: that also moves when another name of the same file is removed."""
    return stamp._replace(changed=0) if stamp else None

"""Copies of a work folder, made right before the user is asked about programs in it.

A copy is a folder that is named by a digest of its content, so that several agreements can share one copy. Its files
are hard links to contents that all copies share, and nobody may write them. Folders are opened by handles, and no link
is followed."""

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import PathRefused
from duckflow.safety.files import open_regular
from duckflow.safety.ignore_rules import HEAVY, IgnoredPaths, RulesFile, rules_beneath
from duckflow.safety.secrets import secret_name

MIB = 1024 * 1024
LARGEST_FILE = 50 * MIB
MOST_BYTES, MOST_FILES = 1024 * MIB, 100_000
IGNORED_BYTES, IGNORED_FILES = 200 * MIB, 30_000
"""Limits for a folder that git ignores; a larger one is left out of the copy."""
DEEPEST = 60
UNUSED_SECONDS = 24 * 3600.0
FIRST = (".claude", ".codex", ".duckflow", ".agents")
"""Folders that are copied before all others, so that they are in the copy even when the project is too large for all of
it."""
READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CONTENTS, BEGUN = "contents", "begun-"


class FolderCopy(NamedTuple):
    """A copy of a folder. `left_out` lists the files and folders that the copy lacks, as they are too large, secret or
    unreadable."""

    name: str
    folder: Path
    left_out: tuple[str, ...]


class FolderCopies:
    """All folder copies of one user, stored beneath one folder."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def take(self, folder: Path) -> FolderCopy:
        """Copies the folder as it is now. Raises an OSError if the disk is full."""
        (self._top / CONTENTS).mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished_copy = Path(tempfile.mkdtemp(prefix=BEGUN, dir=self._top))
        try:
            copy_run = _Copying(folder, unfinished_copy, self._top)
            name = copy_run.run()
            with contextlib.suppress(OSError):
                # An earlier question may have made the same copy.
                unfinished_copy.rename(self._top / name)
        finally:
            shutil.rmtree(unfinished_copy, ignore_errors=True)
        return FolderCopy(name, self._top / name, tuple(copy_run.left_out))

    def find(self, name: str) -> Path | None:
        """Returns the folder of a copy, or None when the copy is gone."""
        folder = self._top / name
        return folder if name and folder.is_dir() else None

    def remove_unused(self, used: Collection[str], at_once: Collection[str] = ()) -> None:
        """Removes copies that no agreement names: copies in `at_once` immediately, other copies when they are a day
        old. A newer copy may belong to a question that the user is just reading."""
        oldest_time = time.time() - UNUSED_SECONDS
        for copy_folder in self._top.iterdir() if self._top.is_dir() else ():
            if copy_folder.name == CONTENTS or copy_folder.name in used:
                continue
            with contextlib.suppress(OSError):
                if copy_folder.name in at_once or copy_folder.lstat().st_ctime < oldest_time:
                    shutil.rmtree(copy_folder, ignore_errors=True)
        for content in (self._top / CONTENTS).glob("*") if at_once else ():
            with contextlib.suppress(OSError):
                if content.lstat().st_nlink == 1:
                    content.unlink()


class _Copying:
    """One walk through a folder, which copies its content."""

    def __init__(self, folder: Path, target: Path, top: Path) -> None:
        self._real = Path(os.path.realpath(folder))
        self._target = target
        self._contents = top / CONTENTS
        top_stat = top.stat()
        self._own = (top_stat.st_dev, top_stat.st_ino)
        self._ignored = IgnoredPaths(self._real)
        self._digest = hashlib.sha256()
        self._bytes = self._files = 0
        self.left_out: list[str] = []

    def run(self) -> str:
        handle = os.open(self._real, READ_FOLDER)
        try:
            self._folder(handle, "", self._ignored.top, 0)
        finally:
            os.close(handle)
        return self._digest.hexdigest()

    def _folder(self, handle: int, prefix: str, rules: RulesFile | None, depth: int) -> None:
        if rules is not None and (text := rules_beneath(handle)):
            rules = self._ignored.below(rules, prefix.rstrip("/"), text)
        for name in sorted(os.listdir(handle), key=lambda name: (name not in FIRST, name)):
            path = prefix + name
            try:
                file_stat = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if name == ".git" or (file_stat.st_dev, file_stat.st_ino) == self._own:
                    continue
                if stat.S_ISDIR(file_stat.st_mode):
                    self._enter(handle, path, name, rules, depth)
                elif stat.S_ISLNK(file_stat.st_mode):
                    self._link(handle, path, name)
                elif stat.S_ISREG(file_stat.st_mode):
                    self._file(handle, path, name)
            except (OSError, PathRefused):
                self.left_out.append(path)

    def _enter(self, handle: int, path: str, name: str, rules: RulesFile | None, depth: int) -> None:
        subfolder = os.open(name, READ_FOLDER, dir_fd=handle)
        try:
            is_ignored = rules is None or name in HEAVY or self._ignored.ignores(rules, path, is_folder=True)
            is_too_large = is_ignored and rules is not None and not _small(subfolder)
            if depth == DEEPEST or is_too_large:
                self.left_out.append(path + "/")
                return
            (self._target / path).mkdir(mode=0o700)
            self._note("folder", path, "")
            self._folder(subfolder, path + "/", None if is_ignored else rules, depth + 1)
        finally:
            os.close(subfolder)

    def _link(self, handle: int, path: str, name: str) -> None:
        """Copies a link. A link that stays inside the folder leads to the same place in the copy; any other link leads
        to its present target."""
        real_target = Path(os.path.realpath((self._real / path).parent / os.readlink(name, dir_fd=handle)))
        link_target = str(real_target)
        if real_target.is_relative_to(self._real):
            inner_path = real_target.relative_to(self._real).as_posix()
            link_target = os.path.relpath(inner_path, Path(path).parent)
        (self._target / path).symlink_to(link_target)
        self._note("link", path, link_target)

    def _file(self, handle: int, path: str, name: str) -> None:
        if secret_name(path):
            self.left_out.append(path)
            return
        with os.fdopen(open_regular(handle, name), "rb", buffering=0) as file:
            is_executable = os.fstat(file.fileno()).st_mode & 0o111
            file_bytes = file.read(LARGEST_FILE + 1)
        if len(file_bytes) > LARGEST_FILE or self._bytes + len(file_bytes) > MOST_BYTES or self._files >= MOST_FILES:
            self.left_out.append(path)
            return
        self._bytes += len(file_bytes)
        self._files += 1
        content = f"{hashlib.sha256(file_bytes).hexdigest()}{'-runs' if is_executable else ''}"
        self._note("file", path, content)
        self._place(self._contents / content, file_bytes, 0o500 if is_executable else 0o400, self._target / path)

    def _place(self, content: Path, data: bytes, mode: int, target: Path) -> None:
        with contextlib.suppress(OSError):
            os.link(content, target)
            return
        # The content is written to a temporary file and renamed, so that nobody sees half of it.
        handle, new_file = tempfile.mkstemp(dir=self._target)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        with contextlib.suppress(OSError):
            os.link(new_file, content)
        Path(new_file).rename(target)

    def _note(self, kind: str, path: str, what: str) -> None:
        self._digest.update(f"{kind}\0{path}\0{what}\0".encode("utf-8", "surrogateescape"))


def _small(handle: int) -> bool:
    """Says whether a folder that git ignores is small enough to be copied."""
    open_folders, files, size = [os.dup(handle)], 0, 0
    try:
        while open_folders:
            folder = open_folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            open_folders.append(os.open(entry.name, READ_FOLDER, dir_fd=folder))
                            continue
                        files, size = files + 1, size + entry.stat(follow_symlinks=False).st_size
                        if files > IGNORED_FILES or size > IGNORED_BYTES:
                            return False
            finally:
                os.close(folder)
    except OSError:
        return False
    finally:
        for folder in open_folders:
            os.close(folder)
    return True

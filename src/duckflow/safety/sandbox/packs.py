"""Git's packs in the sandbox: a command cannot touch the existing packs, and a new pack is checked.

A command that does not name git sees the whole folder of packs read-only. For a command that names git, each pack is a
read-only mount, so nothing can remove, replace or write it. The pack's list of contents (`.idx`) is not mounted, to
save time; instead a list that is new, gone or changed is made anew from its pack. Git itself replaces packs when it
collects garbage; a `.keep` beside a pack tells git to leave that pack alone."""

import contextlib
import os
import secrets
import stat
import subprocess
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.safety.files import read_plain
from duckflow.safety.sandbox.repositories import hold

LARGEST_LIST = 2 * 1024 * 1024 * 1024
KEPT = b"kept by duckflow while commands run\n"
MOST_PACKS = 80
"""The largest number of packs that are mounted one by one, since each mount takes time. With more, their whole folder
is read-only."""
CHECK_SECONDS = 60
Confine = Callable[[Launch], Launch]


class Packs:
    """The packs of some repositories, as they were when this object was made."""

    def __init__(self, top: Path, git_folders: Iterable[Path]) -> None:
        self._top = top
        self._folders = [folder / "objects/pack" for folder in git_folders]
        self._there = {folder: _entries(folder) for folder in self._folders}

    def guarded(self, may_add: bool) -> list[Path]:
        """Returns the paths that a command must not change: each pack where the command may add packs, else the whole
        folder of packs."""
        paths: list[Path] = []
        for folder, names in self._there.items():
            packs = [name for name in names if name.endswith(".pack")]
            if packs and (not may_add or len(packs) > MOST_PACKS):
                paths.append(folder)
            else:
                self._keep(folder, names)
                paths += [folder / name for name in packs]
        return paths

    def let_go(self) -> None:
        """Removes the `.keep` files that `guarded` put beside the packs."""
        for folder in self._folders:
            for name in [name for name in _entries(folder) if name.endswith(".keep")]:
                with contextlib.suppress(OSError), self._entered(folder) as handle:
                    if _read(handle, name) == KEPT:
                        os.unlink(name, dir_fd=handle)

    def forged(self, confine: Confine, scratch: Path) -> list[Path]:
        """Returns the lists of contents (`.idx`) that are gone or wrong: a wrong list could pass other contents off as
        old ones. Each list is made anew from its pack; a pack without a list is out of use."""
        forged_paths: list[Path] = []
        for folder, entries_before in self._there.items():
            entries_now = _entries(folder)
            index_names = {
                name for name in entries_now if name.endswith(".idx") and entries_now[name] != entries_before.get(name)
            }
            index_names |= {_list_of(name) for name in entries_before if name.endswith(".pack")} - entries_now.keys()
            for name in sorted(index_names):
                with contextlib.suppress(OSError), self._entered(folder) as handle:
                    right_index = _index(confine, scratch, folder / name)
                    if name not in entries_now or right_index != _read(handle, name):
                        forged_paths.append(folder / name)
                        _replace(handle, name, right_index)
        return forged_paths

    def _keep(self, folder: Path, names: Iterable[str]) -> None:
        keep_names = [name[: -len(".pack")] + ".keep" for name in names if name.endswith(".pack")]
        for name in [name for name in keep_names if name not in names]:
            with contextlib.suppress(OSError), self._entered(folder) as handle:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                file = os.open(name, flags, 0o600, dir_fd=handle)
                os.write(file, KEPT)
                os.close(file)

    @contextlib.contextmanager
    def _entered(self, folder: Path) -> Generator[int]:
        handle = hold(self._top, folder)
        try:
            yield handle
        finally:
            os.close(handle)


def own_objects(top: Path, git_folders: Iterable[Path]) -> None:
    """Gives a repository its own copies of objects that are hard links, as after `git clone` from another folder. A
    command could write to a shared object in place, and the other repository would lose it. Packs are mounts, so they
    may stay links."""
    for objects in (folder / "objects" for folder in git_folders):
        with contextlib.suppress(OSError):
            for name in os.listdir(objects):
                folder_stat = (objects / name).lstat()
                if stat.S_ISDIR(folder_stat.st_mode) and folder_stat.st_ctime_ns != _owned.get(objects / name):
                    with _held(top, objects / name) as handle:
                        _own_files(handle)
                        _owned[objects / name] = os.fstat(handle).st_ctime_ns


_owned: dict[Path, int] = {}
"""Git's folders of objects in which no file is a hard link any more, with the time of their last change (ctime)."""
COPY = ".own"


def _own_files(folder: int) -> None:
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if entry.is_file()]
    for name, file_stat in files:
        if file_stat.st_nlink > 1 and stat.S_ISREG(file_stat.st_mode) and not name.endswith(".pack"):
            file_bytes = _read(folder, name)
            copy = os.open(f"{name}{COPY}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            with os.fdopen(copy, "wb") as file:
                file.write(file_bytes)
                os.fchmod(copy, stat.S_IMODE(file_stat.st_mode))
            os.utime(
                f"{name}{COPY}", ns=(file_stat.st_atime_ns, file_stat.st_mtime_ns), dir_fd=folder, follow_symlinks=False
            )
            os.rename(f"{name}{COPY}", name, src_dir_fd=folder, dst_dir_fd=folder)


@contextlib.contextmanager
def _held(top: Path, folder: Path) -> Generator[int]:
    """Opens a folder beneath `top` for listing, without following any link."""
    path = hold(top, folder)
    try:
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=path)
    finally:
        os.close(path)
    try:
        yield handle
    finally:
        os.close(handle)


Trace = tuple[int, int, int]


def _entries(folder: Path) -> dict[str, Trace]:
    """Returns the names of a folder's files, each with a trace that changes whenever its content does: nobody can set
    the time of change (ctime)."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            return {entry.name: _trace(entry.stat(follow_symlinks=False)) for entry in files}
    except OSError:
        return {}


def _trace(about: os.stat_result) -> Trace:
    return about.st_ino, about.st_size, about.st_ctime_ns


def _list_of(pack: str) -> str:
    return f"{pack.removesuffix('.pack')}.idx"


def _read(folder: int, name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(file, "rb") as open_file:
        return open_file.read()


def _index(confine: Confine, scratch: Path, index: Path) -> bytes | None:
    """Returns the list of contents that git makes from a pack, or None when git cannot read the pack."""
    name = f"{secrets.token_hex(16)}.idx"
    digest = "sha256" if len(index.stem.removeprefix("pack-")) > 40 else "sha1"
    pack, without_reverse_index = str(index.with_suffix(".pack")), ("-c", "pack.writeReverseIndex=false")
    command = ["git", *without_reverse_index, "index-pack", f"--object-format={digest}", "-o", f"/tmp/{name}", pack]
    launch = confine(Launch(command, index.parent, {"PATH": os.defpath, "GIT_DIR": "/nowhere"}))
    try:
        git_run = subprocess.run(
            launch.argv,
            pass_fds=launch.fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=launch.environment,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise TimeoutError(str(index)) from problem
    finally:
        launch.close()
    if git_run.returncode:
        return None
    new_index = scratch / name
    try:
        return read_plain(new_index, LARGEST_LIST, follow=False)
    finally:
        new_index.unlink(missing_ok=True)


def _replace(folder: int, name: str, content: bytes | None) -> None:
    """Replaces a pack's list of contents, and keeps the old list under another name. If `content` is None, the pack
    gets no list, so git does not use the pack."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(name, f"{name}.wrong", src_dir_fd=folder, dst_dir_fd=folder)
    if content is not None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444, dir_fd=folder)
        with os.fdopen(file, "wb") as open_file:
            open_file.write(content)

"""The places that commands may touch: folders to write in, and places that they must not see."""

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from duckflow.programs.find import TEMPORARY
from duckflow.safety.files import hold_lock
from duckflow.safety.path_names import IN_HOME, ON_THE_MACHINE, SETTINGS_IN_HOME, SYSTEM, TOOLS_IN_HOME, holds_home
from duckflow.safety.repository import find_repository, own_folders
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.secret_index import PACKAGES, CoveredSecrets, around, secret_index
from duckflow.safety.secrets import holds_login, own_secret_name, secret_name

PREFIX = "duckflow-"
LOCK = "lock"


class Scratch:
    """A folder for temporary files, and an empty file and folder to put in the place of secrets."""

    def __init__(self) -> None:
        new_folder = Path(tempfile.mkdtemp(prefix="new-")).resolve()
        self._lock = hold_lock(new_folder / LOCK, os.O_CREAT)
        # The folder gets this name only when it is locked: before that, another session could sweep it away.
        self.top = new_folder.rename(new_folder.with_name(PREFIX + new_folder.name.removeprefix("new-")))
        self.folder = self.top / "tmp"
        self.folder.mkdir(mode=0o700)
        self.empty = self.top / "empty"
        self.empty.touch(mode=0o444)
        self.locked = self.top / "locked"
        self.locked.touch(mode=0o000)
        self.empty_folder = self.top / "empty-folder"
        self.empty_folder.mkdir(mode=0o555)
        # A tempfile.TemporaryDirectory would follow links to change modes when a folder cannot be removed, and commands
        # can put links here.
        self.close = weakref.finalize(self, _remove, str(self.top), self._lock)

    def file_with(self, text: str) -> Path:
        """Returns a file with this text, which commands see in the place of another. Equal texts share a file."""
        text_bytes = os.fsencode(text)
        text_file = self.top / f"text-{hashlib.sha256(text_bytes).hexdigest()}"
        if not text_file.exists():
            new_file = text_file.with_suffix(".new")
            new_file.write_bytes(text_bytes)
            new_file.chmod(0o444)
            new_file.rename(text_file)
        return text_file


def sweep_scratch() -> int:
    """Removes the temporary folders of sessions that were killed, and returns their number. The system lets go of a
    dead process's lock, so a folder whose lock is free belongs to nobody."""
    count = 0
    temporary_folders = dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), *TEMPORARY)))
    for scratch_folder in (folder for place in temporary_folders for folder in Path(place).glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if scratch_folder.is_symlink() or scratch_folder.lstat().st_uid != os.getuid():
                continue
            lock_handle = hold_lock(scratch_folder / LOCK)
            shutil.rmtree(scratch_folder, ignore_errors=True)
            os.close(lock_handle)
            count += 1
    return count


def _remove(top: str, lock: int) -> None:
    shutil.rmtree(top, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)


PROGRAMS_IN_HOME = ("bin", ".local/bin")
"""Folders in which people keep scripts of their own, beside files that these scripts read."""
INTERPRETERS = ("python3", "node", "ruby")
"""Programs that are often links into an installation, which has their libraries beside its `bin`."""
LIBRARIES = ("lib", "lib64", "libs", "libexec", "share", "jars", "packages")
"""Names of folders with libraries. An installation has at least one of them beside its `bin`."""
MOST_LOOKED_INTO = 20_000
"""The largest number of folders in one place of programs that are searched for secrets."""
VERSION_TOOL = ("bin", "shims", "libexec", "plugins", "pyenv.d", "rbenv.d", "version", "versions", "installs")
"""Folders of version managers such as pyenv and asdf, which are often clones of their repositories. The programs in
`shims` need the other folders."""
GIT_PARTS = (
    *("HEAD", "refs", "packed-refs", "reftable", "objects", "shallow", "config", "config.worktree", "index", "logs"),
    *("info", "hooks", "modules", "lfs", "commondir", "gitdir", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG"),
    *("MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG"),
    *("BISECT_START", "BISECT_TERMS", "COMMIT_EDITMSG", "rebase-merge", "rebase-apply", "sequencer"),
)


class GitPlaces(NamedTuple):
    """The repository around the work folder as it was before any command ran. If a command changes it later, as by a
    `.git` that leads elsewhere, commands do not see more than before."""

    top: Path | None = None
    folders: tuple[Path, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> "GitPlaces":
        repository = find_repository(folder)
        return cls(around(folder), own_folders(repository) if repository else ())

    def parts(self, writable: Sequence[Path]) -> list[Path]:
        """Returns git's own files that do not lie in these folders. Links are left out, because they lead to files that
        are not git's."""
        folders = [
            folder
            for folder in self.folders
            if not any(folder.is_relative_to(writable_folder) for writable_folder in writable)
        ]
        paths = [folder / name for folder in folders for name in GIT_PARTS]
        paths += [path for folder in folders for path in folder.glob("sharedindex.*")]
        return [path for path in paths if os.path.realpath(path) == str(path)]


NO_GIT = GitPlaces()


@dataclass(frozen=True)
class SandboxPaths:
    """The places that a command may read or write, the same for every kind of sandbox."""

    folder: Path
    home: Path
    settings: SandboxSettings
    private: tuple[Path, ...] = ()
    """Folders with Duckflow's own data. A command that could write there could change the record of what it did."""
    scratch: Scratch = field(default_factory=Scratch)
    readable: tuple[Path, ...] = ()
    """Places that a command may read even though they lie in a hidden place."""
    folder_writable: bool = True
    record: Path | None = None
    """The file that remembers which secret files git tracked."""
    git: GitPlaces = NO_GIT
    added: tuple[Path, ...] = ()
    """Further folders that the user has added. Commands read them and cannot write there, since undo does not reach
    there."""
    stand_ins: tuple[tuple[Path, Path], ...] = ()
    """Pairs of a folder of Duckflow's own and a path: a command sees the folder there, instead of what really lies
    there. The command may write to it. Only a sandbox with namespaces can do that."""
    limit: tuple[str, ...] | None = None
    """The files and folders of the work folder that a command may change. None means all of them."""

    def writable(self) -> tuple[Path, ...]:
        """Returns the work folder and the folders that the settings add to it, as far as they exist. Where a limit
        holds, only what it names in the work folder can be written there."""
        added_paths = map(Path, as_first_seen(str(self._place(name)) for name in self.settings.writable))
        if self.limit is None:
            return (*((self.folder,) if self.folder_writable else ()), *added_paths)
        apart = (path for path in added_paths if not path.is_relative_to(self.folder))
        return (*self._limited(self.limit), *(path for path in apart if not self.folder.is_relative_to(path)))

    def _limited(self, names: Iterable[str]) -> tuple[Path, ...]:
        """Returns the places that the limit names, as far as they exist and lie in the work folder. A name that leads
        elsewhere, through a link or by `..`, opens nothing."""
        paths = (self.folder / name for name in names)
        inner_paths = (str(path) for path in paths if self.folder in path.parents and path.exists())
        return outermost(path for path in inner_paths if os.path.realpath(path) == path)

    def hidden(self) -> tuple[Path, ...]:
        """Returns the real paths of places that must not be read. Places inside another one, and places that this user
        cannot read anyway, are left out."""
        shown_paths = {str(self._place(name)) for name in self.settings.shown}
        # The paths are texts and not `Path` objects, because most do not exist and a command waits for this.
        secret_paths = [*(f"{self.home}/{name}" for name in IN_HOME), *ON_THE_MACHINE]
        hidden_paths = [path for path in secret_paths if path not in shown_paths]
        hidden_paths += [str(self._place(name)) for name in self.settings.hidden] + [str(path) for path in self.private]
        program_folders = [f"{self.home}/{name}" for name in PROGRAMS_IN_HOME]
        # The system's own folders hold thousands of programs, and a command waits for this. In the work folder
        # `covered` finds the secrets, and its `.git` stays.
        excluded_prefixes = tuple(f"{path}/" for path in (*self.system(), self.folder))
        program_places = _program_places(os.environ.get("PATH", os.defpath), self.folder, self.home)
        program_folders += [place for place in program_places if not f"{place}/".startswith(excluded_prefixes)]
        hidden_paths += [
            path
            for program_folder in program_folders
            for path in _secret_entries(program_folder)
            if path not in shown_paths
        ]
        return outermost(os.path.realpath(path) for path in hidden_paths if os.access(path, os.R_OK))

    def system(self) -> tuple[Path, ...]:
        """Returns the real paths of the system's own files, which every command may read."""
        # The settings of the network are often a link to a file that a service writes.
        names = (*SYSTEM, "/etc/resolv.conf")
        return tuple(path for path in _system_places(names) if path != self.folder)

    def system_links(self) -> tuple[Path, ...]:
        """Returns the system's folders that are links, as /bin often is."""
        return tuple(path for path in _system_links() if path != self.folder)

    def opened(self) -> tuple[Path, ...]:
        """Returns the places outside the work folder that commands may read: tools in the home folder, places where
        programs are found, the repository around the work folder, and places that the settings name. If that repository
        contains the user's home, commands see only git's files in it."""
        shown_paths = [*self.added, *map(self._place, (*self.settings.shown, *self.settings.writable))]
        repository = self.git.parts(self.writable())
        top_folder = around(self.folder)
        if top_folder == self.git.top and not holds_home(top_folder, self.home):
            repository.append(top_folder)
        opened_paths = [
            *map(str, shown_paths),
            *(f"{self.home}/{name}" for name in TOOLS_IN_HOME),
            *map(str, repository),
        ]
        opened_paths += [path for name in SETTINGS_IN_HOME if not holds_login(path := f"{self.home}/{name}")]
        opened_paths += _program_places(os.environ.get("PATH", os.defpath), self.folder, self.home)
        return outermost(as_first_seen(opened_paths))

    def covered(self) -> CoveredSecrets:
        """Returns the secret files of the work folder, of the repository around it and of the added folders. No command
        gets to see them unless the user says so."""
        shown_paths = {self._place(name) for name in self.settings.shown}
        secrets_by_folder = [
            secret_index(top_folder).covered(self.record) for top_folder in (around(self.folder), *self.added)
        ]
        secrets = tuple(
            secret
            for found_secrets in secrets_by_folder
            for secret in found_secrets.secrets
            if secret.path not in shown_paths
        )
        return CoveredSecrets(secrets, all(found_secrets.whole for found_secrets in secrets_by_folder))

    def packages(self) -> list[Path]:
        """Returns the folders of installed packages in the work folder, as `covered` has found them."""
        packages = secret_index(around(self.folder)).packages()
        return [package_folder for package_folder in packages if package_folder.is_relative_to(self.folder)]

    def _place(self, name: str) -> Path:
        return self.home / name[2:] if name == "~" or name.startswith("~/") else self.folder / name


def as_first_seen(paths: Iterable[str]) -> Iterator[str]:
    """Yields the places that these paths led to before any command ran, as far as they exist. A path that leads
    elsewhere since then is left out: a command may have put a link to anywhere in its place."""
    plain_paths = {""}
    for path in paths:
        real_path = _real(path)
        if os.access(real_path, os.R_OK) and _is_plain(real_path, plain_paths):
            yield real_path


def _is_plain(path: str, plain_paths: set[str]) -> bool:
    """Says whether no link lies on the way to this path. `plain_paths` holds the paths that are known to be plain: they
    are looked at once for all places, because a command waits for this."""
    if path not in plain_paths:
        try:
            leads_elsewhere = stat.S_ISLNK(os.lstat(path).st_mode)
        except OSError:
            return False
        if leads_elsewhere or not _is_plain(path.rpartition("/")[0], plain_paths):
            return False
        plain_paths.add(path)
    return True


@lru_cache(4096)
def _real(path: str) -> str:
    return os.path.realpath(path)


@lru_cache(1)
def _system_links() -> tuple[Path, ...]:
    return tuple(path for path in map(Path, SYSTEM) if path.is_symlink())


@lru_cache(4)
def _system_places(names: Sequence[str]) -> tuple[Path, ...]:
    return outermost(os.path.realpath(name) for name in names if os.access(name, os.R_OK))


@lru_cache(64)
def _secret_entries(place: str) -> tuple[str, ...]:
    """Returns files and folders with names of secrets in a folder of programs and beneath it, without installed
    packages. Deeper in an installation, and in libraries, only names count that people give to their own secrets. The
    plugins of a version manager are clones of public repositories. The result is cached, because a command waits for
    it."""
    has_plugins = place.endswith("/plugins") and Path(place).with_name("shims").is_dir()
    has_libraries = any(Path(place, name).is_dir() for name in LIBRARIES)
    secret_paths, waiting_folders, listed_count = list[str](), deque([(place, False)]), 0
    while waiting_folders and listed_count < MOST_LOOKED_INTO:
        folder, has_packages = waiting_folders.popleft()
        listed_count += 1
        is_secret = own_secret_name if has_packages else secret_name
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if has_plugins and entry.name == ".git" and not holds_login(f"{entry.path}/config"):
                    continue
                if is_secret(entry.name) or entry.name == ".git":
                    secret_paths.append(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.name not in PACKAGES:
                    waiting_folders.append((entry.path, has_packages or has_libraries or entry.name in LIBRARIES))
    return tuple(secret_paths)


@lru_cache(4)
def _program_places(search_path: str, folder: Path, home: Path) -> tuple[str, ...]:
    """Returns the folders of the programs on the search path, with the libraries that a virtual environment or a
    toolchain keeps beside `bin`. A link from the work folder to elsewhere counts only if it leads to a toolchain,
    because an earlier command may have made the link. The result is cached, because a command waits for it."""
    program_folders: dict[str, None] = {}
    # Folders that hold tools in the home folder are not shown whole: `TOOLS_IN_HOME` lists their visible parts.
    tool_parents = {parent for name in TOOLS_IN_HOME for parent in (home / name).parents}
    for path_folder in filter(os.path.isabs, search_path.split(os.pathsep)):
        for program in (path_folder, *(f"{path_folder}/{name}" for name in INTERPRETERS)):
            real_path = Path(os.path.realpath(program))
            program_folder = real_path if program == path_folder else real_path.parent
            if program_folder.parent not in tool_parents and _is_installed(program_folder):
                program_folder = program_folder.parent
            leads_out = Path(program).is_relative_to(folder) and not program_folder.is_relative_to(folder)
            if not leads_out or any(os.access(program_folder / "bin" / name, os.X_OK) for name in INTERPRETERS):
                program_folders |= dict.fromkeys([str(program_folder), *_version_tool(program_folder)])
    return tuple(program_folders)


def _is_installed(program_folder: Path) -> bool:
    """Says whether programs were installed here with their libraries beside them. In a repository, or where no folder
    of libraries lies beside `bin`, the files beside it are somebody's own."""
    top = program_folder.parent
    may_be_prefix = program_folder.name == "bin" and len(program_folder.parts) > 3 and not (top / ".git").exists()
    return may_be_prefix and any((top / name).is_dir() for name in LIBRARIES)


def _version_tool(program_folder: Path) -> list[str]:
    """Returns the parts of the version manager that this folder belongs to. A repository without `shims` is somebody's
    project, of which nothing is shown beside its programs."""
    top = program_folder.parent
    if program_folder.name not in ("bin", "shims") or not all((top / name).exists() for name in (".git", "shims")):
        return []
    return [str(top / name) for name in VERSION_TOOL if (top / name).exists()]


def outermost(paths: Iterable[str]) -> tuple[Path, ...]:
    """Returns the paths that lie in no other path of the list."""
    outer_paths: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        # The entries of a folder come right after it.
        if not outer_paths or not path.startswith(f"{outer_paths[-1].rstrip('/')}/"):
            outer_paths.append(path)
    return tuple(map(Path, outer_paths))


def between(top: Path, path: Path) -> tuple[Path, ...]:
    """Returns the folders between `top` and `path`, without these two, outermost first; empty when `path` is not
    beneath `top`."""
    outer_parts, inner_parts = top.parts, path.parts
    if inner_parts[: len(outer_parts)] != outer_parts:
        return ()
    return tuple(Path(*inner_parts[:length]) for length in range(len(outer_parts) + 1, len(inner_parts)))

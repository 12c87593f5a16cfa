"""Finds the files of a work folder that hold secrets, and decides which of them commands do not get to see."""

import contextlib
import hashlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from duckflow.safety.files import read_plain
from duckflow.safety.ignore_rules import IgnoredPaths
from duckflow.safety.path_names import holds_home
from duckflow.safety.repository import Repository, find_repository
from duckflow.safety.secrets import own_secret_name, secret_name

PACKAGES = frozenset(("node_modules", "site-packages"))
"""Folders of installed packages. There a file counts as secret only by a name that people give to their own secrets,
because packages bring keys and certificates. The folders are read when something is installed or removed, not before
each command, since no command can move a secret file into them."""
GIT_RECORD = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?[ \n]|ref: ")
"""Matches the beginning of a branch's file or log in `.git`. Such a file has the name of the branch, which may look
like the name of a secret."""
BEHIND_LINKS = "behind links in "
ANY_NAME = "x"
MOST_FOLDERS = 100_000
MOST_WALKED = 10_000
MOST_FILES = 200
"""The largest number of files that are covered. Each one is a mount, which a command waits for."""
LARGEST_TRACKED = 1024 * 1024
LONGEST_RECORD = 80
SETTLED_NS = 50_000_000
"""Nanoseconds after which a second change of a folder surely gets another time. A folder that is read sooner after a
change may change again unnoticed."""


class ListedFolder(NamedTuple):
    """The secrets and other facts of a folder, as they were when it was last read."""

    changed_at: int
    """The folder's time of change (ctime), which nobody can set."""
    folders: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Links that have the name of a secret file or folder."""
    read: int = 1
    """The number of folders that were read for this list."""
    places: tuple[int, ...] = ()
    """The inodes of the secret files. They are listed only for installed packages."""


class SecretFiles(NamedTuple):
    """Paths of secret files beneath a folder. `whole` is False if the list is incomplete."""

    paths: tuple[str, ...]
    whole: bool


class CoveredSecret(NamedTuple):
    """A file that commands do not get to see, or a folder that nobody could look into. `addable` says that `git add`
    would add the empty cover as if it were the file."""

    path: Path
    addable: bool
    held: bool = True
    """True if the folders above the file must not be moved either, since the name of one of them may be the only sign
    that the file is secret."""


class CoveredSecrets(NamedTuple):
    """The files that are hidden from commands. `whole` is False if there are more than can be hidden."""

    secrets: tuple[CoveredSecret, ...] = ()
    whole: bool = True


class SecretIndex:
    """Keeps a list of the secret files. `look` compares the times of the folders and reads only those that changed."""

    def __init__(self, folder: Path, most_folders: int = MOST_FOLDERS) -> None:
        self._folder = folder
        self._most = most_folders
        self._listed: dict[str, ListedFolder] = {}
        self._tracked: set[str] | None = None
        self._linked: set[str] = set()
        """Files that a link with the name of a secret led to. A command can remove the link, so they are remembered."""
        self._lock = Lock()

    def look(self) -> SecretFiles:
        """Looks into every folder, breadth first, until there are too many, and returns the secret files. Links are not
        followed."""
        with self._lock:
            self._forget_moved()
            waiting_folders, listed_folders, count, paths, link_paths = (
                deque([""]),
                dict[str, ListedFolder](),
                0,
                list[str](),
                list[str](),
            )
            while waiting_folders and count <= self._most:
                inner_folder = waiting_folders.popleft()
                if listed_folder := self._list(inner_folder):
                    listed_folders[inner_folder] = listed_folder
                    count += listed_folder.read
                    waiting_folders.extend(listed_folder.folders)
                    paths += listed_folder.secrets
                    link_paths += listed_folder.links
            self._listed = listed_folders
            self._linked |= {path for link in link_paths for path in _behind(os.path.realpath(self._folder), link)}
            paths += sorted(path for path in self._linked.difference(paths) if (self._folder / path).is_file())
            return SecretFiles((*paths, *self._other_names(paths)), count <= self._most)

    def packages(self) -> list[Path]:
        """Returns the folders of installed packages that the last look found."""
        return [self._folder / inner for inner in self._listed if inner.rpartition("/")[2] in PACKAGES]

    def _other_names(self, paths: list[str]) -> Iterator[str]:
        """Yields the other names (hard links) that these secret files have in the folder."""
        inodes = {inode for inode in self._places(paths, links=1) if inode}
        for inner_folder in self._listed if inodes else ():
            with contextlib.suppress(OSError), os.scandir(self._folder / inner_folder) as entries:
                same_file_names = [
                    entry.name for entry in entries if entry.inode() in inodes and not entry.is_symlink()
                ]
                yield from (
                    path for name in same_file_names if (path := f"{inner_folder}/{name}".lstrip("/")) not in paths
                )

    def covered(self, record: Path | None = None) -> CoveredSecrets:
        """Returns the secret files that git does not track. An entry of git's index proves that a file is tracked only
        if `_believed` accepts the entry. `record` is the file that remembers which secret files git tracked."""
        links_key = BEHIND_LINKS + str(self._folder)
        if self._tracked is None:
            self._linked |= {*_recorded(record).get(links_key, ())}
        linked_count = len(self._linked)
        files = self.look()
        if record and len(self._linked) != linked_count:
            _keep(record, links_key, [*self._linked])
        if not files.paths and self._tracked is not None:
            return CoveredSecrets(whole=files.whole)
        repository = find_repository(self._folder)
        if repository is None:
            # A repository that a command makes here later has nothing tracked yet.
            if record and self._tracked is None:
                _keep(record, str(self._folder), [])
            self._tracked = self._tracked or set()
            untracked_paths, addable_paths = files.paths, frozenset[str]()
        else:
            tracked_paths = self._believed(files.paths, repository, record)
            untracked_paths = tuple(path for path in files.paths if path not in tracked_paths)
            ignored_paths = IgnoredPaths(self._folder)
            addable_paths = frozenset(
                path for path in untracked_paths[:MOST_FILES] if not ignored_paths.ignores_file(path)
            )
        secrets = tuple(self._cover(path, path in addable_paths) for path in untracked_paths[:MOST_FILES])
        return CoveredSecrets(secrets, files.whole and len(untracked_paths) <= MOST_FILES)

    def _cover(self, path: str, addable: bool) -> CoveredSecret:
        return CoveredSecret(self._folder / path, addable, PACKAGES.isdisjoint(path.split("/")))

    def _believed(self, paths: Iterable[str], repository: Repository, record: Path | None) -> set[str]:
        """Returns the paths that git really tracks. A command can write anything into the index, or commit it. So an
        entry counts in three cases: the file has the content that the entry names, which only a reader of the file can
        know; the entry counted at the last look; or no command has run in this repository yet."""
        top, index = repository.top, repository.index()
        prefix = "" if self._folder == top else self._folder.relative_to(top).as_posix() + "/"
        index_entries = {path: index[prefix + path] for path in paths if prefix + path in index}
        tracked_before = self._tracked
        if tracked_before is None:
            recorded_paths = _recorded(record)
            is_new_folder = not any(str(folder) in recorded_paths for folder in (top, *top.parents))
            tracked_before = {
                path.removeprefix(prefix) for path in recorded_paths.get(str(top), ()) if path.startswith(prefix)
            }
            tracked_before |= index_entries.keys() if is_new_folder else set()
        tracked_paths = tracked_before | {
            path for path in index_entries.keys() - tracked_before if _holds(self._folder / path, index_entries[path])
        }
        if record and tracked_paths != self._tracked:
            _keep(record, str(top), [prefix + path for path in tracked_paths])
        self._tracked = tracked_paths
        return tracked_paths & index_entries.keys()

    def _forget_moved(self) -> None:
        """Forgets the listed packages when a secret file in one of them is no longer where it was. The file may have
        moved deep inside the packages, where their own folder's time does not change, or into other packages; a link or
        another file may be in its place."""
        packages = {
            inner_folder: listed_folder
            for inner_folder, listed_folder in self._listed.items()
            if inner_folder.rpartition("/")[2] in PACKAGES
        }
        if any(self._places(listed_folder.secrets) != listed_folder.places for listed_folder in packages.values()):
            self._listed = {
                inner_folder: listed_folder
                for inner_folder, listed_folder in self._listed.items()
                if inner_folder not in packages
            }

    def _places(self, paths: Iterable[str], links: int = 0) -> tuple[int, ...]:
        """Returns the inodes of these files. A 0 stands for a path that does not exist or goes through a link, and for
        a file with at most `links` names (hard links)."""
        real_folder = os.path.realpath(self._folder)
        return tuple(_inode(f"{real_folder}/{path}", links) for path in paths)

    def _list(self, inner: str) -> ListedFolder | None:
        folder = f"{self._folder}/{inner}" if inner else str(self._folder)
        try:
            changed_at = os.lstat(folder).st_ctime_ns
        except OSError:
            return None
        packages = inner.rpartition("/")[2] in PACKAGES
        listed_folder = self._listed.get(inner)
        if listed_folder and listed_folder.changed_at == changed_at:
            return listed_folder
        stamp = changed_at if time.time_ns() - changed_at > SETTLED_NS else 0
        if packages:
            package_entries = list(islice(_packages(folder, inner), self._most + 1))
            secrets = tuple(chain.from_iterable(entries.secrets for entries in package_entries))
            links = tuple(chain.from_iterable(entries.links for entries in package_entries))
            return ListedFolder(stamp, (), secrets, links, len(package_entries), self._places(secrets))
        entries = _entries(folder, inner, secret_name)
        return ListedFolder(stamp, tuple(entries.folders), tuple(entries.secrets), tuple(entries.links))


class Entries(NamedTuple):
    """The entries of a folder that the index of secrets needs."""

    folders: Sequence[str] = ()
    secrets: Sequence[str] = ()
    links: Sequence[str] = ()


def _entries(place: str, inner: str, secret: Callable[[str], bool]) -> Entries:
    """Returns the folders, the secret files and the links with names of secrets in a folder. A folder that cannot be
    looked into is a secret itself: whoever may change its mode can read its files."""
    try:
        with os.scandir(place) as folder_scan:
            entries = list(folder_scan)
        if inner and not os.access(place, os.X_OK):
            return Entries(secrets=[inner])
    except PermissionError:
        return Entries(secrets=[inner] if inner else [])
    except OSError:
        return Entries()
    folders, secrets, link_paths = list[str](), list[str](), list[str]()
    is_in_git = "/.git/" in f"/{inner}/"
    # Skips the history of git and Mercurial: objects, and files under the names that they have in the project.
    history = "objects" if is_in_git and any(entry.name == "HEAD" for entry in entries) else ""
    history = "store" if inner.rpartition("/")[2] == ".hg" else history
    for entry in entries:
        path = f"{inner}/{entry.name}" if inner else entry.name
        if entry.is_dir(follow_symlinks=False):
            folders += [path] if entry.name != history else []
        elif entry.is_symlink():
            link_paths += [path] if secret(path) or secret(f"{path}/{ANY_NAME}") else []
        elif secret(path) and entry.is_file(follow_symlinks=False) and not (is_in_git and _is_record(entry.path)):
            secrets.append(path)
    return Entries(folders, secrets, link_paths)


def _behind(top: str, link: str) -> Iterator[str]:
    """Yields the files of the work folder that the link leads to, or the secret ones in the folder that it leads to."""
    link_target = Path(os.path.realpath(f"{top}/{link}"))
    if not link_target.is_relative_to(top) or Path(top, link).is_relative_to(link_target):
        return
    walked_paths = (f"{folder}/{name}" for folder, _, names in os.walk(link_target) for name in names)
    secret_paths = (
        path for path in islice(walked_paths, MOST_WALKED) if secret_name(link + path.removeprefix(str(link_target)))
    )
    for path in secret_paths if link_target.is_dir() else (link_target,):
        real_path = Path(os.path.realpath(path))
        if real_path.is_relative_to(top) and real_path.is_file():
            yield real_path.relative_to(top).as_posix()


def _is_record(path: str) -> bool:
    with contextlib.suppress(OSError):
        return GIT_RECORD.match(read_plain(Path(path), LONGEST_RECORD, follow=False, cut=True)) is not None
    return False


def _inode(path: str, links: int) -> int:
    try:
        file_stat = os.lstat(path)
        return file_stat.st_ino if file_stat.st_nlink > links and os.path.realpath(path) == path else 0
    except OSError:
        return 0


def _packages(place: str, inner: str) -> Iterator[Entries]:
    """Yields the entries that people may have put among installed packages, folder by folder."""
    waiting_folders = [(place, inner)]
    while waiting_folders:
        place, inner = waiting_folders.pop()
        folder_entries = _entries(place, inner, own_secret_name)
        waiting_folders += [(f"{place}/{path.rpartition('/')[2]}", path) for path in folder_entries.folders]
        yield folder_entries


def _holds(path: Path, entry: bytes) -> bool:
    """Says whether the file's content is the one that the entry of the index names."""
    try:
        data = read_plain(path, LARGEST_TRACKED, follow=False)
    except OSError:
        return False
    return any(hashlib.new(kind, b"blob %d\0" % len(data) + data).digest() in entry for kind in ("sha1", "sha256"))


def _recorded(record: Path | None) -> dict[str, list[str]]:
    """Returns the recorded secret files that git tracked, by the top folder in which commands have run. A key with the
    prefix `BEHIND_LINKS` holds the files to which links with names of secrets led."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(record.read_bytes()) if record else {}
    return {}


def _keep(record: Path, top: str, paths: list[str]) -> None:
    import tempfile

    recorded_paths = _recorded(record) | {top: sorted(paths)}
    with contextlib.suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=record.parent)
        with os.fdopen(handle, "w") as file:
            json.dump(recorded_paths, file, indent=1)
        Path(name).replace(record)


def around(folder: Path) -> Path:
    """Returns the top of the repository around a work folder, which commands can read too. Without a repository, or if
    the repository contains the user's home, it returns the folder itself."""
    repository = find_repository(folder)
    return folder if repository is None or holds_home(repository.top, Path.home()) else repository.top


@lru_cache(8)
def secret_index(folder: Path) -> SecretIndex:
    """Returns the one index of this folder, shared by the code that covers files and the code that hides their
    lines."""
    return SecretIndex(folder)


def secrets_beneath(root: Path, folder: str) -> list[str]:
    """Returns the secret files in a folder of `root`, as paths relative to that folder."""
    inner_folder = os.path.relpath(root / folder, root)
    prefix = "" if inner_folder == "." else f"{inner_folder}/"
    return [path.removeprefix(prefix) for path in secret_index(root).look().paths if path.startswith(prefix)]

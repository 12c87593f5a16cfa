"""Which files of a work folder hold secrets, and which of them commands do not get to see."""

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
"""Installed packages bring keys and certificates: there only names count that people give to secrets of their own. They
are read when something is installed or removed, or when a secret file in them is not where it was, not before each
command: no command can bring another secret there, since neither it nor a folder above it can be moved."""
GIT_RECORD = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?[ \n]|ref: ")
"""How a branch or its log begins. Its file has the name of the branch, which may look like a secret's."""
BEHIND_LINKS = "behind links in "
ANY_NAME = "x"
MOST_FOLDERS = 100_000
MOST_WALKED = 10_000
MOST_FILES = 200
"""Each one is a mount, which a command waits for."""
LARGEST_TRACKED = 1024 * 1024
LONGEST_RECORD = 80
SETTLED_NS = 50_000_000
"""A folder that changed this shortly before it was read may change again without another time."""


class ListedFolder(NamedTuple):
    """A folder as it was when it was last read."""

    changed_at: int
    """Its time of change, which nobody can set."""
    folders: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Links that have the name of a secret file or folder."""
    read: int = 1
    """How many folders were read for it."""
    places: tuple[int, ...] = ()
    """Of installed packages: the inodes of the secret files."""


class SecretFiles(NamedTuple):
    """Paths beneath the folder. `whole`: there are no others."""

    paths: tuple[str, ...]
    whole: bool


class CoveredSecret(NamedTuple):
    """A file that commands do not get to see, or a folder that nobody could look into. `addable`: `git add` would take
    what covers it for the file."""

    path: Path
    addable: bool
    held: bool = True
    """The folders above it cannot be moved either, since a name of theirs may be all that tells it."""


class CoveredSecrets(NamedTuple):
    """Without `whole` there are more than can be covered."""

    secrets: tuple[CoveredSecret, ...] = ()
    whole: bool = True


class SecretIndex:
    """Keeps a list of the secret files. A look compares the times of the folders and reads only those that changed."""

    def __init__(self, folder: Path, most_folders: int = MOST_FOLDERS) -> None:
        self._folder = folder
        self._most = most_folders
        self._listed: dict[str, ListedFolder] = {}
        self._tracked: set[str] | None = None
        self._linked: set[str] = set()
        """Files that a link with the name of a secret led to. A command can remove the link, so they are remembered."""
        self._lock = Lock()

    def look(self) -> SecretFiles:
        """Every folder is looked into, breadth first, until there are too many; links are not followed."""
        with self._lock:
            self._forget_moved()
            waiting, listed, count, paths, links = deque([""]), dict[str, ListedFolder](), 0, list[str](), list[str]()
            while waiting and count <= self._most:
                inner = waiting.popleft()
                if known := self._list(inner):
                    listed[inner] = known
                    count += known.read
                    waiting.extend(known.folders)
                    paths += known.secrets
                    links += known.links
            self._listed = listed
            self._linked |= {path for link in links for path in _behind(os.path.realpath(self._folder), link)}
            paths += sorted(path for path in self._linked.difference(paths) if (self._folder / path).is_file())
            return SecretFiles((*paths, *self._other_names(paths)), count <= self._most)

    def _other_names(self, paths: list[str]) -> Iterator[str]:
        """Names under which a secret file lies in the folder once more, by a hard link."""
        inodes = {inode for inode in self._places(paths, links=1) if inode}
        for inner in self._listed if inodes else ():
            with contextlib.suppress(OSError), os.scandir(self._folder / inner) as entries:
                same = [entry.name for entry in entries if entry.inode() in inodes and not entry.is_symlink()]
                yield from (path for name in same if (path := f"{inner}/{name}".lstrip("/")) not in paths)

    def covered(self, record: Path | None = None) -> CoveredSecrets:
        """The files that git does not track, as far as the index can be believed. `record`: where it is kept which
        ones it tracked."""
        links = BEHIND_LINKS + str(self._folder)
        if self._tracked is None:
            self._linked |= {*_recorded(record).get(links, ())}
        remembered = len(self._linked)
        files = self.look()
        if record and len(self._linked) != remembered:
            _keep(record, links, [*self._linked])
        if not files.paths and self._tracked is not None:
            return CoveredSecrets(whole=files.whole)
        repository = find_repository(self._folder)
        if repository is None:
            # A repository that a command makes here later has nothing tracked yet.
            if record and self._tracked is None:
                _keep(record, str(self._folder), [])
            self._tracked = self._tracked or set()
            untracked, addable = files.paths, frozenset[str]()
        else:
            tracked = self._believed(files.paths, repository, record)
            untracked = tuple(path for path in files.paths if path not in tracked)
            ignored = IgnoredPaths(self._folder)
            addable = frozenset(path for path in untracked[:MOST_FILES] if not ignored.ignores_file(path))
        secrets = tuple(self._cover(path, path in addable) for path in untracked[:MOST_FILES])
        return CoveredSecrets(secrets, files.whole and len(untracked) <= MOST_FILES)

    def _cover(self, path: str, addable: bool) -> CoveredSecret:
        return CoveredSecret(self._folder / path, addable, PACKAGES.isdisjoint(path.split("/")))

    def _believed(self, paths: Iterable[str], repository: Repository, record: Path | None) -> set[str]:
        """A command can write what it likes into the index, or commit it. So an entry counts where the file's content
        is what it says, which only those can know who may read the file; where that was so before; and where no command
        has run in this repository yet."""
        top, index = repository.top, repository.index()
        lead = "" if self._folder == top else self._folder.relative_to(top).as_posix() + "/"
        named = {path: index[lead + path] for path in paths if lead + path in index}
        before = self._tracked
        if before is None:
            known = _recorded(record)
            new_here = not any(str(folder) in known for folder in (top, *top.parents))
            before = {path.removeprefix(lead) for path in known.get(str(top), ()) if path.startswith(lead)}
            before |= named.keys() if new_here else set()
        tracked = before | {path for path in named.keys() - before if _holds(self._folder / path, named[path])}
        if record and tracked != self._tracked:
            _keep(record, str(top), [lead + path for path in tracked])
        self._tracked = tracked
        return tracked & named.keys()

    def _forget_moved(self) -> None:
        """Deep in packages something may have been moved, which their own folder does not tell, and perhaps into other
        packages. A link or another file may stand in its place."""
        packages = {inner: known for inner, known in self._listed.items() if inner.rpartition("/")[2] in PACKAGES}
        if any(self._places(known.secrets) != known.places for known in packages.values()):
            self._listed = {inner: known for inner, known in self._listed.items() if inner not in packages}

    def _places(self, paths: Iterable[str], links: int = 0) -> tuple[int, ...]:
        """The inodes of these files, 0 where there is none, a link leads to it, or it has no more hard links."""
        top = os.path.realpath(self._folder)
        return tuple(_inode(f"{top}/{path}", links) for path in paths)

    def _list(self, inner: str) -> ListedFolder | None:
        place = f"{self._folder}/{inner}" if inner else str(self._folder)
        try:
            changed_at = os.lstat(place).st_ctime_ns
        except OSError:
            return None
        packages = inner.rpartition("/")[2] in PACKAGES
        known = self._listed.get(inner)
        if known and known.changed_at == changed_at:
            return known
        stamp = changed_at if time.time_ns() - changed_at > SETTLED_NS else 0
        if packages:
            read = list(islice(_packages(place, inner), self._most + 1))
            found = tuple(chain.from_iterable(entries.secrets for entries in read))
            links = tuple(chain.from_iterable(entries.links for entries in read))
            return ListedFolder(stamp, (), found, links, len(read), self._places(found))
        entries = _entries(place, inner, secret_name)
        return ListedFolder(stamp, tuple(entries.folders), tuple(entries.secrets), tuple(entries.links))


class Entries(NamedTuple):
    """What of a folder's entries counts here."""

    folders: Sequence[str] = ()
    secrets: Sequence[str] = ()
    links: Sequence[str] = ()


def _entries(place: str, inner: str, secret: Callable[[str], bool]) -> Entries:
    """The folders, the secret files and the links with names of secrets in a folder. One that cannot be looked into is
    a secret itself: whoever may change its mode can read what lies in it."""
    try:
        with os.scandir(place) as scanned:
            entries = list(scanned)
        if inner and not os.access(place, os.X_OK):
            return Entries(secrets=[inner])
    except PermissionError:
        return Entries(secrets=[inner] if inner else [])
    except OSError:
        return Entries()
    folders, secrets, links = list[str](), list[str](), list[str]()
    in_git = "/.git/" in f"/{inner}/"
    # The history of git and Mercurial: objects, and files under the names that they have in the project.
    history = "objects" if in_git and any(entry.name == "HEAD" for entry in entries) else ""
    history = "store" if inner.rpartition("/")[2] == ".hg" else history
    for entry in entries:
        path = f"{inner}/{entry.name}" if inner else entry.name
        if entry.is_dir(follow_symlinks=False):
            folders += [path] if entry.name != history else []
        elif entry.is_symlink():
            links += [path] if secret(path) or secret(f"{path}/{ANY_NAME}") else []
        elif secret(path) and entry.is_file(follow_symlinks=False) and not (in_git and _is_record(entry.path)):
            secrets.append(path)
    return Entries(folders, secrets, links)


def _behind(top: str, link: str) -> Iterator[str]:
    """Files of the folder that the link leads to, or that lie in the folder that it leads to."""
    place = Path(os.path.realpath(f"{top}/{link}"))
    if not place.is_relative_to(top) or Path(top, link).is_relative_to(place):
        return
    walked = (f"{folder}/{name}" for folder, _, names in os.walk(place) for name in names)
    inside = (path for path in islice(walked, MOST_WALKED) if secret_name(link + path.removeprefix(str(place))))
    for path in inside if place.is_dir() else (place,):
        real = Path(os.path.realpath(path))
        if real.is_relative_to(top) and real.is_file():
            yield real.relative_to(top).as_posix()


def _is_record(path: str) -> bool:
    with contextlib.suppress(OSError):
        return GIT_RECORD.match(read_plain(Path(path), LONGEST_RECORD, follow=False, cut=True)) is not None
    return False


def _inode(path: str, links: int) -> int:
    try:
        about = os.lstat(path)
        return about.st_ino if about.st_nlink > links and os.path.realpath(path) == path else 0
    except OSError:
        return 0


def _packages(place: str, inner: str) -> Iterator[Entries]:
    """What people may have put among installed packages, folder by folder."""
    waiting = [(place, inner)]
    while waiting:
        place, inner = waiting.pop()
        entries = _entries(place, inner, own_secret_name)
        waiting += [(f"{place}/{path.rpartition('/')[2]}", path) for path in entries.folders]
        yield entries


def _holds(path: Path, entry: bytes) -> bool:
    """Whether the file's content is the one that the entry of the index names."""
    try:
        data = read_plain(path, LARGEST_TRACKED, follow=False)
    except OSError:
        return False
    return any(hashlib.new(kind, b"blob %d\0" % len(data) + data).digest() in entry for kind in ("sha1", "sha256"))


def _recorded(record: Path | None) -> dict[str, list[str]]:
    """By the top of each folder that commands have run in: its secret files that git tracked. By a name of their own:
    those that links with names of secrets led to."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(record.read_bytes()) if record else {}
    return {}


def _keep(record: Path, top: str, paths: list[str]) -> None:
    import tempfile

    known = _recorded(record) | {top: sorted(paths)}
    with contextlib.suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=record.parent)
        with os.fdopen(handle, "w") as file:
            json.dump(known, file, indent=1)
        Path(name).replace(record)


def around(folder: Path) -> Path:
    """The top of the repository around a work folder, which commands can read too; the folder itself where there is
    none, or one that holds a whole home."""
    repository = find_repository(folder)
    return folder if repository is None or holds_home(repository.top, Path.home()) else repository.top


@lru_cache(8)
def secret_index(folder: Path) -> SecretIndex:
    """The index of this folder: those who cover files and those who hide their lines share it."""
    return SecretIndex(folder)


def secrets_beneath(root: Path, folder: str) -> list[str]:
    """The secret files in a folder of `root`, by their names in it."""
    inner = os.path.relpath(root / folder, root)
    above = "" if inner == "." else f"{inner}/"
    return [path.removeprefix(above) for path in secret_index(root).look().paths if path.startswith(above)]

"""Which files of a work folder hold secrets, and which of them commands do not get to see."""

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from duckflow.safety.ignore_rules import IgnoredPaths
from duckflow.safety.repository import find_repository
from duckflow.safety.secrets import secret_name

SKIPPED = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", "site-packages"))
MOST_ENTRIES = 20_000
MOST_FILES = 200
SETTLED_NS = 50_000_000
"""A folder that changed this shortly before it was read may change again without another time."""
EMPTY_BLOBS = tuple(hashlib.new(kind, b"blob 0\0").digest() for kind in ("sha1", "sha256"))
"""The names under which git keeps an empty file."""


class ListedFolder(NamedTuple):
    """A folder as it was when it was last read."""

    changed_at: int
    entries: int
    folders: tuple[str, ...]
    secrets: tuple[str, ...]


class CoveredSecret(NamedTuple):
    """A file that commands do not get to see. `addable`: `git add` would take what covers it for the file."""

    path: str
    addable: bool


class SecretIndex:
    """Keeps a list of the secret files. A look compares the times of the folders and reads only those that changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listed: dict[str, ListedFolder] = {}
        self._covered: set[str] = set()
        self._lock = Lock()

    def files(self) -> tuple[str, ...]:
        """Their paths beneath the folder, breadth first; links are not followed. Of a very large folder only the upper
        part is looked at."""
        with self._lock:
            return tuple(self._look())

    def covered(self) -> tuple[CoveredSecret, ...]:
        """The files that git does not track. One that was covered once stays so, since the model could add it."""
        files = self.files()
        repository = find_repository(self._folder) if files else None
        if repository is None:
            return tuple(CoveredSecret(path, addable=False) for path in files)
        lead = "" if self._folder == repository.top else self._folder.relative_to(repository.top).as_posix() + "/"
        tracked, ignored = repository.index(), IgnoredPaths(self._folder)
        self._covered.update(path for path in files if _is_empty(tracked.get(lead + path)))
        return tuple(
            CoveredSecret(path, addable=not ignored.ignores_file(path)) for path in files if path in self._covered
        )

    def _look(self) -> Iterator[str]:
        waiting, listed, entries, files = deque([""]), dict[str, ListedFolder](), 0, 0
        while waiting and entries < MOST_ENTRIES and files < MOST_FILES:
            inner = waiting.popleft()
            known = self._list(inner)
            if known is None:
                continue
            listed[inner] = known
            entries, files = entries + known.entries, files + len(known.secrets)
            waiting.extend(known.folders)
            yield from known.secrets
        self._listed = listed

    def _list(self, inner: str) -> ListedFolder | None:
        place = self._folder / inner
        try:
            changed_at = place.stat(follow_symlinks=False).st_mtime_ns
            if (known := self._listed.get(inner)) and known.changed_at == changed_at:
                return known
            with os.scandir(place) as scanned:
                entries = list(scanned)
        except OSError:
            return None
        folders, secrets = list[str](), list[str]()
        for entry in entries:
            path = f"{inner}/{entry.name}" if inner else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders += [path] if entry.name not in SKIPPED else []
            elif secret_name(path) and entry.is_file(follow_symlinks=False):
                secrets.append(path)
        settled = time.time_ns() - changed_at > SETTLED_NS
        return ListedFolder(changed_at if settled else 0, len(entries), tuple(folders), tuple(secrets))


def _is_empty(entry: bytes | None) -> bool:
    """Whether git does not track the file, or only the emptiness that a command saw in its place."""
    return entry is None or any(blob in entry for blob in EMPTY_BLOBS)


@lru_cache(8)
def secret_index(folder: Path) -> SecretIndex:
    """The index of this folder: those who cover files and those who hide their lines share it."""
    return SecretIndex(folder)

"""Whether a command moved something inside a repository: undo brings back files, not branches or the index."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.digest import digest
from duckflow.safety.undo.git_folder import GitFolder, git_folder_around, git_folder_at, plain_bytes
from duckflow.safety.undo.shadow import Shadow

Marks = dict[str, "Mark"]


class Mark(NamedTuple):
    """Where a repository stands: what is checked out, and digests of its branches, tags and stash, and of its index."""

    head: str
    refs: str
    staged: str


class GitWatch:
    """Compares where the repositories of the work folder stood before a command and stand after it."""

    def __init__(self, shadow: Shadow, work: Path) -> None:
        self._shadow = shadow
        self._work = work

    def marks(self, repositories: Iterable[str], before: bool) -> Marks:
        """By folder, `` for the work folder itself. `before`: keep copies of the indexes to compare with."""
        found: Marks = {}
        for folder in {"", *repositories}:
            repository = git_folder_at(self._work / folder) if folder else git_folder_around(self._work)
            if repository is None:
                continue
            if before:
                self._shadow.copy_index(repository, "before")
            found[folder] = _mark(repository)
        return found

    def moved(self, before: Mapping[str, Mark], after: Mapping[str, Mark]) -> Iterator[tuple[str, str]]:
        """What is to be said: which kind, and of what."""
        for folder in sorted(before.keys() | after.keys()):
            old, new = before.get(folder), after.get(folder)
            if old is None or new is None:
                yield ("git_gone" if new is None else "git_made"), folder or "."
            elif old != new:
                yield from self._moves(folder, old, new)

    def _moves(self, folder: str, old: Mark, new: Mark) -> Iterator[tuple[str, str]]:
        if old.head != new.head:
            place = f"{folder}: " if folder else ""
            yield "head", f"{place}{old.head} → {new.head}"
        elif old.refs != new.refs:
            yield "refs", folder or "."
        if old.staged != new.staged and self._really_staged(folder):
            yield "index", folder or "."

    def _really_staged(self, folder: str) -> bool:
        """Git also rewrites an index only to remember the files' times."""
        repository = git_folder_at(self._work / folder) if folder else git_folder_around(self._work)
        if repository is None:
            return False
        before = self._shadow.staged(self._shadow.index_copy(repository, "before"))
        return before is None or before != self._shadow.staged(repository.index)


def _mark(repository: GitFolder) -> Mark:
    refs = json.dumps(sorted(repository.refs().items())).encode()
    return Mark(repository.head(), digest(refs), digest(plain_bytes(repository.index)))

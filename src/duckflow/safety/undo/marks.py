"""Marks the state of the repositories of a work folder, and says what has moved between two states."""

import contextlib
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from duckflow.safety.files import digest
from duckflow.safety.repository import Repository, find_repository

Marks = dict[str, list[str]]


def marks_in(work: Path, folders: Iterable[str]) -> Marks:
    """Returns the state of the repository around the work folder, and of those that begin in these folders: what is
    checked out, branches, tags and stash, what is staged, the packs, and last the place of git's files."""
    marks: Marks = {}
    for folder in {"", *folders}:
        repository = find_repository(work / folder)
        if repository and (not folder or repository.top == work / folder):
            refs = digest(repr(sorted(repository.refs().items())).encode("utf-8", "surrogateescape"))
            index_digest, packs = repository.index_digest(), _packs(repository.common)
            marks[folder] = [repository.head(), refs, index_digest, packs, _below(work, repository)]
    return marks


def _below(work: Path, repository: Repository) -> str:
    """Returns the path of git's files in the work folder, or an empty text when they lie elsewhere."""
    is_below = repository.common != work and repository.common.is_relative_to(work)
    return repository.common.relative_to(work).as_posix() if is_below else ""


def _packs(git_folder: Path) -> str:
    with contextlib.suppress(OSError):
        return " ".join(sorted(name for name in os.listdir(git_folder / "objects/pack") if name.endswith(".pack")))
    return ""


def what_moved(work: Path, before: Marks, after: Marks, covered: Container[str]) -> Iterator[tuple[str, str]]:
    """Yields the kind and the name of every change between the two states of the repositories. For a repository in
    `covered`, which undo restores, only lost packs are reported."""
    for folder in sorted(before.keys() | after.keys()):
        if folder not in before:
            yield "git_made", folder or "."
            continue
        old_marks, new_marks = before[folder], after.get(folder, [""] * 5)
        if folder not in after and "".join(old_marks[4:]):
            # Without `HEAD` the folder is no repository any more, but its packs may still be there.
            new_marks[3] = _packs(work / old_marks[4])
        old_packs, new_packs = ({*"".join(marks[3:4]).split()} for marks in (old_marks, new_marks))
        if old_packs - new_packs and not new_packs - old_packs:
            yield "packs", folder or "."
        if folder in covered:
            continue
        if folder not in after:
            yield "git_gone", folder or "."
        elif old_marks[0] != new_marks[0]:
            yield "head", f"{folder}: {old_marks[0]} → {new_marks[0]}".removeprefix(": ")
        elif old_marks[1] != new_marks[1]:
            yield "refs", folder or "."
        if folder in after and old_marks[2] != new_marks[2]:
            yield "index", folder or "."

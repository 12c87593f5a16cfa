"""Compares the files of a work folder with the copies that its agreed programs run from."""

import filecmp
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.brought.agreements import Agreement, Agreements, BroughtProgram
from duckflow.safety.brought.launch import changed_files


class Renewal(NamedTuple):
    """Agreed programs whose files have changed, and the copy that they would run from. It differs from the agreed one
    in the files that are listed here, and in no others."""

    agreements: tuple[Agreement, ...]
    copy: str
    named: tuple[str, ...]
    """The changed files that the commands of the programs name."""
    changed: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def total(self) -> int:
        return len(self.changed) + len(self.new) + len(self.gone)


def renewals(folder: Path, agreements: Agreements, lines: Mapping[BroughtProgram, str]) -> list[Renewal]:
    """Returns a renewal for each copy of which a file has changed that a command names. `lines` holds the commands of
    the programs."""
    agreements_by_copy: dict[str, list[Agreement]] = {}
    for agreement in agreements.all():
        if agreement.program in lines:
            agreements_by_copy.setdefault(agreement.copy, []).append(agreement)
    found_renewals: list[Renewal] = []
    for name, agreements_of_copy in agreements_by_copy.items():
        if agreed_copy := agreements.copies.find(name):
            named_lists = (changed_files(folder, agreed_copy, lines[each.program]) for each in agreements_of_copy)
            if named_files := sorted({path for named_list in named_lists for path in named_list}):
                new_copy = agreements.copies.take(folder)
                renewal = Renewal(tuple(agreements_of_copy), new_copy.name, tuple(named_files), (), (), ())
                found_renewals.append(_with_differences(renewal, agreed_copy, new_copy.folder))
    return found_renewals


def _with_differences(renewal: Renewal, before: Path, after: Path) -> Renewal:
    paths_before, paths_after = _paths(before), _paths(after)
    changed = [path for path in paths_before & paths_after if not _same(before / path, after / path)]
    changed.sort(key=lambda path: (path not in renewal.named, path))
    new, gone = sorted(paths_after - paths_before), sorted(paths_before - paths_after)
    return renewal._replace(changed=tuple(changed), new=tuple(new), gone=tuple(gone))


def _paths(copy: Path) -> set[str]:
    """Returns the files and links of a copy, and its empty folders."""
    paths: set[str] = set()
    for parent, folders, files in os.walk(copy):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        names = [*files, *links] or ([] if folders else [""])
        paths |= {os.path.relpath(Path(parent, name), copy) for name in names}
    return paths


def _same(before: Path, after: Path) -> bool:
    """Says whether two entries of copies are the same. Equal files are mostly one file."""
    if before.is_symlink() or after.is_symlink():
        return before.is_symlink() and after.is_symlink() and before.readlink() == after.readlink()
    if before.is_dir() or after.is_dir():
        return before.is_dir() and after.is_dir()
    if before.samefile(after):
        return True
    return before.stat().st_mode == after.stat().st_mode and filecmp.cmp(before, after, shallow=False)

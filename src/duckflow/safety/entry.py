"""What lies in a folder."""

import os
import stat
from typing import Literal, NamedTuple

Kind = Literal["file", "folder", "link", "special"]


class FolderEntry(NamedTuple):
    """One name, with its path relative to the work folder."""

    path: str
    kind: Kind
    size: int
    modified: float

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def entry(path: str, facts: os.stat_result) -> FolderEntry:
    return FolderEntry(path, kind_of(facts.st_mode), facts.st_size, facts.st_mtime)


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"

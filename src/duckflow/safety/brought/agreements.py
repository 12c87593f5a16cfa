"""Which programs of which work folder the user has agreed to: as what, with which rights, from which copy."""

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.safety.brought.copies import FolderCopies

Right = Literal["network", "sockets", "home", "outside"]
"""`network`; `sockets`: local sockets; `home`: a private writable home and cache; `outside`: no sandbox at all."""
RIGHTS: tuple[Right, ...] = ("network", "sockets", "home", "outside")


class BroughtProgram(NamedTuple):
    """A hook or a server that a work folder brings. `name` stays the same when what it runs changes. Anything else that
    is shown is another program, and asked about."""

    name: str
    shown: str
    """All that the user agrees to, for people."""


class Agreement(NamedTuple):
    """A yes of the user."""

    program: BroughtProgram
    rights: tuple[Right, ...]
    copy: str


class Agreements:
    """Those for one work folder, in a file of the user's own. The copies that they name are removed with them."""

    def __init__(self, kept_in: Path, folder: Path, copies: FolderCopies) -> None:
        self._kept_in = kept_in
        self._folder = str(folder)
        self.copies = copies

    def find(self, program: BroughtProgram) -> Agreement | None:
        return next((known for known in self.all() if known.program == program), None)

    def all(self) -> list[Agreement]:
        return _read(self._load().get(self._folder))

    def add(self, agreements: Sequence[Agreement], instead_of: Sequence[BroughtProgram] = ()) -> None:
        """Also takes the place of an earlier agreement about the same program."""
        gone = {*instead_of, *(agreement.program for agreement in agreements)}
        self._write([*(known for known in self.all() if known.program not in gone), *agreements])

    def withdraw(self) -> int:
        """Takes back all of them; how many there were."""
        count = len(self.all())
        self._write([])
        return count

    def _write(self, agreements: list[Agreement]) -> None:
        before = {known.copy for known in self.all()}
        table = self._load()
        table[self._folder] = [
            {"name": one.program.name, "shown": one.program.shown, "rights": one.rights, "copy": one.copy}
            for one in agreements
        ]
        table = {folder: entries for folder, entries in table.items() if entries}
        self._kept_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, fresh = tempfile.mkstemp(dir=self._kept_in.parent)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(table, file, ensure_ascii=False, indent=1)
        Path(fresh).replace(self._kept_in)
        used = {known.copy for entries in table.values() for known in _read(entries)}
        self.copies.remove_unused(used, before - used)

    def _load(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            table: Any = json.loads(self._kept_in.read_text(encoding="utf-8", errors="surrogateescape"))
            return dict(table)
        return {}


def agreements_of(data: Path, folder: Path) -> Agreements:
    """Those for a work folder; `data` is Duckflow's own data folder."""
    return Agreements(data / "brought.json", folder, FolderCopies(data / "copies"))


def _read(entries: Any) -> list[Agreement]:
    """What cannot be read is no agreement."""
    found: list[Agreement] = []
    for entry in entries or ():
        with contextlib.suppress(KeyError, TypeError):
            program = BroughtProgram(str(entry["name"]), str(entry["shown"]))
            rights: list[Any] = list(entry["rights"])
            found.append(Agreement(program, tuple(right for right in RIGHTS if right in rights), str(entry["copy"])))
    return found

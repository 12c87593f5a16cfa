"""Records which programs of a work folder the user has allowed, with which rights, from which copy of the folder."""

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.safety.brought.copies import FolderCopies

Right = Literal["network", "sockets", "home", "outside"]
"""A right that a program may get: the network (`network`), local sockets (`sockets`), a private writable home and cache
(`home`), or no sandbox at all (`outside`)."""
RIGHTS: tuple[Right, ...] = ("network", "sockets", "home", "outside")


class BroughtProgram(NamedTuple):
    """A hook or a server that a work folder brings. `name` stays the same when the command changes. When the text in
    `shown` changes, the user is asked about the program again."""

    name: str
    shown: str
    """A text for people that names everything the user agrees to."""


class Agreement(NamedTuple):
    """The user's yes to one program: the rights that it got, and the copy of the folder that it runs from."""

    program: BroughtProgram
    rights: tuple[Right, ...]
    copy: str


class Agreements:
    """Keeps the agreements for one work folder in a file that belongs to the user. A copy of the folder is removed
    together with the last agreement that names it."""

    def __init__(self, kept_in: Path, folder: Path, copies: FolderCopies) -> None:
        self._kept_in = kept_in
        self._folder = str(folder)
        self.copies = copies

    def find(self, program: BroughtProgram) -> Agreement | None:
        return next((agreement for agreement in self.all() if agreement.program == program), None)

    def all(self) -> list[Agreement]:
        return _read(self._load().get(self._folder))

    def add(self, agreements: Sequence[Agreement], instead_of: Sequence[BroughtProgram] = ()) -> None:
        """Adds agreements. Each one replaces an earlier agreement about the same program. Earlier agreements about the
        programs in `instead_of` are removed too."""
        replaced_programs = {*instead_of, *(agreement.program for agreement in agreements)}
        self._write(
            [
                *(
                    known_agreement
                    for known_agreement in self.all()
                    if known_agreement.program not in replaced_programs
                ),
                *agreements,
            ]
        )

    def withdraw(self) -> int:
        """Takes back all agreements, and returns how many there were."""
        count = len(self.all())
        self._write([])
        return count

    def _write(self, agreements: list[Agreement]) -> None:
        copies_before = {known_agreement.copy for known_agreement in self.all()}
        all_entries = self._load()
        all_entries[self._folder] = [
            {
                "name": agreement.program.name,
                "shown": agreement.program.shown,
                "rights": agreement.rights,
                "copy": agreement.copy,
            }
            for agreement in agreements
        ]
        all_entries = {folder: entries for folder, entries in all_entries.items() if entries}
        self._kept_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new_file = tempfile.mkstemp(dir=self._kept_in.parent)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(all_entries, file, ensure_ascii=False, indent=1)
        Path(new_file).replace(self._kept_in)
        used_copies = {known_agreement.copy for entries in all_entries.values() for known_agreement in _read(entries)}
        self.copies.remove_unused(used_copies, copies_before - used_copies)

    def _load(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            table: Any = json.loads(self._kept_in.read_text(encoding="utf-8", errors="surrogateescape"))
            return dict(table)
        return {}


def agreements_of(data: Path, folder: Path) -> Agreements:
    """Returns the agreements for a work folder; `data` is Duckflow's own data folder."""
    return Agreements(data / "brought.json", folder, FolderCopies(data / "copies"))


def _read(entries: Any) -> list[Agreement]:
    """Reads the agreements of one work folder from the file's entries, and skips entries that cannot be read."""
    agreements: list[Agreement] = []
    for stored_agreement in entries or ():
        with contextlib.suppress(KeyError, TypeError):
            program = BroughtProgram(str(stored_agreement["name"]), str(stored_agreement["shown"]))
            rights: list[Any] = list(stored_agreement["rights"])
            agreements.append(
                Agreement(program, tuple(right for right in RIGHTS if right in rights), str(stored_agreement["copy"]))
            )
    return agreements

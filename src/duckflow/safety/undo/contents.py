"""Contents of files, kept so that they can be put back: in the database, or in the packs of the user's repository."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from duckflow.safety.git_objects import GitObjects
from duckflow.safety.repository import Repository, find_repository
from duckflow.safety.undo.ledger import Database

FAST = 1
PACK_FILE = re.compile(r"pack-[0-9a-f]+\.(pack|idx)")


def content_id(data: bytes) -> str:
    """As git names contents, so that what a repository already has is recognised."""
    found = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    found.update(data)
    return found.hexdigest()


class Contents:
    """A content is known by its id, so the same content is kept once.

    What the user's repository has is not copied: its files get a second name (a hard link) in `links`, so that they
    stay when a command deletes the repository, or the user packs anew."""

    def __init__(self, database: Database, work: Path, links: Path, budget: int) -> None:
        self._database = database
        self._work = work
        self._links = links
        self._budget = self._left = budget
        self._held: set[str] | None = None
        if not links.exists():
            for name in ("pack", *(f"{start:02x}" for start in range(256))):
                (links / name).mkdir(parents=True, exist_ok=True)
        self._linked = GitObjects(links)
        self._users: GitObjects | None = None
        self._objects = links

    def begin(self, needed: Callable[[], set[str]] | None) -> None:
        """Before a survey: as much may be copied as one takes. `needed`: what turns need. With it, packs that the user

        no longer has may go."""
        self._left = self._budget
        repository = find_repository(self._work)
        self._objects = repository.common / "objects" if repository and _by_sha1(repository) else self._links
        self._users = None
        theirs, ours = _packs(self._objects), _packs(self._links)
        # A pack counts as there when its index is, so that comes last.
        for name in sorted(theirs - ours, reverse=True):
            self._link(f"pack/{name}")
        if needed and ours - theirs:
            self._drop_links(ours - theirs, needed())
        if self._linked.refresh():
            self.look_again()

    def holds(self, blob: str) -> bool:
        """Whether it outlives the file."""
        if self._held is None:
            self._held = self._copied()
        if blob not in self._held and self._linked.has(blob):
            self._held.add(blob)
        return blob in self._held

    def keep(self, blob: str, data: bytes) -> bool:
        """Make sure of it; not when that is more than may be copied."""
        if self.holds(blob) or (self._link(f"{blob[:2]}/{blob[2:]}") and self.holds(blob)):
            return True
        if self._left < len(data):
            return self._of_user().has(blob)
        self._left -= len(data)
        self._put(blob, data)
        return True

    def get(self, blob: str) -> bytes | None:
        for (data,) in self._database.execute("SELECT data FROM contents WHERE blob = ?", (blob,)):
            return zlib.decompress(data)
        for place in (self._linked, self._of_user()):
            data = place.read(blob)
            if data is not None and content_id(data) == blob:
                return data
        return None

    def secure(self, blobs: Iterable[str]) -> set[str]:
        """Copy what only the user's repository has. Gives those that are gone."""
        missing = [blob for blob in set(blobs) - {""} if not self.holds(blob)]
        found = {blob: data for blob in missing if (data := self.get(blob)) is not None}
        for blob, data in found.items():
            self._put(blob, data)
        return set(missing) - found.keys()

    def forget_all_but(self, needed: set[str]) -> None:
        self._database.each("DELETE FROM contents WHERE blob = ?", [(blob,) for blob in self._copied() - needed])
        self.look_again()

    def look_again(self) -> None:
        """Another process wrote, or what we wrote was taken back."""
        self._held = None

    def _copied(self) -> set[str]:
        return {row[0] for row in self._database.execute("SELECT blob FROM contents")}

    def _of_user(self) -> GitObjects:
        if self._users is None:
            self._users = GitObjects(self._objects)
        return self._users

    def _link(self, name: str) -> bool:
        """Not possible on another file system, or where the files are not ours: then contents are copied."""
        try:
            os.link(f"{self._objects}/{name}", f"{self._links}/{name}", follow_symlinks=False)
        except OSError:
            return False
        return True

    def _drop_links(self, packs: Iterable[str], needed: set[str]) -> None:
        """The user packed anew. What turns need of the old packs is copied, the rest is in the new ones."""
        for blob in needed - self._copied():
            if (data := self.get(blob)) is not None:
                self._put(blob, data)
        loose = (f"{folder.name}/{name}" for folder in self._links.glob("??") for name in os.listdir(folder))
        for name in (*(f"pack/{pack}" for pack in packs), *loose):
            (self._links / name).unlink(missing_ok=True)

    def _put(self, blob: str, data: bytes) -> None:
        self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (blob, zlib.compress(data, FAST)))
        if self._held is not None:
            self._held.add(blob)


def _by_sha1(repository: Repository) -> bool:
    try:
        return repository.object_format() == "sha1"
    except (OSError, ValueError):
        return False


def _packs(objects: Path) -> set[str]:
    try:
        return set(filter(PACK_FILE.fullmatch, os.listdir(objects / "pack")))
    except OSError:
        return set()

"""Contents of files, kept in the database so that they can be put back."""

import hashlib
import zlib

from duckflow.safety.undo.ledger import Database

FAST = 1


def content_id(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


class Contents:
    """A content is known by its id, so the same content is kept once. Nothing is taken from the user's repository: what
    lies there is not ours to rely on."""

    def __init__(self, database: Database, budget: int) -> None:
        self._database = database
        self._budget = self._left = budget
        self._held: set[str] | None = None

    def begin(self) -> None:
        """Before a survey: as much may be copied as one takes."""
        self._left = self._budget

    def keep(self, blob: str, data: bytes) -> bool:
        """Make sure of it; not when that is more than may be copied."""
        if blob in self._all():
            return True
        if self._left < len(data):
            return False
        self._left -= len(data)
        self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (blob, zlib.compress(data, FAST)))
        self._all().add(blob)
        return True

    def get(self, blob: str) -> bytes | None:
        for (data,) in self._database.execute("SELECT data FROM contents WHERE blob = ?", (blob,)):
            return zlib.decompress(data)
        return None

    def forget_all_but(self, needed: set[str]) -> None:
        self._database.each("DELETE FROM contents WHERE blob = ?", [(blob,) for blob in self._all() - needed])
        self.look_again()

    def look_again(self) -> None:
        """Another process wrote, or what we wrote was taken back."""
        self._held = None

    def _all(self) -> set[str]:
        if self._held is None:
            self._held = {row[0] for row in self._database.execute("SELECT blob FROM contents")}
        return self._held

"""Contents of files, kept so that they can be put back: compressed in the database, or with git already."""

import zlib
from collections.abc import Iterable, Mapping

from duckflow.safety.undo.database import Database
from duckflow.safety.undo.fact import Seen
from duckflow.safety.undo.shadow import Shadow
from duckflow.safety.undo.tree import Tree

FAST = 1
ASKED_AT_ONCE = 500
TRIES = 3


class Vault:
    """A content is known by its id, so the same content is kept once."""

    def __init__(self, database: Database, shadow: Shadow, tree: Tree, budget: int) -> None:
        self._database = database
        self._shadow = shadow
        self._tree = tree
        self._budget = budget

    def keep(self, found: Mapping[str, Seen], with_git: bool) -> dict[str, Seen]:
        """Make sure the contents outlive the files. Gives what was kept: a file may have changed meanwhile.

        `with_git`: what the user's repository has is left there."""
        result, left, held = dict(found), self._budget, set[str]()
        for _ in range(TRIES):
            paths = {seen.fact.blob: path for path, seen in result.items() if seen.fact.blob}
            missing = [blob for blob in self._missing(paths) if blob not in held]
            if not missing:
                return result
            with_user = self._shadow.held(missing) if with_git else set[str]()
            for blob in missing:
                affordable = left >= result[paths[blob]].fact.size
                if blob in with_user and (self._shadow.secure or not affordable):
                    held.add(blob)
                elif affordable:
                    left -= self._keep_file(paths[blob], result)
                else:
                    _give_up(blob, result)
        for blob in self._missing({seen.fact.blob: path for path, seen in result.items() if seen.fact.blob}):
            if blob not in held:
                _give_up(blob, result)
        return result

    def adopt(self, blobs: Iterable[str]) -> set[str]:
        """Copy what only git has: it is needed for as long as a turn is remembered. Gives those that are gone."""
        missing = self._missing(dict.fromkeys(filter(None, blobs), ""))
        for blob, data in self._shadow.fetch(missing):
            if self._tree.reader.content_id(data) == blob:
                self.put(blob, data)
        return set(self._missing(dict.fromkeys(missing, "")))

    def put(self, blob: str, data: bytes) -> None:
        packed = zlib.compress(data, FAST)
        self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (blob, packed))

    def content(self, blob: str) -> bytes | None:
        return self.contents((blob,)).get(blob)

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Those that are there."""
        found: dict[str, bytes] = {}
        wanted = list(dict.fromkeys(filter(None, blobs)))
        for blob in wanted:
            for (data,) in self._database.execute("SELECT data FROM contents WHERE blob = ?", (blob,)):
                found[blob] = zlib.decompress(data)
        if missing := [blob for blob in wanted if blob not in found]:
            found |= self._shadow.fetch(missing)
        return found

    def forget_all_but(self, needed: set[str]) -> None:
        have = self._database.execute("SELECT blob FROM contents")
        self._database.each("DELETE FROM contents WHERE blob = ?", [row for row in have if row[0] not in needed])

    def _keep_file(self, path: str, result: dict[str, Seen]) -> int:
        """How many bytes were copied."""
        read = self._tree.read(path)
        if read is None:
            # Gone, grown too large, or closed to us since the look at it.
            result[path] = result[path].without_content()
            return 0
        seen, data = read
        self.put(seen.fact.content, data)
        result[path] = seen
        return len(data)

    def _missing(self, blobs: Mapping[str, str]) -> list[str]:
        """In order, those not in the database."""
        names = list(blobs)
        have: set[str] = set()
        for start in range(0, len(names), ASKED_AT_ONCE):
            part = names[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(part))
            have |= {
                row[0] for row in self._database.execute(f"SELECT blob FROM contents WHERE blob IN ({marks})", part)
            }
        return [name for name in names if name not in have]


def _give_up(blob: str, result: dict[str, Seen]) -> None:
    """Every file with this content goes without."""
    for path in [path for path, seen in result.items() if seen.fact.blob == blob]:
        result[path] = result[path].without_content()

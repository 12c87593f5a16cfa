"""The work folder as it was last seen."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duckflow.safety.undo.database import Database
from duckflow.safety.undo.fact import Seen, dump_seen, load_seen
from duckflow.safety.undo.survey import Survey
from duckflow.safety.undo.tree import Tree


@dataclass(frozen=True, slots=True)
class Difference:
    """One path, before and now; nothing where nothing was."""

    path: str
    before: Seen | None
    now: Seen | None

    @property
    def real(self) -> bool:
        """Not only a new stamp, and not only a content that became known."""
        if self.before is None or self.now is None:
            return self.before is not self.now
        old, new = self.before.fact, self.now.fact
        if old.elusive and old.content == self.now.stamp.elusive_content:
            new = new._replace(content=old.content)
        return old != new


class Baseline:
    """What a command's changes are measured against. Kept on disk, so that a crash does not lose it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._entries: dict[str, Seen] | None = None

    @property
    def entries(self) -> Mapping[str, Seen]:
        if self._entries is None:
            rows = self._database.execute("SELECT path, seen FROM baseline")
            self._entries = {os.fsdecode(path): load_seen(seen) for path, seen in rows}
        return self._entries

    def forget(self) -> None:
        """Read it again: another process wrote, or what we wrote was taken back."""
        self._entries = None

    def update(self, seen: Mapping[str, Seen | None]) -> None:
        entries = dict(self.entries) | {path: one for path, one in seen.items() if one}
        for path in [path for path, one in seen.items() if one is None]:
            entries.pop(path, None)
        self._entries = entries
        present = [(os.fsencode(path), dump_seen(one)) for path, one in seen.items() if one]
        gone = [(os.fsencode(path),) for path, one in seen.items() if one is None]
        self._database.each("INSERT OR REPLACE INTO baseline VALUES (?, ?)", present)
        self._database.each("DELETE FROM baseline WHERE path = ?", gone)

    def differences(self, survey: Survey, before: Survey | None, tree: Tree) -> Iterator[Difference]:
        """Between this and a survey. `before`: the survey this was made from, for what it saw but did not cover."""
        entries = self.entries
        for path, now in survey.covered.items():
            old = entries.get(path)
            if old is now:
                continue
            if old is None and before and before.may_have_had(path, now.fact.kind == "folder"):
                # Only ignored then.
                yield Difference(path, now, now)
            elif old is None or old != now:
                yield Difference(path, old, now)
        for path in entries.keys() - survey.covered.keys():
            if survey.watched.get(path) == entries[path].stamp:
                continue
            now = tree.look(path)
            if now != entries[path]:
                yield Difference(path, entries[path], now)

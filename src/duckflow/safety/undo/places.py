"""The work folder as it was last seen, and where each file lies now that was ever changed."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from duckflow.safety.undo.facts import Change, Seen, life_name, load_seen, pairs_moved, with_replaced
from duckflow.safety.undo.ledger import Database


class Baseline:
    """The work folder as it was last seen. It is on disk, so that a crash does not lose it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._entries: dict[str, Seen] | None = None
        self._arrived: set[str] | None = None

    @property
    def entries(self) -> dict[str, Seen]:
        if self._entries is None:
            rows = self._database.execute("SELECT path, seen FROM baseline")
            self._entries = {os.fsdecode(path): load_seen(seen) for path, seen in rows}
        return self._entries

    @property
    def arrived(self) -> set[str]:
        """Returns the paths at which stands what came while commands of the model ran."""
        if self._arrived is None:
            rows = self._database.execute("SELECT path FROM arrivals")
            self._arrived = {os.fsdecode(path) for (path,) in rows}
        return self._arrived

    def _note_arrivals(self, seen: Mapping[str, Seen | None], by_command: bool) -> None:
        came, went = set[str](), set[str]()
        for path, entry in seen.items():
            known = self.entries.get(path)
            if entry is None or known is None or known.file != entry.file:
                (came if entry and by_command else went).add(path)
            elif not by_command and known.fact.bare != entry.fact.bare:
                went.add(path)
        went &= self.arrived
        self._arrived = (self.arrived | came) - went
        self._database.each("INSERT OR IGNORE INTO arrivals VALUES (?)", [(os.fsencode(path),) for path in came])
        self._database.each("DELETE FROM arrivals WHERE path = ?", [(os.fsencode(path),) for path in went])

    def write(self, seen: Mapping[str, Seen | None], by_command: bool = False) -> None:
        self._note_arrivals(seen, by_command)
        present_entries = {path: fact for path, fact in seen.items() if fact}
        missing_paths = [path for path, fact in seen.items() if fact is None and self.entries.pop(path, None)]
        self.entries.update(present_entries)
        rows = [(os.fsencode(path), json.dumps(fact)) for path, fact in present_entries.items()]
        self._database.each("INSERT OR REPLACE INTO baseline VALUES (?, ?)", rows)
        self._database.each("DELETE FROM baseline WHERE path = ?", [(os.fsencode(path),) for path in missing_paths])

    def read_again(self) -> None:
        self._entries = self._arrived = None


class FilePlaces:
    """The path of each file that was ever changed, by the file's name. The name of a file is the path at which it was
    first seen, or another name if that is the name of an earlier file already. A file that is gone has no path."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._paths: dict[str, str] | None = None
        self._lives = dict[str, str]()

    def read_again(self) -> None:
        self._paths = None

    def path_of(self, life: str) -> str:
        return self._load().get(life, life.rstrip("/"))

    def life_at(self, path: str) -> str | None:
        """Returns the name of the changed file at this path, if there is one."""
        self._load()
        return self._lives.get(path)

    def put(self, paths: Mapping[str, str]) -> None:
        """Notes where these files lie now."""
        known_paths = self._load()
        for life in paths:
            if self._lives.get(path := known_paths.get(life, "")) == life:
                del self._lives[path]
        known_paths.update(paths)
        self._lives.update({path: life for life, path in paths.items() if path})
        rows = [(os.fsencode(life), os.fsencode(path)) for life, path in paths.items()]
        self._database.each("INSERT OR REPLACE INTO places VALUES (?, ?)", rows)

    def named(self, changes: Sequence[Change], origins: Mapping[str, str]) -> list[Change]:
        """Returns the changes of one deed, each with the name of its file. `origins` are the paths at which the files
        on the disk lay before, by their new paths."""
        changes = with_replaced(changes, origins)
        sources = {target: source for source, target in pairs_moved(changes, origins).items()}
        named_changes, paths = list[Change](), dict[str, str]()
        for change in changes:
            if change.before:
                life = self._life_of(change)
            elif source := sources.get(change.path):
                life = self._life_of(change._replace(path=source))
            else:
                life = self._new_life(change)
            if change.after:
                paths[life] = change.path
            else:
                paths.setdefault(life, "")
            named_changes.append(change._replace(life=life))
        self.put(paths)
        return named_changes

    def follow(self, changes: Iterable[Change], origins: Mapping[str, str]) -> None:
        """Notes where files went that were moved by somebody of whose work undo has no record."""
        changes = with_replaced(changes, origins)
        moved_paths = pairs_moved(changes, origins)
        arrived_paths = set(moved_paths.values())
        gone_paths = {change.path: "" for change in changes if change.after is None and change.path in arrived_paths}
        self._load()
        paths = (gone_paths | moved_paths).items()
        self.put({self._lives[source]: target for source, target in paths if source in self._lives})

    def _life_of(self, change: Change) -> str:
        return self.life_at(change.path) or self._new_life(change)

    def _new_life(self, change: Change) -> str:
        name = life_name(change)
        # No path of the work folder begins with a slash, so nobody can give a file this name.
        return f"/{change.order}:{name}" if name in self._load() and not name.endswith("/") else name

    def _load(self) -> dict[str, str]:
        if self._paths is None:
            rows = self._database.execute("SELECT life, path FROM places")
            self._paths = {os.fsdecode(life): os.fsdecode(path) for life, path in rows}
            self._lives = {path: life for life, path in self._paths.items() if path}
        return self._paths


def origins_of(entries: Iterable[tuple[str, Seen | None, Seen | None]]) -> dict[str, str]:
    """Returns the path at which each file on the disk lay before, by its new path, where that is another one. The
    entries are changed paths, each as it was and as it is."""
    entries = list(entries)
    old_paths = {old.stamp.inode: path for path, old, _ in entries if old}
    return {path: old_paths[new.stamp.inode] for path, _, new in entries if new and new.stamp.inode in old_paths}

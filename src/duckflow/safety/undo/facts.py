"""What undo knows of files, their changes, and the work of each turn and each step of a job."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from duckflow.safety.files import Kind
from duckflow.state.changes import WorkAuthor

UNKEPT = "~"
TICK = 2_000_000_000
"""Nanoseconds in which two writes may get the same time, even where the file system counts in whole seconds."""


class Fact(NamedTuple):
    """The state of a file. `content` is a file's content id or a link's target. For a file that is too large to keep,
    or cannot be read, `content` only shows whether the file changed."""

    kind: Kind
    mode: int
    owner: int
    group: int
    size: int
    content: str

    @property
    def kept(self) -> bool:
        """Says whether the file could be put back after it was removed."""
        return self.kind != "special" and not (self.kind == "file" and self.content.startswith(UNKEPT))

    @property
    def blob(self) -> str:
        """Returns the id of the content that undo has kept, or an empty text if it has none."""
        return self.content if self.kind == "file" and self.kept else ""

    @property
    def bare(self) -> "Fact":
        """Returns the same state without mode and owner."""
        return self._replace(mode=0, owner=0, group=0)


class Stamp(NamedTuple):
    """The file system's data about a file. While the stamp stays the same, so does the content: no program can set the
    time of the last change (`changed`)."""

    inode: int
    size: int
    modified: int
    changed: int
    mode: int
    owner: int
    group: int

    @classmethod
    def of(cls, facts: os.stat_result) -> "Stamp":
        times = (facts.st_mtime_ns, facts.st_ctime_ns)
        return cls(facts.st_ino, facts.st_size, *times, facts.st_mode, facts.st_uid, facts.st_gid)

    @property
    def unkept_content(self) -> str:
        """Returns a text that stays the same when a file is renamed, and changes when it is written to."""
        return f"{UNKEPT}{self.inode}-{self.size}-{self.modified}"

    @property
    def written(self) -> tuple[int, ...]:
        """Returns data that change when a file is replaced, written to or given another mode, but not by renaming."""
        return (self.inode, self.size, self.modified, self.mode)

    @property
    def settled(self) -> bool:
        """Says whether the stamp is old enough: another write to the file would now change the time in it."""
        return self.changed < time.time_ns() - TICK


class Seen(NamedTuple):
    """A file's state and its stamp. If not `settled`, the file was just written, and the stamp proves nothing."""

    fact: Fact
    stamp: Stamp
    settled: bool

    @property
    def file(self) -> tuple[int, Kind]:
        """Returns data that stay the same while the file is only written to."""
        return (self.stamp.inode, self.fact.kind)


def load_seen(text: str) -> Seen:
    fact, stamp, is_settled = json.loads(text)
    return Seen(Fact._make(fact), Stamp._make(stamp), is_settled)


ChangeKey = tuple[str, int, str]


class Change(NamedTuple):
    """One change of a path by one piece of work. `own` means that Duckflow made it, or a command that is known to write
    there; otherwise anybody may have made it while a command ran, or around the time Duckflow was interrupted. `order`
    is its place among all changes."""

    path: str
    before: Fact | None
    after: Fact | None
    own: bool = True
    order: int = 0
    undone: int = 0
    """The number of the undo that took the change back; 0 if none has."""
    sharers: int = 1
    """How many may have made the change, because their commands ran at the same time. Each of them has a record of it,
    except the user, and it is taken back once all of them have taken it back."""
    life: str = ""
    """The name of the file whose change this is; it stays the same when the file is moved (see `FilePlaces`)."""

    @property
    def key(self) -> "ChangeKey":
        return (self.path, self.order, self.life)


def life_name(change: Change) -> str:
    """Returns the name of a file or folder that nobody has moved."""
    fact = change.before or change.after
    return f"{change.path}/" if fact and fact.kind == "folder" else change.path


class FileVersions(NamedTuple):
    """The contents of a file before and after some work; None where the file did not exist."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def old(self) -> str:
        return (self.before or b"").decode("utf-8", "replace")

    @property
    def new(self) -> str:
        return (self.after or b"").decode("utf-8", "replace")


def is_of_git(path: str) -> bool:
    return "/.git/" in f"/{path}"


def pairs_moved(changes: Iterable[Change], origins: Mapping[str, str]) -> dict[str, str]:
    """Returns the new path of each file that was moved in one deed: the same content left one path and came to
    another. `origins` are the earlier paths of files, by which a moved file is told from a copy. Git's own files are
    not followed."""
    sources, targets = dict[str, list[str]](), dict[str, list[str]]()
    for change in sorted(changes, key=lambda change: change.path):
        if not is_of_git(change.path):
            if change.before and change.after is None and change.before.blob:
                sources.setdefault(change.before.blob, []).append(change.path)
            elif change.after and change.before is None and change.after.blob:
                targets.setdefault(change.after.blob, []).append(change.path)
    moved_paths = dict[str, str]()
    for blob in sources.keys() & targets.keys():
        certain = {origins[path]: path for path in targets[blob] if origins.get(path) in sources[blob]}
        left_sources = [path for path in sources[blob] if path not in certain]
        left_targets = [path for path in targets[blob] if path not in certain.values()]
        moved_paths |= certain | dict(zip(left_sources, left_targets, strict=False))
    return moved_paths


def with_replaced(changes: Iterable[Change], origins: Mapping[str, str]) -> list[Change]:
    """Returns the changes. Where a file was moved to the place of another one, two changes stand for the one of that
    path: the other file was removed from there, and the moved one came."""
    changes, was_split = list(changes), True
    while was_split:
        moved, was_split, split_changes = pairs_moved(changes, origins), False, list[Change]()
        missing = Counter(
            change.before.blob
            for change in changes
            if change.before and change.before.size and change.after is None
            if change.path not in moved and not is_of_git(change.path)
        )
        for change in changes:
            old, new = change.before, change.after
            if old and new and old.blob != new.blob and new.blob and missing[new.blob] and not is_of_git(change.path):
                missing[new.blob] -= 1
                split_changes += [change._replace(after=None), change._replace(before=None)]
                was_split = True
            else:
                split_changes.append(change)
        changes = split_changes
    return changes


def single(changes: Sequence[Change]) -> dict[str, Change]:
    """Returns the last change of each path that may be joined with others. A move stays as it is, so that both of its
    paths are known, and so does what others may have done."""
    counts = Counter((change.life, change.order) for change in changes)
    return {change.path: change for change in changes if change.sharers == 1 and counts[change.life, change.order] == 1}


@dataclass
class UndoWork:
    """The work of one author in one session: its changes, and in `left_out` those that undo cannot cover (kind, name,
    number of files). A path occurs several times if somebody else changed it in between. `latest` is the `order` of its
    last change. `undone` says that an undo has taken back as much of it as was possible."""

    session: str
    author: WorkAuthor
    at: float
    latest: int = 0
    undone: bool = False
    changes: list[Change] = field(default_factory=list[Change])
    left_out: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def record(self, changes: Sequence[Change]) -> None:
        """Adds changes. A change that continues an earlier one is joined with the earlier one; if the path then is as
        it was at first, no change is left."""
        last_changes = {change.path: change for change in self.changes if not change.undone}
        earlier_changes = {
            path: change for path, change in single(self.changes).items() if last_changes.get(path) == change
        }
        joinable_paths, joined_keys = single(changes).keys(), set[ChangeKey]()
        for change in changes:
            earlier_change = earlier_changes.get(change.path) if change.path in joinable_paths else None
            if earlier_change and (earlier_change.life, earlier_change.after) == (change.life, change.before):
                joined_keys.add(earlier_change.key)
                change = change._replace(before=earlier_change.before, own=earlier_change.own and change.own)
            self.changes += [change] if change.before != change.after else []
            self.latest, self.undone = change.order, False
        self.changes = [change for change in self.changes if change.key not in joined_keys]

    def leave_out(self, kind: str, names: Mapping[str, int]) -> None:
        for name, count in names.items():
            known_counts = self.left_out.setdefault(kind, {})
            known_counts[name] = max(count, known_counts.get(name, 0))

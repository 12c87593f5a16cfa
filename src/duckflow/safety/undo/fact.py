"""What lies at a path: enough to know it again, and to put it back."""

import json
import os
import time
from typing import NamedTuple

from duckflow.safety.files import Kind

UNKEPT = "~"
TICK = 2_000_000_000
"""Nanoseconds in which two writes may get the same time, even where the file system counts in whole seconds."""


class Fact(NamedTuple):
    """`content` is a file's content id or a link's target; of a file that is too large to keep, or cannot be read, it
    only tells whether it is the same."""

    kind: Kind
    mode: int
    owner: int
    group: int
    size: int
    content: str

    @property
    def kept(self) -> bool:
        """Whether it could be put back after it was removed."""
        return self.kind != "special" and not (self.kind == "file" and self.content.startswith(UNKEPT))

    @property
    def blob(self) -> str:
        """The id of the content to keep for it, or nothing."""
        return self.content if self.kind == "file" and self.kept else ""

    @property
    def bare(self) -> "Fact":
        """Without mode and owner."""
        return self._replace(mode=0, owner=0, group=0)


class Stamp(NamedTuple):
    """What the file system says of a file. While it stays the same, so does the content: no program can set the time
    of the last change (`changed`)."""

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
        """Stays the same when a file is renamed, and changes when it is written to."""
        return f"{UNKEPT}{self.inode}-{self.size}-{self.modified}"

    @property
    def settled(self) -> bool:
        """Not when a file written to again right now would get the same time."""
        return self.changed < time.time_ns() - TICK


class Seen(NamedTuple):
    """A fact with the stamp it was seen under. Unsettled: written so lately that the stamp proves nothing."""

    fact: Fact
    stamp: Stamp
    settled: bool


def load_seen(text: str) -> Seen:
    fact, stamp, settled = json.loads(text)
    return Seen(Fact._make(fact), Stamp._make(stamp), settled)

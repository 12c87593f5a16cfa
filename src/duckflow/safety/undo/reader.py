"""Looking at one file: what it is, and which content it has."""

import hashlib
import os
import time

from duckflow.errors import PathRefused
from duckflow.safety.entry import kind_of
from duckflow.safety.regular import open_regular
from duckflow.safety.undo.fact import Fact, Seen, Stamp

TICK = 100_000_000
"""Nanoseconds in which two writes may get the same time."""
COARSE_TICK = 2_000_000_000
"""The same where the file system counts in whole seconds."""
SECOND = 1_000_000_000


class FactReader:
    """Names contents as git does, so that what a repository already has is recognised."""

    def __init__(self, object_format: str, largest: int) -> None:
        self._hash = hashlib.sha256 if object_format == "sha256" else hashlib.sha1
        self._largest = largest

    def content_id(self, data: bytes) -> str:
        found = self._hash(b"blob %d\0" % len(data), usedforsecurity=False)
        found.update(data)
        return found.hexdigest()

    def see(self, folder: int, name: str, facts: os.stat_result) -> Seen:
        """What a name stands for. Raises FileNotFoundError when it is gone meanwhile."""
        stamp = Stamp.of(facts)
        kind = kind_of(facts.st_mode)
        mode = facts.st_mode & 0o7777
        if kind == "folder":
            return Seen(Fact(kind, mode, stamp.owner, stamp.group, 0, ""), stamp, settled=True)
        if kind == "link":
            target = os.readlink(name, dir_fd=folder)
            return Seen(Fact(kind, 0, stamp.owner, stamp.group, 0, target), stamp, self._settled(stamp))
        if kind == "special":
            return Seen(Fact(kind, mode, stamp.owner, stamp.group, 0, ""), stamp, settled=True)
        read = self.read(folder, name)
        if read is None:
            elusive = stamp.elusive_content
            return Seen(Fact("file", mode, stamp.owner, stamp.group, stamp.size, elusive), stamp, settled=True)
        return read[0]

    def read(self, folder: int, name: str) -> tuple[Seen, bytes] | None:
        """A plain file with its content; nothing when it is too large, or not ours to read."""
        try:
            handle = open_regular(folder, name)
        except FileNotFoundError:
            raise
        except (OSError, PathRefused):
            return None
        with os.fdopen(handle, "rb", buffering=0) as file:
            before = Stamp.of(os.fstat(handle))
            if before.size > self._largest:
                return None
            try:
                data = file.read(before.size + 1)
            except OSError:
                return None
            stamp = Stamp.of(os.fstat(handle))
        settled = stamp == before and len(data) == stamp.size and self._settled(stamp)
        fact = Fact("file", stamp.mode & 0o7777, stamp.owner, stamp.group, len(data), self.content_id(data))
        return Seen(fact, stamp, settled), data

    def _settled(self, stamp: Stamp) -> bool:
        """A file written to again right after this look would get the same time as now."""
        tick = TICK if stamp.changed % SECOND else COARSE_TICK
        return stamp.changed < time.time_ns() - tick

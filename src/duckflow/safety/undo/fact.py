"""What lies at a path: enough to know it again, and to put it back."""

import json
import os
from typing import NamedTuple, cast

from duckflow.safety.entry import Kind

UNKEPT = "~"


class Fact(NamedTuple):
    """A file, folder, link or special file. `content` is a file's content id or a link's target.

    A file that is too large to keep, or cannot be read, has a `content` that only tells whether it is the same."""

    kind: Kind
    mode: int
    owner: int
    group: int
    size: int
    content: str

    @property
    def kept(self) -> bool:
        """Whether it could be put back after it was removed."""
        return self.kind != "special" and not self.elusive

    @property
    def elusive(self) -> bool:
        return self.kind == "file" and self.content.startswith(UNKEPT)

    @property
    def blob(self) -> str:
        """The id of the content to keep for it, or nothing."""
        return self.content if self.kind == "file" and not self.elusive else ""


class Stamp(NamedTuple):
    """What the file system says of a file. While it stays the same, so does the content."""

    inode: int
    size: int
    modified: int
    changed: int
    mode: int
    owner: int
    group: int

    @classmethod
    def of(cls, facts: os.stat_result) -> "Stamp":
        return cls(
            facts.st_ino,
            facts.st_size,
            facts.st_mtime_ns,
            facts.st_ctime_ns,
            facts.st_mode,
            facts.st_uid,
            facts.st_gid,
        )

    @property
    def elusive_content(self) -> str:
        """Stays the same when a file is renamed, and changes when it is written to."""
        return f"{UNKEPT}{self.inode}-{self.size}-{self.modified}"


class Seen(NamedTuple):
    """A fact with the stamp it was seen under. Unsettled: written so lately that the stamp proves nothing."""

    fact: Fact
    stamp: Stamp
    settled: bool

    def without_content(self) -> "Seen":
        return self._replace(fact=self.fact._replace(content=self.stamp.elusive_content), settled=True)


def dump_fact(fact: Fact | None) -> str:
    return json.dumps(fact)


def load_fact(text: str) -> Fact | None:
    values = json.loads(text)
    return None if values is None else Fact(*values)


def dump_seen(seen: Seen) -> str:
    return json.dumps(seen)


def load_seen(text: str) -> Seen:
    fact, stamp, settled = cast("tuple[list[str], list[int], bool]", json.loads(text))
    return Seen(Fact._make(fact), Stamp._make(stamp), settled)


def dump_facts(facts: dict[str, Fact]) -> str:
    return json.dumps(facts)


def load_facts(text: str) -> dict[str, Fact]:
    return {path: Fact._make(values) for path, values in json.loads(text).items()}

"""Where a repository keeps its things."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MB = 1024 * 1024
SHORT = 64 * 1024
LARGEST = 256 * MB
MOST_REFS = 20_000
SHORT_ID = 7
OBJECT_FORMAT = re.compile(r"^\s*objectformat\s*=\s*\"?(\w+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GitFolder:
    """`own` is the folder of this work tree, `common` the one it shares with others (mostly the same)."""

    top: Path
    own: Path
    common: Path

    @property
    def objects(self) -> Path:
        return self.common / "objects"

    @property
    def index(self) -> Path:
        return self.own / "index"

    @property
    def object_format(self) -> str:
        found = OBJECT_FORMAT.search(plain_text(self.common / "config"))
        return found[1].lower() if found else "sha1"

    def head(self) -> str:
        """The branch, if one is checked out, and the commit."""
        head = plain_text(self.own / "HEAD").strip()
        if not head.startswith("ref: "):
            return head[:SHORT_ID]
        name = head.removeprefix("ref: ").strip()
        return f"{name.removeprefix('refs/heads/')} {self._commit(name)[:SHORT_ID]}".strip()

    def refs(self) -> dict[str, str]:
        """Every branch, tag and stash with its commit."""
        return self._packed() | {name: text for place in ("refs", "reftable") for name, text in self._loose(place)}

    def _commit(self, name: str) -> str:
        return plain_text(self.common / name).strip() or self._packed().get(name, "")

    def _packed(self) -> dict[str, str]:
        lines = plain_text(self.common / "packed-refs", LARGEST).splitlines()
        pairs = (line.partition(" ") for line in lines if line[:1] not in ("#", "^"))
        return {name: commit for commit, _, name in pairs}

    def _loose(self, place: str) -> Iterator[tuple[str, str]]:
        files = (Path(top, name) for top, _, names in os.walk(self.common / place) for name in names)
        for path in islice(files, MOST_REFS):
            yield path.relative_to(self.common).as_posix(), plain_text(path).strip()


def git_folder_at(top: Path) -> GitFolder | None:
    """Of the repository whose work tree begins exactly here."""
    own = top / ".git"
    if own.is_file():
        pointer = plain_text(own).strip()
        if not pointer.startswith("gitdir:"):
            return None
        own = top / pointer.removeprefix("gitdir:").strip()
    if not plain_text(own / "HEAD"):
        return None
    shared = plain_text(own / "commondir").strip()
    return GitFolder(top, own, own / shared if shared else own)


def git_folder_around(folder: Path) -> GitFolder | None:
    """Of the repository that a folder belongs to."""
    return next((found for top in (folder, *folder.parents) if (found := git_folder_at(top))), None)


def plain_bytes(path: Path, limit: int = LARGEST) -> bytes:
    """Nothing when there is no plain file, or a very large one; never waits for a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        return file.read() if stat.S_ISREG(facts.st_mode) and facts.st_size <= limit else b""


def plain_text(path: Path, limit: int = SHORT) -> str:
    return plain_bytes(path, limit).decode("utf-8", "surrogateescape")

"""A git repository, read from its files: no git program runs, so nothing that the repository brings can run either."""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

LARGEST_INDEX = 512 * 1024 * 1024
LARGEST_CONFIG = 1024 * 1024
STAT_BYTES, FLAG_BYTES = 40, 2
LONG_NAME, EXTENDED = 0xFFF, 0x4000
DIGESTS = {"sha1": 20, "sha256": 32}
HOOKS_OF_LOOKING = ("post-index-change", "reference-transaction")

HEADER = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?", re.DOTALL)
BOOLEAN = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", ""))
# Settings that name no program and no other file with settings. Whatever is not here may run one.
HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
    r"|eol|safecrlf|quotepath|abbrev|compression|bigfilethreshold|checkstat|trustctime|protecthfs|protectntfs"
    r"|untrackedcache|preloadindex|commitgraph|multipackindex|longpaths|sparsecheckout|sparsecheckoutcone)"
    r"|extensions\.(?:objectformat|worktreeconfig|refstorage)"
    r"|remote\..*\.(?:url|pushurl|fetch|push|tagopt|prune|mirror|skipdefaultupdate|skipfetchall|gh-resolved)"
    r"|submodule\..*\.(?:url|active|branch|path|ignore|fetchrecursesubmodules)"
    r"|diff\.(?:algorithm|renames|renamelimit|mnemonicprefix|noprefix|context|colormoved|wserrorhighlight)"
    r"|merge\.(?:ff|conflictstyle|autostash|renames)|commit\.(?:verbose|cleanup|status)|log\.(?:date|decorate|follow)"
    r"|(?:branch|user|color|column|pull|push|fetch|rebase|init|gc|index|pack|status|lfs)\..*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Repository:
    """`top` is the working tree, `folder` its `.git`, `common` the main one's where this is a linked worktree."""

    top: Path
    folder: Path
    common: Path

    def settings(self) -> Iterator[tuple[str, str]]:
        """Names (in lower case but for their middle part) and values; what cannot be read is a ValueError."""
        for path in (self.common / "config", self.folder / "config.worktree"):
            if path.exists():
                yield from _settings(_read(path, LARGEST_CONFIG).decode("utf-8"))

    def runs_programs(self) -> bool:
        """Whether git may start a program here though it only looks; what cannot be read is taken to."""
        try:
            if any(os.access(self.common / "hooks" / hook, os.X_OK) for hook in HOOKS_OF_LOOKING):
                return True
            return not all(_harmless(name, value) for name, value in self.settings())
        except (OSError, ValueError):
            return True

    def tracks(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths (relative to `top`) that are in the index; none when it cannot be read."""
        tracked = self.tracked()
        return frozenset(path for path in paths if path in tracked)

    def tracked(self) -> frozenset[str]:
        """Every path of the index. A folder that a sparse index keeps as one entry ends with `/`."""
        try:
            about = (self.folder / "index").stat()
            digest = DIGESTS[dict(self.settings()).get("extensions.objectformat", "sha1").lower()]
            stamp = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
            return _index(str(self.folder), stamp, digest)
        except (OSError, ValueError, KeyError, IndexError, struct.error):
            return frozenset()


def find_repository(folder: Path) -> Repository | None:
    """The one that git would use from here; a `.git` that is a file points to where it really lies."""
    for top in (folder, *folder.parents):
        here = top / ".git"
        if here.is_file():
            pointed = _first_line(here).partition("gitdir:")[2].strip()
            here = (top / pointed).resolve() if pointed else here
        if here.is_dir():
            common = _first_line(here / "commondir")
            return Repository(top, here, (here / common).resolve() if common else here)
    return None


def git_runs_programs(folder: Path) -> bool:
    """Whether git may start a program though it only looks; without a repository there is nothing it could run."""
    repository = find_repository(folder)
    return repository is not None and repository.runs_programs()


def tracked_files(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    """Those of the paths, relative to the folder, that git knows; none where there is no repository."""
    repository = find_repository(folder)
    if repository is None:
        return frozenset()
    inner = "" if folder == repository.top else folder.relative_to(repository.top).as_posix() + "/"
    known = repository.tracks(inner + path for path in paths)
    return frozenset(path.removeprefix(inner) for path in known)


def _harmless(name: str, value: str) -> bool:
    if name == "core.fsmonitor":
        return value.lower() in BOOLEAN
    return HARMLESS.fullmatch(name) is not None


def _settings(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in _whole_lines(text.removeprefix("\ufeff")):
        rest = line.strip()
        if header := HEADER.match(rest):
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            rest = rest[header.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        setting = SETTING.fullmatch(rest)
        if not setting or not section:
            raise ValueError(line)
        yield f"{section}.{setting[1].lower()}", (setting[2] or "").strip()


def _whole_lines(text: str) -> Iterator[str]:
    """Lines, joined where one ends with a backslash."""
    held = ""
    for line in text.split("\n"):
        line = held + line.removesuffix("\r")
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            held = line[:-1]
            continue
        held = ""
        yield line
    yield held


@lru_cache(maxsize=4)
def _index(folder: str, stamp: tuple[int, ...], digest: int) -> frozenset[str]:
    """`stamp` changes whenever the file does, so that an old answer is not given again."""
    names, shared = _names(_read(Path(folder) / "index", LARGEST_INDEX), digest)
    if shared:
        names |= _names(_read(Path(folder) / f"sharedindex.{shared}", LARGEST_INDEX), digest)[0]
    return frozenset(os.fsdecode(name) for name in names if name)


def _names(data: bytes, digest: int) -> tuple[set[bytes], str]:
    """The paths of an index file, and the name of the file that it shares the others with, if there is one."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(f"index version {version}")
    names: set[bytes] = set()
    at, name = 12, b""
    for _ in range(count):
        start = at
        at += STAT_BYTES + digest
        (flags,) = struct.unpack_from(">H", data, at)
        at += FLAG_BYTES + (2 if version >= 3 and flags & EXTENDED else 0)
        if version == 4:
            dropped, at = _number(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - dropped] + data[at:end]
            at = end + 1
        else:
            length = flags & LONG_NAME
            end = at + length if length < LONG_NAME else data.index(b"\0", at)
            name = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        names.add(name)
    return names, _shared(data, at, digest)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of varying length, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _shared(data: bytes, at: int, digest: int) -> str:
    while at + 8 <= len(data) - digest:
        kind, size = struct.unpack_from(">4sI", data, at)
        if kind == b"link":
            return data[at + 8 : at + 8 + digest].hex()
        at += 8 + size
    return ""


def _first_line(path: Path) -> str:
    try:
        return _read(path, LARGEST_CONFIG).decode("utf-8", "surrogateescape").partition("\n")[0].strip()
    except (OSError, ValueError):
        return ""


def _read(path: Path, limit: int) -> bytes:
    """A file that is regular and not too large: a repository may hold a pipe that never ends."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if about.st_size > limit or (about.st_mode & 0o170000) != 0o100000:
            raise ValueError(str(path))
        return file.read(limit)

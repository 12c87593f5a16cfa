"""Reads a git repository from its files. No git program runs, so no program that the repository names can run
either."""

import contextlib
import hashlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from duckflow.safety.files import digest, read_plain
from duckflow.safety.git_settings import is_harmless, read_settings

MIB = 1024 * 1024
LARGEST_INDEX, LARGEST_REFS, LARGEST_CONFIG = 512 * MIB, 64 * MIB, MIB
LONGEST_PATH, LONGEST_NAME = 4000, 255
MOST_STAGES, LONGEST_NUMBER = 3, 10
"""Limits for reading git's index: how many entries one path may have, and how many bytes one number may take."""
MOST_REFS, SHORT_ID = 20_000, 7
GITLINK = 0o160000
"""The mode of an entry of git's index that is another repository."""
MOST_NESTED, MOST_COMPARED = 10, 200
STAT_BYTES, FLAG_BYTES, INODE_AT, MODE_AT = 40, 2, 20, 24
LONG_NAME, EXTENDED = 0xFFF, 0x4000
DIGESTS = {"sha1": 20, "sha256": 32}
MAY_BE_HEAD = rb"ref:|[0-9a-fA-F]{40}"
CERTAIN_HEAD = r"ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64}"
HOOKS_OF_LOOKING = ("post-index-change", "reference-transaction")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository: `top` is the working tree, `folder` its `.git`, `common` the main repository's `.git` where
    this is a linked worktree."""

    top: Path
    folder: Path
    common: Path
    unclear: bool = False
    """True if git may find another repository here than Duckflow does. What its settings name is not known then."""

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yields the names (in lower case except for their middle part) and values of the settings. It raises a
        ValueError where they cannot be read."""
        if self.unclear:
            raise ValueError(self.top)
        for path in (self.common / "config", self.folder / "config.worktree"):
            if path.exists():
                yield from read_settings(read_plain(path, LARGEST_CONFIG).decode("utf-8"))

    def runs_programs(self, depth: int = 0) -> bool:
        """Says whether git may start a program here even when it only reads. That includes the repositories that the
        index names, because git enters them too. Settings that cannot be read count as yes."""
        try:
            if any(os.access(self.common / "hooks" / hook, os.X_OK) for hook in HOOKS_OF_LOOKING):
                return True
            if not all(is_harmless(name, value) or self._own_place(name, value) for name, value in self.settings()):
                return True
            return depth > MOST_NESTED or any(
                inner_repository.runs_programs(depth + 1) for inner_repository in self.inner()
            )
        except (OSError, ValueError, KeyError, IndexError, struct.error):
            return True

    def _own_place(self, name: str, value: str) -> bool:
        """Says whether the setting names the working tree of this repository, as the git folder of a submodule does."""
        return name == "core.worktree" and (self.folder / value).resolve() == self.top.resolve()

    def names_its_tree(self) -> bool:
        """Says whether the repository itself names its working tree. It does so by a setting, as the git folder of a
        submodule does, or by its index, where git notes the inode and times of the files that it saw. Nobody can give a
        file the inode and times of another. Links do not count, because they lead to other files."""
        try:
            if any(name == "core.worktree" and self._own_place(name, value) for name, value in self.settings()):
                return True
            index = read_plain(self.folder / "index", LARGEST_INDEX)
        except (OSError, ValueError):
            return False
        names = (self.top / name for name in islice(self.index(), MOST_COMPARED))
        return any(_saw(index, path) for path in names if os.path.realpath(path) == str(path))

    def inner(self) -> Iterator["Repository"]:
        """Yields the repositories within this one: submodules, and repositories that were added like files. It raises a
        ValueError or an OSError where the index cannot be read."""
        if not (self.folder / "index").exists():
            return
        for name in _inner_names(*self._index_key()):
            if inner_repository := _repository_at(self.top / name):
                yield inner_repository

    def index(self) -> dict[str, bytes]:
        """Returns every path of the index with its mode, content and flags, without its file's times; empty when the
        index cannot be read. A folder that a sparse index keeps as one entry ends with `/`. Callers must not change the
        result."""
        try:
            return self._index()
        except (OSError, ValueError, KeyError, IndexError, struct.error):
            return {}

    def _index(self) -> dict[str, bytes]:
        if (index := _index(*self._index_key())) is None:
            raise ValueError(self.folder)
        return index

    def _index_key(self) -> tuple[str, tuple[int, ...], int]:
        index_stat = (self.folder / "index").stat()
        stamp = (index_stat.st_ino, index_stat.st_size, index_stat.st_mtime_ns, index_stat.st_ctime_ns)
        # The hash that names contents: `sha1` or `sha256`.
        hash_name = dict(self.settings()).get("extensions.objectformat", "sha1").lower()
        return str(self.folder), stamp, DIGESTS[hash_name]

    def index_digest(self) -> str:
        """Returns a digest of the staged files. It stays the same when git only updates the times in the index."""
        return digest(b"".join(os.fsencode(name) + b"\0" + entry for name, entry in sorted(self.index().items())))

    def head(self) -> str:
        """Returns the branch, if one is checked out, and the short id of the commit."""
        head_line = _first_line(self.folder / "HEAD")
        if not head_line.startswith("ref: "):
            return head_line[:SHORT_ID]
        name = head_line.removeprefix("ref: ").strip()
        return f"{name.removeprefix('refs/heads/')} {self.refs().get(name, '')[:SHORT_ID]}".strip()

    def refs(self) -> dict[str, str]:
        """Returns every branch, tag and stash with the commit that it points to."""
        packed_refs: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            for line in os.fsdecode(read_plain(self.common / "packed-refs", LARGEST_REFS)).splitlines():
                if line[:1] not in ("#", "^"):
                    commit, _, name = line.partition(" ")
                    packed_refs[name] = commit
        ref_walks = (os.walk(self.common / ref_folder) for ref_folder in ("refs", "reftable"))
        loose_files = (Path(parent, name) for parent, _, names in chain(*ref_walks) for name in names)
        return packed_refs | {
            path.relative_to(self.common).as_posix(): _first_line(path) for path in islice(loose_files, MOST_REFS)
        }


def find_repository(folder: Path) -> Repository | None:
    """Returns the repository that git would use from this folder."""
    return next((repository for parent in (folder, *folder.parents) if (repository := _repository_at(parent))), None)


def _repository_at(top: Path) -> Repository | None:
    """Returns the repository that begins in this folder. A `.git` that is a file names the real git folder. Git also
    accepts a folder of any name that looks like a `.git`. Where it does not take one, it goes on looking further up."""
    git_folder = top / ".git"
    try:
        if git_folder.is_file():
            git_folder = (top / _pointed_path(git_folder, "gitdir: ")).resolve()
        for folder in filter(_may_be_git_folder, (git_folder, top)):
            is_redirected = os.path.lexists(folder / "commondir")
            common = (folder / _pointed_path(folder / "commondir")).resolve() if is_redirected else folder
            return Repository(top, folder, common, not _is_certain(folder, common))
    except (OSError, ValueError):
        return Repository(top, git_folder, git_folder, unclear=True)
    return None


def _may_be_git_folder(folder: Path) -> bool:
    """Says whether any version of git may take this folder for a git folder. All of them demand these names, and a
    `HEAD` that names a branch or a commit."""
    head = folder / "HEAD"
    needed = (head, folder / "commondir") if os.path.lexists(folder / "commondir") else (head, *_parts_of(folder))
    if not all(map(os.path.lexists, needed)):
        return False
    try:
        return head.is_symlink() or re.match(MAY_BE_HEAD, read_plain(head, LARGEST_CONFIG)) is not None
    except (OSError, ValueError):
        return True


def _parts_of(folder: Path) -> tuple[Path, Path]:
    return folder / "objects", folder / "refs"


def _is_certain(folder: Path, common: Path) -> bool:
    """Says whether every version of git takes this folder for a git folder."""
    head = folder / "HEAD"
    is_plain = not head.is_symlink() and re.fullmatch(CERTAIN_HEAD, _first_line(head)) is not None
    return is_plain and all(part.is_dir() and os.access(part, os.X_OK) for part in _parts_of(common))


def _pointed_path(file: Path, prefix: str = "") -> str:
    """Returns the path that a file of git's names. Git takes all of the file for the path, with its spaces and further
    lines. A ValueError is raised where that is no ordinary path."""
    text = os.fsdecode(read_plain(file, LARGEST_CONFIG)).rstrip("\r\n")
    path = text.removeprefix(prefix)
    if not text.startswith(prefix) or path != path.strip() or not _usable(os.fsencode(path)) or not path.isprintable():
        raise ValueError(text)
    return path


def points_back(repository: Repository) -> bool:
    """Says whether the main repository itself names this worktree as one of its own. A worktree can name any repository
    as its main one, but only somebody who may change that repository can write into its folder."""
    back_pointer, git_file = repository.folder / "gitdir", repository.top / ".git"
    if repository.folder.parent != repository.common / "worktrees" or git_file.is_symlink():
        return False
    named_path = _first_line(back_pointer)
    return bool(named_path) and (repository.folder / named_path).resolve() == git_file.resolve()


def own_folders(repository: Repository) -> tuple[Path, ...]:
    """Returns the git folders that really belong to this working tree: the `.git` in it, or one elsewhere that names
    the tree. A `.git` file can name any folder, but only somebody who may change that folder can write into it."""
    top, folder, common = (
        Path(os.path.realpath(path)) for path in (repository.top, repository.folder, repository.common)
    )
    real_repository = Repository(top, folder, common)
    if (
        repository.unclear
        or not (common / "HEAD").is_file()
        or not all((common / name).is_dir() for name in ("objects", "refs"))
    ):
        return ()
    if folder != common:
        return (folder, common) if points_back(real_repository) else ()
    return (folder,) if folder in (top, top / ".git") or real_repository.names_its_tree() else ()


def git_runs_programs(folder: Path) -> bool:
    """Says whether git may start a program in this folder even when it only reads; False without a repository."""
    repository = find_repository(folder)
    return repository is not None and repository.runs_programs()


def tracked_files(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    """Returns the paths, relative to the folder, that git tracks; empty where there is no repository."""
    repository = find_repository(folder)
    if repository is None:
        return frozenset()
    prefix = "" if folder == repository.top else folder.relative_to(repository.top).as_posix() + "/"
    index = repository.index()
    return frozenset(path for path in paths if prefix + path in index)


@lru_cache(maxsize=4)
def _index(folder: str, stamp: tuple[int, ...], digest: int) -> dict[str, bytes] | None:
    """Returns the entries of an index, or None when it cannot be read. `stamp` changes whenever the file does."""
    try:
        entries, shared_name = _entries(read_plain(Path(folder) / "index", LARGEST_INDEX), digest)
        if shared_name:
            entries = (
                _entries(read_plain(Path(folder) / f"sharedindex.{shared_name}", LARGEST_INDEX), digest)[0] | entries
            )
    except (OSError, ValueError, IndexError, struct.error):
        return None
    return {os.fsdecode(name): entry for name, entry in entries.items() if name}


@lru_cache(maxsize=256)
def _inner_names(folder: str, stamp: tuple[int, ...], digest: int) -> tuple[str, ...]:
    """Returns the entries of an index that are repositories of their own."""
    if (index := _index(folder, stamp, digest)) is None:
        raise ValueError(folder)
    return tuple(name for name, entry in index.items() if int.from_bytes(entry[:4]) == GITLINK)


def _entries(data: bytes, digest: int) -> tuple[dict[bytes, bytes], str]:
    """Returns the entries of an index file, and the name of the shared index with further entries, if there is one."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(f"index version {version}")
    entries, replacing_entries = dict[bytes, bytes](), list[bytes]()
    offset, name = 12, b""
    for _ in range(count):
        entry_start = offset
        offset += STAT_BYTES + digest
        (flags,) = struct.unpack_from(">H", data, offset)
        offset += FLAG_BYTES + (2 if version >= 3 and flags & EXTENDED else 0)
        entry_bytes = data[entry_start + MODE_AT : entry_start + MODE_AT + 4] + data[entry_start + STAT_BYTES : offset]
        if version == 4:
            dropped_length, offset = read_number(data, offset)
            name_end = data.index(b"\0", offset)
            name = name[: len(name) - dropped_length] + data[offset:name_end]
            offset = name_end + 1
        else:
            length = flags & LONG_NAME
            name_end = offset + length if length < LONG_NAME else data.index(b"\0", offset)
            name = data[offset:name_end]
            offset = entry_start + (name_end - entry_start + 8) // 8 * 8
        if not name:
            # Such an entry takes the place of one of the shared index.
            replacing_entries.append(entry_bytes)
        elif len(name) > LONGEST_PATH or len(entries.get(name, b"")) >= MOST_STAGES * len(entry_bytes):
            raise ValueError(name)
        else:
            # In a conflict, one path has several entries.
            entries[name] = entries.get(name, b"") + entry_bytes
    entries[b""] = b"".join(replacing_entries)
    return entries, _shared(data, offset, digest)


def _saw(index: bytes, path: Path) -> bool:
    """Says whether the index holds the times and the inode of this very file."""
    try:
        file_stat = path.lstat()
    except OSError:
        return False
    stat_times = (*divmod(file_stat.st_ctime_ns, 10**9), *divmod(file_stat.st_mtime_ns, 10**9))
    time_bytes = b"".join((number & 0xFFFFFFFF).to_bytes(4) for number in stat_times)
    offset = index.find(time_bytes)
    return offset >= 0 and index[offset + INODE_AT : offset + MODE_AT] == (file_stat.st_ino & 0xFFFFFFFF).to_bytes(4)


def same_staged(old: bytes, new: bytes) -> bool:
    """Says whether two index files stage the same files. Git also rewrites its index only to update the times in it."""
    try:
        return _entries(old, _digest_size(old)) == _entries(new, _digest_size(new))
    except (ValueError, IndexError, struct.error):
        return False


def _digest_size(index: bytes) -> int:
    """Returns the size of the digest at the end of an index, which is computed from the bytes before it."""
    for name, size in DIGESTS.items():
        if hashlib.new(name, index[:-size], usedforsecurity=False).digest() == index[-size:]:
            return size
    raise ValueError("no index")


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number that takes a varying number of bytes, and the position after it."""
    byte, last_position = data[at], at + LONGEST_NUMBER
    number = byte & 0x7F
    while byte & 0x80 and at < last_position:
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1


def _shared(data: bytes, at: int, digest: int) -> str:
    while at + 8 <= len(data) - digest:
        extension_name, size = struct.unpack_from(">4sI", data, at)
        if extension_name == b"link":
            return data[at + 8 : at + 8 + digest].hex()
        at += 8 + size
    return ""


def _first_line(path: Path) -> str:
    """Returns the first line of a file, or an empty text where that line cannot be a path."""
    try:
        line = read_plain(path, LARGEST_CONFIG).partition(b"\n")[0].strip()
    except (OSError, ValueError):
        return ""
    return os.fsdecode(line) if _usable(line) else ""


def _usable(path: bytes) -> bool:
    """Says whether this can be a path."""
    return b"\0" not in path and 0 < len(path) < LONGEST_PATH and max(map(len, path.split(b"/"))) <= LONGEST_NAME

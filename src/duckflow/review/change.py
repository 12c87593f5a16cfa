"""The change that is reviewed: its diff, and the files before it."""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from duckflow.errors import ToolError, UsageError
from duckflow.safety.git import Git, GitFailed
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import read_diff

NOTHING: Mapping[str, bytes | None] = {}


@dataclass(frozen=True, slots=True)
class ReviewedChange:
    """A change as it lies in the folder."""

    diff: str
    before: Mapping[str, bytes | None] = field(default_factory=lambda: NOTHING)
    """The changed files before it; nothing for one that it made."""
    name: str = ""
    """How the user named it."""


async def uncommitted(git: Git) -> ReviewedChange:
    """What the folder has that the last commit has not, with files that git does not know. Of secret ones among these
    only the names are told."""
    head = await git.commit_of("HEAD")
    if not head:
        raise UsageError("review.no_commit")
    diff = await git.diff(head)
    before = await _before(git, head, await git.changed(head))
    for path in await git.names("ls-files", "-o", "--exclude-standard", "-z"):
        made = f"diff --git a/{path} b/{path}\nnew file mode 100644"
        if not secret_name(path):
            made = await git.diff(made=path)
        diff, before[path] = f"{diff}\n{made}".strip("\n"), None
    return ReviewedChange(diff, before, "HEAD")


async def between(git: Git, wanted: str) -> tuple[ReviewedChange, str]:
    """A range as git writes it (`A..B`, `A...B`), or one commit; and the commit that it leads to."""
    old, dots, new = wanted.partition("...") if "..." in wanted else wanted.partition("..")
    end = await git.commit_of((new or "HEAD") if dots else old)
    start = await git.commit_of((old or "HEAD") if dots else f"{old}~1")
    if not end or (dots and not start):
        raise UsageError("review.no_range", range=wanted)
    if not start:
        # The first commit of all: everything in it is new.
        start = await git("hash-object", "-t", "tree", "--stdin")
    if dots == "...":
        start = (await git("merge-base", start, end)).strip()
    changed = await git.changed(start, end)
    return ReviewedChange(await git.diff(start, end), await _before(git, start, changed), wanted), end


async def _before(git: Git, start: str, changed: tuple[str, ...]) -> dict[str, bytes | None]:
    found = dict[str, bytes | None]()
    for path in changed:
        old = await git.ends("cat-file", "blob", f"{start}:{path}")
        found[path] = None if old.code else old.output.encode("utf-8", "surrogateescape")
    return found


async def lies_there(git: Git, end: str) -> bool:
    """Says whether the folder is just that commit."""
    return not await git.changed(end) and end == await git.commit_of("HEAD")


@asynccontextmanager
async def checked_out(git: Git, end: str) -> AsyncGenerator[Path]:
    """The files of a commit in a folder of their own, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        folder = Path(top).resolve() / "tree"
        folder.mkdir()
        # An index of its own; an archive would leave out what the change's attributes say, and refuse links.
        there = Git(git.folder, {**git.marks, "GIT_INDEX_FILE": f"{top}/index"})
        await there("read-tree", end)
        await there("checkout-index", "--all", f"--prefix={folder}/")
        yield folder


@asynccontextmanager
async def patched(folder: Path, diff: str) -> AsyncGenerator[tuple[Path, ReviewedChange]]:
    """A diff from elsewhere. Where the folder has it already, it is looked at there; else in a copy that gets it."""
    paths = _paths(diff)
    if not paths:
        raise UsageError("review.no_diff")
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        git, before = Git(folder), Path(top) / "before"
        there = not (await git.ends("apply", "--check", "--reverse", given=diff)).code
        lies = folder if there else Path(top) / "tree"
        if not there:
            tracked = await git.names("ls-files", "-co", "--exclude-standard", "-z")
            _copy(folder, lies, tracked)
        _copy(lies, before, paths)
        try:
            await Git(before if there else lies)("apply", *(("--reverse",) if there else ()), "-", given=diff)
        except GitFailed as problem:
            raise UsageError("review.no_fit") from problem
        with closing(Workspace(before)) as old:
            files = {path: _read(old, path) for path in paths}
        yield lies.resolve(), ReviewedChange(diff, files, "-")


def _copy(source: Path, target: Path, paths: tuple[str, ...]) -> None:
    """By handles: an index and a diff may name any path, and links lead anywhere."""
    target.mkdir(parents=True, exist_ok=True)
    with closing(Workspace(source)) as there, closing(Workspace(target)) as here:
        for path in paths:
            if file := _opened(there, path):
                here.make_folder(str(Path(path).parent))
                with file, here.open(f"./{path}", write=True) as copied:
                    shutil.copyfileobj(file, copied)
                    os.fchmod(copied.fileno(), os.fstat(file.fileno()).st_mode & 0o777)


def _read(folder: Workspace, path: str) -> bytes | None:
    if file := _opened(folder, path):
        with file:
            return file.read()
    return None


def _opened(folder: Workspace, path: str) -> BinaryIO | None:
    """A plain file of just this name; nothing where a link or `..` stands in it."""
    with suppress(OSError, ToolError):
        if folder.relative(f"./{path}").removeprefix("./") == path:
            return folder.open(f"./{path}")
    return None


def _paths(diff: str) -> tuple[str, ...]:
    """The files that a diff names, as git writes them."""
    names = dict.fromkeys(line.path for line in read_diff(diff))
    return tuple(name for name in names if name and not name.startswith("/") and ".." not in name.split("/"))

"""The change that is reviewed: its diff, and the contents of its files before the change."""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from duckflow.errors import ToolError, UsageError
from duckflow.programs.find import MAIN_REPOSITORY
from duckflow.safety.git import Git, GitFailed, copy_exactly
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import read_diff

NOTHING: Mapping[str, bytes | None] = {}


@dataclass(frozen=True, slots=True)
class ReviewedChange:
    """A change that has been made to the files in the folder."""

    diff: str
    before: Mapping[str, bytes | None] = field(default_factory=lambda: NOTHING)
    """Contents of the changed files before the change; None for a file that did not exist before."""
    name: str = ""
    """The user's name for the change."""


async def uncommitted(git: Git) -> ReviewedChange:
    """Returns the changes since the last commit, including files that git does not track. Of untracked secret files
    only the names are included."""
    head_commit = await git.commit_of("HEAD")
    if not head_commit:
        raise UsageError("review.no_commit")
    new_paths = await git.names("ls-files", "-o", "--exclude-standard", "--full-name", "-z")
    async with _staged_anew(git) as staged_git:
        changed_paths = await staged_git.changed(head_commit)
        async with _copied(staged_git, (*changed_paths, *new_paths)) as copied_git:
            diff = await copied_git.diff(head_commit, "--", *changed_paths) if changed_paths else ""
            files_before = await _before(git, head_commit, changed_paths)
            for path in new_paths:
                new_file_diff = f"diff --git a/{path} b/{path}\nnew file mode 100644"
                if not secret_name(path):
                    new_file_diff = await copied_git.diff(made=path)
                diff, files_before[path] = f"{diff}\n{new_file_diff}".strip("\n"), None
    return ReviewedChange(diff, files_before, "HEAD")


@asynccontextmanager
async def _copied(git: Git, paths: Sequence[str]) -> AsyncGenerator[Git]:
    """Yields git with copies of these files in place of the working tree; `paths` begin at the top of the repository.
    Copies are needed, because git would follow a link that a command puts in the place of a folder meanwhile."""
    top_folder = Path(await git("rev-parse", "--show-toplevel"))
    git_folder = await git("rev-parse", "--absolute-git-dir")
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        for path in paths:
            with suppress(OSError, ToolError):
                (Path(top) / path).parent.mkdir(parents=True, exist_ok=True)
                copy_exactly(top_folder, path, Path(top) / path)
        git_variables = {"GIT_DIR": git_folder, "GIT_WORK_TREE": top, "GIT_LITERAL_PATHSPECS": "1"}
        yield Git(Path(top), {**git.marks, **git_variables, MAIN_REPOSITORY: str(top_folder)})


@asynccontextmanager
async def _staged_anew(git: Git) -> AsyncGenerator[Git]:
    """Yields git with a new index that has the same staged files but no cached file times, so that git compares all
    files. The repository's own index may call a changed file unchanged. Files that a sparse checkout leaves out stay
    left out."""
    staged_entries, tagged_lines = await git("ls-files", "--stage", "-z"), await git.names("ls-files", "-t", "-z")
    left_out_paths = [
        line[2:] for line in tagged_lines if line.startswith("S ") and not os.path.lexists(git.folder / line[2:])
    ]
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        staged_git = Git(git.folder, {**git.marks, "GIT_INDEX_FILE": f"{top}/index"})
        await staged_git("update-index", "-z", "--index-info", given=staged_entries)
        await staged_git(
            "update-index", "-z", "--skip-worktree", "--stdin", given="".join(f"{path}\0" for path in left_out_paths)
        )
        yield staged_git


async def between(git: Git, wanted: str) -> tuple[ReviewedChange, str]:
    """Returns the change of a range as git writes it (`A..B`, `A...B`) or of one commit, and the last commit in it."""
    old_revision, range_dots, new_revision = wanted.partition("...") if "..." in wanted else wanted.partition("..")
    end = await git.commit_of((new_revision or "HEAD") if range_dots else old_revision)
    start = await git.commit_of((old_revision or "HEAD") if range_dots else f"{old_revision}~1")
    if not end or (range_dots and not start):
        raise UsageError("review.no_range", range=wanted)
    if not start:
        # In a repository's first commit, all files are new.
        start = await git("hash-object", "-t", "tree", "--stdin")
    if range_dots == "...":
        start = (await git("merge-base", start, end)).strip()
    changed_paths = await git.changed(start, end)
    return ReviewedChange(await git.diff(start, end), await _before(git, start, changed_paths), wanted), end


async def _before(git: Git, start: str, changed: tuple[str, ...]) -> dict[str, bytes | None]:
    files = dict[str, bytes | None]()
    for path in changed:
        old_blob = await git.ends("cat-file", "blob", f"{start}:{path}")
        files[path] = None if old_blob.code else old_blob.output.encode("utf-8", "surrogateescape")
    return files


async def lies_there(git: Git, end: str) -> bool:
    """Says whether the files in the folder are exactly those of the commit `end`."""
    async with _staged_anew(git) as staged_git:
        return not await staged_git.changed(end) and end == await git.commit_of("HEAD")


@asynccontextmanager
async def checked_out(git: Git, end: str) -> AsyncGenerator[Path]:
    """Checks the files of a commit out into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        folder = Path(top).resolve() / "tree"
        folder.mkdir()
        # The checkout uses its own index. An archive would leave out files by the change's attributes, and refuse
        # links.
        checkout_git = Git(git.folder, {**git.marks, "GIT_INDEX_FILE": f"{top}/index"})
        await checkout_git("read-tree", end)
        await checkout_git("checkout-index", "--all", f"--prefix={folder}/")
        yield folder


@asynccontextmanager
async def patched(folder: Path, diff: str) -> AsyncGenerator[tuple[Path, ReviewedChange]]:
    """Yields a folder with a diff from elsewhere: the folder itself if it has the diff already, else a patched copy."""
    paths = _paths(diff)
    if not paths:
        raise UsageError("review.no_diff")
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as top:
        git, old_folder = Git(folder), Path(top) / "before"
        is_already_applied = not (await git.ends("apply", "--check", "--reverse", given=diff)).code
        patched_folder = folder if is_already_applied else Path(top) / "tree"
        if not is_already_applied:
            tracked_paths = await git.names("ls-files", "-co", "--exclude-standard", "-z")
            _copy(folder, patched_folder, tracked_paths)
        _copy(patched_folder, old_folder, paths)
        try:
            await Git(old_folder if is_already_applied else patched_folder)(
                "apply", *(("--reverse",) if is_already_applied else ()), "-", given=diff
            )
        except GitFailed as problem:
            raise UsageError("review.no_fit") from problem
        with closing(Workspace(old_folder)) as old_workspace:
            files = {path: _read(old_workspace, path) for path in paths}
        yield patched_folder.resolve(), ReviewedChange(diff, files, "-")


def _copy(source: Path, target: Path, paths: tuple[str, ...]) -> None:
    """Copies files by open handles, because an index and a diff may name any path, and links may lead anywhere."""
    target.mkdir(parents=True, exist_ok=True)
    with closing(Workspace(source)) as source_workspace, closing(Workspace(target)) as target_workspace:
        for path in paths:
            if file := _opened(source_workspace, path):
                target_workspace.make_folder(str(Path(path).parent))
                with file, target_workspace.open(f"./{path}", write=True) as copied_file:
                    shutil.copyfileobj(file, copied_file)
                    os.fchmod(copied_file.fileno(), os.fstat(file.fileno()).st_mode & 0o777)


def _read(folder: Workspace, path: str) -> bytes | None:
    if file := _opened(folder, path):
        with file:
            return file.read()
    return None


def _opened(folder: Workspace, path: str) -> BinaryIO | None:
    """Opens a plain file at exactly this path; returns None where the path has a link or `..`."""
    with suppress(OSError, ToolError):
        if folder.relative(f"./{path}").removeprefix("./") == path:
            return folder.open(f"./{path}")
    return None


def _paths(diff: str) -> tuple[str, ...]:
    """Returns the files that a diff names, as git writes them."""
    names = dict.fromkeys(line.path for line in read_diff(diff))
    return tuple(name for name in names if name and not name.startswith("/") and ".." not in name.split("/"))

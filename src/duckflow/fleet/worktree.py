"""The folder of an attempt: its own git worktree at a commit, with the ignored files that the attempt needs."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from duckflow.errors import ToolError, UsageError
from duckflow.fleet.task import AttemptOrder, FileChange, FleetTask
from duckflow.safety.files import read_plain
from duckflow.safety.git import WHOLE_DIFF, Git, GitFailed, alone_in, copy_exactly, pathspecs
from duckflow.state.changes import read_diff
from duckflow.state.data import Phrase, say, shorten
from duckflow.whole_file import write_whole

ADDRESS = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")


def is_address(repository: str) -> bool:
    return ADDRESS.fullmatch(repository) is not None


def clone_place(address: str, clones: Path) -> Path:
    """Returns the folder for a clone of an address. Addresses that end with the same name get different folders."""
    name = re.sub(r"[^\w.-]", "-", address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2])
    return clones / f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def repository_in(folder: str, repository: str) -> Path:
    """Returns the path of a task's repository on this machine. Where `folder` is set, paths outside it are refused,
    because other machines write tasks into the database too."""
    if folder and (Path(repository).is_absolute() or ".." in Path(repository).parts or repository.startswith("file:")):
        raise UsageError("fleet.outside", repository=repository, folder=folder)
    if not folder and not Path(repository).is_absolute() and not is_address(repository):
        raise UsageError("fleet.no_repositories", repository=repository)
    return Path(folder, repository)


def repository_of(task: FleetTask, folder: str, clones: Path) -> Path:
    """Returns the path of a task's repository or clone on this machine."""
    repository = repository_in(folder, task.origin)
    return clone_place(task.remote, clones) if task.remote else repository


async def bring_clone(address: str, clones: Path) -> Path:
    """Clones or updates a repository with the user's git and credentials. Git never takes the address for an option."""
    clone_folder = clone_place(address, clones)
    clones.mkdir(parents=True, exist_ok=True)
    git = Git(clone_folder)
    try:
        async with alone_in(clones):
            if (clone_folder / ".git").exists():
                await git("fetch", "--quiet", "--prune", "origin")
            else:
                await Git(clones)("clone", "--quiet", "--no-checkout", values=[address, str(clone_folder)])
                # HEAD is detached: no branch is checked out, so every branch can be moved.
                await git("update-ref", "--no-deref", values=["HEAD", await git("rev-parse", "HEAD")])
            # The remote chooses the branch's name. Without `refs/heads/` before the name, git could take it for an
            # option.
            if name := await default_branch(git):
                await git.ends("fetch", "--quiet", values=["origin", f"refs/heads/{name}:refs/heads/{name}"])
    except GitFailed as problem:
        raise UsageError("fleet.no_clone", address=address, reason=str(problem.values["reason"])) from None
    return clone_folder


async def default_branch(git: Git) -> str:
    """Returns the default branch of the remote, or an empty text."""
    ref_result = await git.ends("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    return ref_result.output.strip().partition("/")[2]


Note = Callable[[Phrase], None]
LONGEST_NOTE = 1_000_000
USUAL = (".env", ".env.local")
"""Ignored files that many projects need to run."""
SPARED = ".spared.json"
GLOB = re.compile(r"[*?\[]")
TITLE = 60
MERGING = ".merge"
"""Suffix for the name of the worktree in which an attempt is merged."""


class Worktree:
    """A worktree made by `open_worktree`. The attempt's changes are the differences from the commit `start`; its branch
    is at the commit `stands`."""

    def __init__(self, git: Git, main: Git, start: str, stands: str) -> None:
        self.git = git
        self.start = start
        self._main = main
        self._before = self._stands = stands

    @property
    def folder(self) -> Path:
        return self.git.folder

    async def furnish(self, task: FleetTask, note: Note) -> None:
        """Adds the files that git does not put into the worktree, and notes what is missing."""
        await bring_ignored(task, self._main, self.folder, note)
        await _tell_what_is_missing(self.git, note)

    async def spare(self) -> None:
        """Marks files that the set-up has made, so that they do not count as the attempt's work."""
        self.git.spared = await self.git.unknown()
        write_whole(_spared_in(self.folder), json.dumps(self.git.spared))

    async def commit(self, order: AttemptOrder) -> str:
        """Commits all work to the attempt's branch and returns the commit, or an empty text if nothing differs from the
        start. Refuses a worktree whose HEAD no longer contains its start: work is never put on another base."""
        await self.git.add()
        if not order.mend and await self.git.holds(self.start, "HEAD") and await self._in_pieces():
            await self.git("update-ref", "--no-deref", values=["HEAD", self.start])
        commit = await self.git.commit(message_of(order))
        if not await self.git.holds(self.start, commit):
            raise UsageError("fleet.led_away", base=self.start[:12], branch=order.branch)
        if not (await self.git.ends("diff", "--quiet", values=[self.start, commit])).code and not order.mend:
            return ""
        if self._stands != commit:
            await self._main.move_branch(order.branch, commit, self._stands)
            self._stands = commit
        return commit

    async def _in_pieces(self) -> bool:
        """Says whether the attempt has several commits, or one commit and staged changes."""
        commit_count = await self.git("rev-list", "--count", values=[f"{self.start}..HEAD"])
        return commit_count not in ("0", "1") or (
            commit_count == "1" and bool((await self.git.ends("diff", "--cached", "--quiet")).code)
        )

    async def diff(self, commit: str) -> str:
        return await self.git.diff(self.start, commit)

    async def changes(self, commit: str) -> tuple[FileChange, ...]:
        lines = Counter((line.path, line.sign) for line in read_diff(await self.diff(commit)))
        names = await self.git.changed(self.start, commit)
        return tuple(FileChange(path=name, added=lines[name, "+"], removed=lines[name, "-"]) for name in names)

    async def outside(self, commit: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the changed files that the task does not allow to change."""
        if not allowed:
            return ()
        specs = (":(top)", *pathspecs(allowed, exclude=True))
        return await self.git.changed(self.start, commit, within=specs)

    async def secrets_in(self, commit: str, parts: Sequence[str]) -> tuple[str, ...]:
        return await files_with(self.git, parts, values=[commit, f"^{self.start}"])

    async def drop_branch(self, order: AttemptOrder) -> None:
        """Removes the attempt's branch if it has no commits besides the start."""
        await self._main.remove_branch(order.branch, self.start)

    async def put_branch_back(self, order: AttemptOrder) -> None:
        """Moves the attempt's branch back to the commit where it was when the worktree was opened."""
        if self._before and self._stands != self._before:
            await self._main.move_branch(order.branch, self._before, self._stands)

    async def remove(self) -> None:
        await remove_worktree(self._main, self.folder)


async def files_with(git: Git, parts: Sequence[str], *which: str, values: Sequence[str]) -> tuple[str, ...]:
    """Returns files into which these commits wrote one of the texts, even where a later commit removed it again."""
    if not parts:
        return ()
    text = await git("log", "-p", "-U0", "-m", "--format=", *WHOLE_DIFF, *which, values=values)
    added_lines = (line for line in read_diff(text) if line.sign == "+")
    return tuple(dict.fromkeys(line.path for line in added_lines if any(part in line.text for part in parts)))


async def conflicts_in(git: Git) -> tuple[str, ...]:
    """Returns the files that git could not merge."""
    return await git.names("diff", "--name-only", "--diff-filter=U", "-z")


def place_of(worktrees: Path, repository: Path, name: str) -> Path:
    """Returns the folder of a worktree. Its path has a hash of the repository's path, so equal names do not clash."""
    short_hash = hashlib.sha256(os.fsencode(repository)).hexdigest()[:8]
    return worktrees / f"{repository.name}-{short_hash}" / name


def message_of(order: AttemptOrder) -> str:
    prompt = order.task.prompt.strip()
    title = shorten(prompt, TITLE)
    return f"{order.task.name}: {title}\n" + (f"\n{prompt}\n" if title != prompt else "")


async def open_worktree(order: AttemptOrder, worktrees: Path, marks: Mapping[str, str], note: Note) -> Worktree:
    """Makes a fresh worktree. Work that an earlier try of the attempt left is first committed to the branch."""
    task, main_git = order.task, Git(Path(order.task.repository), marks)
    folder = place_of(worktrees, main_git.folder, order.attempt_id)
    await _settle(order, main_git, folder, note)
    base_commit = await _known(main_git, task.base)
    branch_commit = await main_git.commit_of(f"refs/heads/{order.branch}")
    start_commit = branch_commit if branch_commit and (order.go > 1 or order.mend) else base_commit
    if branch_commit and order.go == 1:
        raise UsageError("fleet.branch_there", branch=order.branch)
    if start_commit != branch_commit:
        await main_git.move_branch(order.branch, start_commit, branch_commit)
    git = await add_worktree(main_git, folder, start_commit)
    return Worktree(git, main_git, order.mend or base_commit, start_commit)


async def add_worktree(main: Git, folder: Path, commit: str) -> Git:
    """Adds a worktree. Git sometimes fails to add several at once to one repository, so this short step is locked."""
    # Other users must not read the code or ignored files such as `.env`.
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o700)
    async with main.alone():
        await main("worktree", "add", "--no-checkout", "--detach", "--quiet", values=[str(folder), commit])
    git = await _worktree_at(main, folder)
    if git is None:
        raise GitFailed("git worktree", str(folder))
    await git("reset", "--hard", "--quiet")
    return git


async def _worktree_at(main: Git, folder: Path) -> Git | None:
    """Returns git for a worktree. The worktree is found by the repository's own record, because files in the worktree
    may have been changed."""
    git_folder = Path(await main("rev-parse", "--path-format=absolute", "--git-common-dir"))
    for gitdir_file in git_folder.glob("worktrees/*/gitdir"):
        git_file = gitdir_file.parent / os.fsdecode(read_plain(gitdir_file, LONGEST_NOTE)).strip()
        if git_file.parent.resolve() == folder.resolve():
            return Git(folder, main.marks, gitdir_file.parent)
    return None


async def remove_worktree(main: Git, folder: Path) -> None:
    """Removes a worktree, even one that was only half made."""
    _spared_in(folder).unlink(missing_ok=True)
    await main.ends("worktree", "unlock", values=[str(folder)])
    async with main.alone():
        if (await main.ends("worktree", "remove", "--force", "--force", values=[str(folder)])).code:
            await asyncio.to_thread(shutil.rmtree, folder, True)
            await main.ends("worktree", "prune")


async def _known(main: Git, base: str) -> str:
    """Returns the commit that `base` names. A missing commit is fetched first."""
    if not await main.commit_of(base):
        await main.ends("fetch", "--quiet", "--all")
    if commit := await main.commit_of(base):
        return commit
    raise UsageError("fleet.no_base", base=base, repository=str(main.folder))


async def _settle(order: AttemptOrder, main: Git, folder: Path, note: Note) -> None:
    if not folder.exists():
        await main.ends("worktree", "prune")
        return
    if order.go > 1:
        try:
            earlier_git = await _worktree_at(main, folder)
            if earlier_git and await _keep(order, main, earlier_git):
                note(say("fleet.note.kept", branch=order.branch))
        except GitFailed as problem:
            note(say("fleet.note.not_kept", reason=str(problem.values["reason"])))
    await remove_worktree(main, folder)


async def _keep(order: AttemptOrder, main: Git, git: Git) -> bool:
    """Commits work that is not on the branch yet, and says whether the branch was moved. A half-made worktree is left
    alone: it has no index, so all files would look removed."""
    if not Path(await git("rev-parse", "--git-path", "index")).exists():
        return False
    await git.ends("merge", "--abort")
    with contextlib.suppress(OSError, ValueError):
        git.spared = tuple(json.loads(read_plain(_spared_in(git.folder), LONGEST_NOTE)))
    await git.add()
    commit = await git.commit(message_of(order))
    branch_commit = await main.commit_of(f"refs/heads/{order.branch}")
    if commit == branch_commit or not branch_commit or not await main.holds(branch_commit, commit):
        return False
    await main.move_branch(order.branch, commit, branch_commit)
    return True


async def bring_ignored(task: FleetTask, main: Git, folder: Path, note: Note) -> None:
    """Copies the ignored files that the task names from the user's checkout into the worktree."""
    for pattern in task.include:
        names = await main.names("ls-files", "-oi", "--exclude-standard", "-z", "--", *pathspecs([pattern]))
        if not names and not GLOB.search(pattern):
            exists = (main.folder / pattern).exists()
            raise UsageError("fleet.include_known" if exists else "fleet.include_missing", file=pattern)
        for name in names:
            await asyncio.to_thread(_copy, main.folder, folder, name)
        note(say("fleet.note.included", files=", ".join(names) or "–", pattern=pattern))
    for name in USUAL:
        if (main.folder / name).exists() and not (folder / name).exists():
            note(say("fleet.note.not_included", file=name))


async def _tell_what_is_missing(git: Git, note: Note) -> None:
    if (git.folder / ".gitmodules").exists():
        note(say("fleet.note.submodules"))
    attributes = git.folder / ".gitattributes"
    if attributes.is_file() and b"filter=lfs" in read_plain(attributes, LONGEST_NOTE, cut=True):
        has_lfs = (await git.ends("lfs", "version")).code == 0
        note(say("fleet.note.lfs" if has_lfs else "fleet.note.no_lfs"))


def _spared_in(folder: Path) -> Path:
    """Returns the note about a worktree. It lies beside the worktree, where no command writes."""
    return folder.with_name(f"{folder.name}{SPARED}")


def _copy(source: Path, folder: Path, name: str) -> None:
    """Copies a file or a link from the repository into the folder. It follows no link on the way to either of them: the
    attempt may have put one there, or a command that still works in the repository."""
    target = folder / name
    if not target.parent.resolve().is_relative_to(folder.resolve()):
        raise UsageError("fleet.include_outside", file=name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        copy_exactly(source, name, target)
    except (OSError, ToolError):
        raise UsageError("fleet.include_outside", file=name) from None

"""The folder of an attempt: a worktree of its own, on a commit, with the ignored files that it needs."""

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

from duckflow.errors import UsageError
from duckflow.fleet.task import AttemptOrder, FileChange, FleetTask
from duckflow.safety.files import read_plain
from duckflow.safety.git import WHOLE_DIFF, Git, GitFailed, alone_in, pathspecs
from duckflow.state.changes import read_diff
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say

ADDRESS = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")


def is_address(repository: str) -> bool:
    return ADDRESS.fullmatch(repository) is not None


def clone_place(address: str, clones: Path) -> Path:
    """Two addresses that end with the same name have places of their own."""
    name = re.sub(r"[^\w.-]", "-", address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2])
    return clones / f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def repository_in(folder: str, repository: str) -> Path:
    """Where a task's repository lies on this machine. Where a folder is named for all of them, nothing outside of it is
    worked on: others write into the database, too."""
    if folder and (Path(repository).is_absolute() or ".." in Path(repository).parts or repository.startswith("file:")):
        raise UsageError("fleet.outside", repository=repository, folder=folder)
    return Path(folder, repository)


async def bring_clone(address: str, clones: Path) -> Path:
    """By the user's own git and its credentials. An address never becomes an option or a program of git's."""
    place = clone_place(address, clones)
    clones.mkdir(parents=True, exist_ok=True)
    git = Git(place)
    try:
        async with alone_in(clones):
            if (place / ".git").exists():
                await git("fetch", "--quiet", "--prune", "origin")
            else:
                await Git(clones)("clone", "--quiet", "--no-checkout", values=[address, str(place)])
                # No branch is checked out, so that each can be moved.
                await git("update-ref", "--no-deref", values=["HEAD", await git("rev-parse", "HEAD")])
            # The remote chooses the name: without what stands before it, git could take it for an option.
            if name := await default_branch(git):
                await git.ends("fetch", "--quiet", values=["origin", f"refs/heads/{name}:refs/heads/{name}"])
    except GitFailed as problem:
        raise UsageError("fleet.no_clone", address=address, reason=str(problem.values["reason"])) from None
    return place


async def default_branch(git: Git) -> str:
    """The branch that the remote names first; nothing where it names none."""
    done = await git.ends("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    return done.output.strip().partition("/")[2]


Note = Callable[[Phrase], None]
LONGEST_NOTE = 1_000_000
USUAL = (".env", ".env.local")
"""Ignored files without which much does not run."""
SPARED = "duckflow-spared.json"
GLOB = re.compile(r"[*?\[]")
TITLE = 60
MERGING = ".merge"
"""After the name of an attempt: the worktree in which it is merged."""


class Worktree:
    """Made by `open_worktree`. `start`: the commit that its changes are counted from; `stands`: where its branch is."""

    def __init__(self, git: Git, main: Git, start: str, stands: str) -> None:
        self.git = git
        self.start = start
        self._main = main
        self._before = self._stands = stands

    @property
    def folder(self) -> Path:
        return self.git.folder

    async def spare(self) -> None:
        """What the set-up has made is not the attempt's work."""
        self.git.spared = await self.git.unknown()
        (await _spared_in(self.git)).write_text(json.dumps(self.git.spared), "utf-8")

    async def commit(self, order: AttemptOrder) -> str:
        """What there is, onto the attempt's branch; nothing where nothing differs from the start. A worktree that has
        been led away from its start is refused: nothing is ever put on another base."""
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
        """Whether it would become more than one commit."""
        before = await self.git("rev-list", "--count", values=[f"{self.start}..HEAD"])
        return before not in ("0", "1") or (
            before == "1" and bool((await self.git.ends("diff", "--cached", "--quiet")).code)
        )

    async def diff(self, commit: str) -> str:
        return await self.git.diff(self.start, commit)

    async def changes(self, commit: str) -> tuple[FileChange, ...]:
        lines = Counter((line.path, line.sign) for line in read_diff(await self.diff(commit)))
        names = await self.git.changed(self.start, commit)
        return tuple(FileChange(path=name, added=lines[name, "+"], removed=lines[name, "-"]) for name in names)

    async def outside(self, commit: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Files that changed though they should not."""
        if not allowed:
            return ()
        specs = (":(top)", *pathspecs(allowed, exclude=True))
        return await self.git.changed(self.start, commit, within=specs)

    async def secrets_in(self, commit: str, parts: Sequence[str]) -> tuple[str, ...]:
        return await files_with(self.git, parts, values=[commit, f"^{self.start}"])

    async def drop_branch(self, order: AttemptOrder) -> None:
        """Where there is nothing on it."""
        await self._main.remove_branch(order.branch, self.start)

    async def put_branch_back(self, order: AttemptOrder) -> None:
        """To where it stood when this began."""
        if self._before and self._stands != self._before:
            await self._main.move_branch(order.branch, self._before, self._stands)

    async def remove(self) -> None:
        await remove_worktree(self._main, self.folder)


async def files_with(git: Git, parts: Sequence[str], *which: str, values: Sequence[str]) -> tuple[str, ...]:
    """Files of these commits into which one of the texts was written, also where a later one took it out again."""
    if not parts:
        return ()
    text = await git("log", "-p", "-U0", "-m", "--format=", *WHOLE_DIFF, *which, values=values)
    added = (line for line in read_diff(text) if line.sign == "+")
    return tuple(dict.fromkeys(line.path for line in added if any(part in line.text for part in parts)))


async def conflicts_in(git: Git) -> tuple[str, ...]:
    """Files that git could not merge."""
    return await git.names("diff", "--name-only", "--diff-filter=U", "-z")


def place_of(worktrees: Path, repository: Path, name: str) -> Path:
    """By the repository's path, so that two of the same name do not meet."""
    short = hashlib.sha256(os.fsencode(repository)).hexdigest()[:8]
    return worktrees / f"{repository.name}-{short}" / name


def message_of(order: AttemptOrder) -> str:
    prompt = order.task.prompt.strip()
    title = shorten(prompt, TITLE)
    return f"{order.task.name}: {title}\n" + (f"\n{prompt}\n" if title != prompt else "")


async def open_worktree(order: AttemptOrder, worktrees: Path, marks: Mapping[str, str], note: Note) -> Worktree:
    """A fresh one. What an earlier go at the same attempt has left is kept on its branch first."""
    task, main = order.task, Git(Path(order.task.repository), marks)
    folder = place_of(worktrees, main.folder, order.attempt_id)
    await _settle(order, main, folder, note)
    base = await _known(main, task.base)
    before = await main.commit_of(f"refs/heads/{order.branch}")
    start = before if before and (order.go_on or order.mend) else base
    if before and not order.go_on:
        raise UsageError("fleet.branch_there", branch=order.branch)
    if start != before:
        await main.move_branch(order.branch, start, before)
    git = await add_worktree(main, folder, start)
    await bring_ignored(task, main, folder, note)
    await _tell_what_is_missing(git, note)
    return Worktree(git, main, order.mend or base, start)


async def add_worktree(main: Git, folder: Path, commit: str) -> Git:
    """Several at once in one repository would fail now and then, so the short part of it is done one by one."""
    # The code, and ignored files such as `.env`, are for nobody else's eyes.
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
    """As the repository knows it, whatever lies in the folder by now."""
    common = Path(await main("rev-parse", "--path-format=absolute", "--git-common-dir"))
    for note in common.glob("worktrees/*/gitdir"):
        leads_to = note.parent / os.fsdecode(read_plain(note, LONGEST_NOTE)).strip()
        if leads_to.parent.resolve() == folder.resolve():
            return Git(folder, main.marks, note.parent)
    return None


async def remove_worktree(main: Git, folder: Path) -> None:
    """Also one that was only half made."""
    await main.ends("worktree", "unlock", values=[str(folder)])
    async with main.alone():
        if (await main.ends("worktree", "remove", "--force", "--force", values=[str(folder)])).code:
            await asyncio.to_thread(shutil.rmtree, folder, True)
            await main.ends("worktree", "prune")


async def _known(main: Git, base: str) -> str:
    """The commit; fetched where it is not there yet."""
    if not await main.commit_of(base):
        await main.ends("fetch", "--quiet", "--all")
    if found := await main.commit_of(base):
        return found
    raise UsageError("fleet.no_base", base=base, repository=str(main.folder))


async def _settle(order: AttemptOrder, main: Git, folder: Path, note: Note) -> None:
    if not folder.exists():
        await main.ends("worktree", "prune")
        return
    if order.go_on:
        try:
            left = await _worktree_at(main, folder)
            if left and await _keep(order, main, left):
                note(say("fleet.note.kept", branch=order.branch))
        except GitFailed as problem:
            note(say("fleet.note.not_kept", reason=str(problem.values["reason"])))
    await remove_worktree(main, folder)


async def _keep(order: AttemptOrder, main: Git, left: Git) -> bool:
    """What is not on the branch yet. Where there is no index it was only half made: everything would look removed."""
    if not Path(await left("rev-parse", "--git-path", "index")).exists():
        return False
    await left.ends("merge", "--abort")
    with contextlib.suppress(OSError, ValueError):
        left.spared = tuple(json.loads(read_plain(await _spared_in(left), LONGEST_NOTE)))
    await left.add()
    commit = await left.commit(message_of(order))
    before = await main.commit_of(f"refs/heads/{order.branch}")
    if commit == before or not before or not await main.holds(before, commit):
        return False
    await main.move_branch(order.branch, commit, before)
    return True


async def bring_ignored(task: FleetTask, main: Git, folder: Path, note: Note) -> None:
    """The ignored files that the task names, from the user's checkout."""
    for pattern in task.include:
        found = await main.names("ls-files", "-oi", "--exclude-standard", "-z", "--", *pathspecs([pattern]))
        if not found and not GLOB.search(pattern):
            there = (main.folder / pattern).exists()
            raise UsageError("fleet.include_known" if there else "fleet.include_missing", file=pattern)
        for name in found:
            await asyncio.to_thread(_copy, main.folder / name, folder, name)
        note(say("fleet.note.included", files=", ".join(found) or "–", pattern=pattern))
    for name in USUAL:
        if (main.folder / name).exists() and not (folder / name).exists():
            note(say("fleet.note.not_included", file=name))


async def _tell_what_is_missing(git: Git, note: Note) -> None:
    if (git.folder / ".gitmodules").exists():
        note(say("fleet.note.submodules"))
    attributes = git.folder / ".gitattributes"
    if attributes.is_file() and b"filter=lfs" in read_plain(attributes, LONGEST_NOTE, cut=True):
        there = (await git.ends("lfs", "version")).code == 0
        note(say("fleet.note.lfs" if there else "fleet.note.no_lfs"))


async def _spared_in(git: Git) -> Path:
    return Path(await git("rev-parse", "--absolute-git-dir")) / SPARED


def _copy(source: Path, folder: Path, name: str) -> None:
    """A link that the attempt has put in its place, or on the way there, leads nowhere."""
    target = folder / name
    if not target.parent.resolve().is_relative_to(folder.resolve()):
        raise UsageError("fleet.include_outside", file=name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    except OSError:
        raise UsageError("fleet.include_outside", file=name) from None

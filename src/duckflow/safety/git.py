"""Git as Duckflow itself calls it: no hooks, no questions, no signatures, and always in the folder that is named."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import DuckflowError, UsageError
from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.safety.ignore_rules import HEAVY

QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "core.quotePath=false", "-c", "advice.detachedHead=false", "-c", "gc.auto=0", "-c", "maintenance.auto=0"),
    *("-c", "diff.ignoreSubmodules=all", "-c", "submodule.recurse=false"),
    # A repository may name a program that looks at signatures.
    *("-c", "log.showSignature=false", "-c", "merge.verifySignatures=false"),
)
ELSEWHERE = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE"),
    *("GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE", "GIT_CONFIG_PARAMETERS"),
)
WHOLE_DIFF = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-relative"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
    # Attributes, which a change may bring, must not call a file binary; and the other repositories within are told of.
    *("--text", "--ignore-submodules=dirty"),
)
FILES = re.compile(r"\n(?=diff --git )")
ODD = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\udc80-\udcff]")
MOST_ODD = 0.1
"""A file with a larger share of bytes that are no text is told by its name only."""
NAMELESS = ("-c", "user.name=Duckflow", "-c", "user.email=duckflow@localhost")
"""For those who have not told git who they are."""
REPOSITORY = "160000 "
"""The mode of one within another."""
LEFTOVERS = (*(f"**/{name}/**" for name in sorted(HEAVY)), "**/*.py[co]")
LOCK = "duckflow-worktrees.lock"
LOCK_SECONDS = 0.05
LONGEST_REASON = 400


class GitFailed(DuckflowError):
    """Git ended with an error; `reason` is what it said."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__("fleet.git", command=command, reason=reason)


class GitResult(NamedTuple):
    """How a call of git ended."""

    code: int
    output: str
    errors: str


class Git:
    """The repository around one folder."""

    def __init__(self, folder: Path, marks: Mapping[str, str] | None = None, place: Path | None = None) -> None:
        """`place`: where git keeps what belongs to a worktree. What its `.git` says is not believed then: an attempt
        could have written it, and with it settings that name programs."""
        self.folder = folder
        self.marks = marks or {}
        """What shows in the environment whose processes they are."""
        self._pinned = {"GIT_DIR": str(place), "GIT_WORK_TREE": str(folder)} if place else {}
        self.spared: tuple[str, ...] = ()
        """What was made before the work began: neither added nor cleaned away."""

    async def __call__(self, *words: str, values: Sequence[str] = (), given: str = "") -> str:
        """What it prints, without the last line's end; GitFailed when it fails."""
        done = await self.ends(*words, values=values, given=given)
        if done.code:
            raise GitFailed(f"git {words[0]}", (done.errors or done.output).strip()[-LONGEST_REASON:])
        return done.output.removesuffix("\n")

    async def ends(self, *words: str, values: Sequence[str] = (), given: str = "") -> GitResult:
        """The same, where an error is an answer, too. `values`: names and commits that others may have chosen; git
        takes none of them for an option."""
        program = find_program("git", self.folder)
        if program is None:
            raise UsageError("fleet.no_git")
        argv = (program, *QUIET, *words, *(("--end-of-options", *values) if values else ()))
        launch = Launch(argv, self.folder, {**_environment(), **self._pinned, **self.marks})
        printed = await collect(launch, os.fsencode(given))
        return GitResult(printed.code, os.fsdecode(printed.out), os.fsdecode(printed.err))

    async def names(self, *words: str, values: Sequence[str] = ()) -> tuple[str, ...]:
        """What it prints with `-z`."""
        return tuple(name for name in (await self(*words, values=values)).split("\0") if name)

    async def diff(self, *commits: str, made: str = "") -> str:
        """A diff that nothing in the repository shapes, and in which no text of it hides. `made`: of a file that git
        does not know."""
        words = ("--no-index", "--", "/dev/null", made) if made else ()
        done = await self.ends("diff", *WHOLE_DIFF, *words, values=commits)
        # 1 says that two files differ.
        if done.code > 1:
            raise GitFailed("git diff", done.errors.strip()[-LONGEST_REASON:])
        return "\n".join(map(_told_file, FILES.split(done.output.removesuffix("\n"))))

    async def changed(self, *commits: str, within: Iterable[str] = ()) -> tuple[str, ...]:
        """The names of the files in such a diff that these pathspecs take in."""
        return await self.names("diff", "--name-only", "-z", *WHOLE_DIFF, values=[*commits, "--", *within])

    async def commit_of(self, name: str) -> str:
        """The full id of the commit that the name means; nothing where there is none."""
        done = await self.ends("rev-parse", "--verify", "--quiet", values=[f"{name}^{{commit}}"])
        return "" if done.code else done.output.strip()

    async def checked_out(self) -> str:
        """The branch; nothing for a bare commit."""
        done = await self.ends("symbolic-ref", "--quiet", "--short", "HEAD")
        return done.output.strip()

    async def checkout_of(self, branch: str) -> "Git | None":
        """The worktree, or the main folder, that has this branch checked out."""
        folder = ""
        for line in (await self("worktree", "list", "--porcelain")).split("\n"):
            if line.startswith("worktree "):
                folder = line.removeprefix("worktree ")
            elif line == f"branch refs/heads/{branch}":
                return Git(Path(folder), self.marks)
        return None

    async def holds(self, older: str, newer: str) -> bool:
        """Whether the older commit is part of the newer one's past."""
        return not (await self.ends("merge-base", "--is-ancestor", values=[older, newer])).code

    async def move_branch(self, branch: str, commit: str, before: str) -> None:
        """Only when it still stands where it stood `before`; nothing: when it is not there."""
        values = [f"refs/heads/{branch}", commit, before or "0" * len(commit)]
        await self("update-ref", "-m", "duckflow fleet", values=values)

    async def remove_branch(self, branch: str, before: str) -> bool:
        """Whether it is gone. It stays where it does not stand where it stood `before`."""
        return not (await self.ends("update-ref", "-d", values=[f"refs/heads/{branch}", before])).code

    async def add(self) -> None:
        """Everything that is neither ignored, nor spared, nor what programs leave behind. Repositories within this one
        are left alone: git would look into them by their own settings, which may name programs."""
        within = [name for name in await self.names("ls-files", "-o", "--exclude-standard", "-z") if name.endswith("/")]
        staged = await self.names("ls-files", "--stage", "-z")
        within += [row.partition("\t")[2] for row in staged if row.startswith(REPOSITORY)]
        left = [f":(top,exclude,literal){name.rstrip('/')}" for name in (*self.spared, *within)]
        await self("add", "--all", "--", ":(top)", *pathspecs(LEFTOVERS, exclude=True), *left)

    async def commit(self, message: str) -> str:
        """What was added; the new commit, or the old one where nothing was."""
        if await self.commit_of("MERGE_HEAD") or (await self.ends("diff", "--cached", "--quiet")).code:
            await self(*await self._name(), "commit", "--quiet", "--no-verify", "--file=-", given=message)
        return await self("rev-parse", "HEAD")

    async def merge(self, commit: str) -> None:
        """Into the files, without a commit; conflicts are left in them."""
        await self.ends(*await self._name(), "merge", "--no-commit", "--no-ff", values=[commit])

    async def _name(self) -> tuple[str, ...]:
        """Git wants to know who it is even where nothing is committed."""
        known = (await self.ends("config", "user.email")).output.strip() or os.environ.get("GIT_COMMITTER_EMAIL")
        return () if known else NAMELESS

    async def restore(self) -> None:
        """The folder as it was committed; ignored files stay."""
        await self("reset", "--hard", "--quiet")
        await self("clean", "-fdq", *(f"--exclude=/{name}" for name in self.spared))

    async def unknown(self) -> tuple[str, ...]:
        """Files and folders that are neither committed nor ignored."""
        return await self.names("ls-files", "-o", "--exclude-standard", "--directory", "-z")

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """What git cannot do twice at once in one repository; other processes wait, too."""
        async with alone_in(Path(await self("rev-parse", "--path-format=absolute", "--git-common-dir"))):
            yield


@contextlib.asynccontextmanager
async def alone_in(folder: Path) -> AsyncGenerator[None]:
    """Waits until no other process does something in the folder under this lock."""
    import fcntl

    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(LOCK_SECONDS)
        yield
    finally:
        os.close(handle)


def _told_file(text: str) -> str:
    """The part of a diff about one file; of one that is no text, only what stands before its lines."""
    head, _, lines = text.partition("\n@@ ")
    if len(ODD.findall(lines)) <= MOST_ODD * len(lines):
        return text
    return head.partition("\n--- ")[0] + "\nBinary files differ"


def pathspecs(patterns: Iterable[str], exclude: bool = False) -> tuple[str, ...]:
    """Patterns as people write them, from the top of the repository: `src` is all that is in it, `*.py` any such file
    there, `**/*.py` also deeper."""
    magic = "top,exclude,glob" if exclude else "top,glob"
    return tuple(f":({magic}){pattern.removeprefix('./').rstrip('/')}" for pattern in patterns)


def _environment() -> dict[str, str]:
    """Without what would lead git elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ELSEWHERE)}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}

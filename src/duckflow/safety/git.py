"""Git as Duckflow itself calls it: no hooks, no questions, no signatures, and always in the folder that is named."""

import asyncio
import contextlib
import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import DuckflowError, UsageError
from duckflow.programs.find import MAIN_REPOSITORY, environment_outside, find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.safety.files import open_regular
from duckflow.safety.git_settings import is_harmless
from duckflow.safety.ignore_rules import HEAVY
from duckflow.safety.repository import Repository, find_repository, points_back
from duckflow.safety.sandbox.repositories import hold

QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "core.quotePath=false", "-c", "advice.detachedHead=false", "-c", "gc.auto=0", "-c", "maintenance.auto=0"),
    *("-c", "diff.ignoreSubmodules=all", "-c", "submodule.recurse=false"),
    # A repository may name a program that checks signatures.
    *("-c", "log.showSignature=false", "-c", "merge.verifySignatures=false"),
)
ELSEWHERE = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE"),
    *("GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE", "GIT_CONFIG_PARAMETERS"),
)
WHOLE_DIFF = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-relative"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
    # A change may bring attributes, and they must not make a file binary. Repositories within this one are shown, too.
    *("--text", "--ignore-submodules=dirty"),
)
FILES = re.compile(r"\n(?=diff --git )")
ODD = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\udc80-\udcff]")
MOST_ODD = 0.1
"""The largest share of bytes in a text file that are no text; a file with more is shown by its name only."""
NAMELESS = ("-c", "user.name=Duckflow", "-c", "user.email=duckflow@localhost")
"""A name and address for users who have not told git who they are."""
REPOSITORY = "160000 "
"""The mode of an entry in git's index that is a repository of its own."""
LEFTOVERS = (*(f"**/{name}/**" for name in sorted(HEAVY)), "**/*.py[co]")
LOCK = "duckflow-worktrees.lock"
LOCK_SECONDS = 0.05
LONGEST_REASON = 400


class GitFailed(DuckflowError):
    """Raised when git ended with an error; `reason` is git's message."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__("fleet.git", command=command, reason=reason)


class GitResult(NamedTuple):
    """The exit code and the output of one call of git."""

    code: int
    output: str
    errors: str


class Git:
    """Runs git commands in the repository around one folder."""

    def __init__(self, folder: Path, marks: Mapping[str, str] | None = None, place: Path | None = None) -> None:
        """`place` is git's own folder for a worktree. With it, the worktree's `.git` file is ignored, and so is the
        `commondir` in `place`: commands could have written either of them to name settings that start programs."""
        self.folder = folder
        self.marks = marks or {}
        """Environment variables of the git processes, by which other parts of Duckflow recognise these processes."""
        self._place = place
        self.spared: tuple[str, ...] = ()
        """Files that existed before the work began. They are neither added nor cleaned away."""

    async def __call__(self, *words: str, values: Sequence[str] = (), given: str = "") -> str:
        """Runs git, with `given` as its input, and returns its output without the newline at the end. Raises GitFailed
        when git fails."""
        git_result = await self.ends(*words, values=values, given=given)
        if git_result.code:
            raise GitFailed(f"git {words[0]}", (git_result.errors or git_result.output).strip()[-LONGEST_REASON:])
        return git_result.output.removesuffix("\n")

    async def ends(self, *words: str, values: Sequence[str] = (), given: str = "") -> GitResult:
        """Runs git, with `given` as its input, and returns its result even when git ends with an error. `values` are
        names and commits that others may have chosen, so they are passed such that git takes none as an option."""
        environment = _environment(self.folder, self.marks.get(MAIN_REPOSITORY, ""))
        program = find_program("git", self.folder, environment["PATH"])
        if program is None:
            raise UsageError("fleet.no_git")
        argv = (program, *QUIET, *words, *(("--end-of-options", *values) if values else ()))
        launch = Launch(argv, self.folder, {**environment, **self._pinned(), **self.marks})
        streams = await collect(launch, os.fsencode(given))
        return GitResult(streams.code, os.fsdecode(streams.out), os.fsdecode(streams.err))

    def _pinned(self) -> dict[str, str]:
        if self._place is None:
            return {}
        common_folder = self._place.parent.parent
        if _brings_programs(Repository(self.folder, self._place, common_folder)):
            raise GitFailed("git worktree", str(self._place / "config.worktree"))
        return {"GIT_DIR": str(self._place), "GIT_WORK_TREE": str(self.folder), "GIT_COMMON_DIR": str(common_folder)}

    async def names(self, *words: str, values: Sequence[str] = ()) -> tuple[str, ...]:
        """Runs git with `-z` and returns the names of files that it prints."""
        return tuple(name for name in (await self(*words, values=values)).split("\0") if name)

    async def diff(self, *commits: str, made: str = "") -> str:
        """Returns a diff that no setting of the repository can shape, so that no change can be hidden in it. `made` is
        a file that git does not know yet; it is shown as new."""
        words = ("--no-index", "--", "/dev/null", made) if made else ()
        git_result = await self.ends("diff", *WHOLE_DIFF, *words, values=commits)
        # Code 1 says that two files differ.
        if git_result.code > 1:
            raise GitFailed("git diff", git_result.errors.strip()[-LONGEST_REASON:])
        return "\n".join(map(_readable_part, FILES.split(git_result.output.removesuffix("\n"))))

    async def changed(self, *commits: str, within: Iterable[str] = ()) -> tuple[str, ...]:
        """Returns the names of the files that differ between the commits and match the pathspecs in `within`."""
        return await self.names("diff", "--name-only", "-z", *WHOLE_DIFF, values=[*commits, "--", *within])

    async def commit_of(self, name: str) -> str:
        """Returns the full id of the commit with this name, or an empty text where there is none."""
        git_result = await self.ends("rev-parse", "--verify", "--quiet", values=[f"{name}^{{commit}}"])
        return "" if git_result.code else git_result.output.strip()

    async def checked_out(self) -> str:
        """Returns the branch that is checked out, or an empty text where no branch is (a bare commit)."""
        git_result = await self.ends("symbolic-ref", "--quiet", "--short", "HEAD")
        return git_result.output.strip()

    async def checkout_of(self, branch: str) -> "Git | None":
        """Returns the worktree, or the main folder, in which this branch is checked out, or None. Commands can write
        into `.git/worktrees`, so a worktree counts only if it names this repository as its own."""
        folders: list[Path] = []
        for line in (await self("worktree", "list", "--porcelain")).split("\n"):
            if line.startswith("worktree "):
                folders.append(Path(line.removeprefix("worktree ")))
            elif line == f"branch refs/heads/{branch}":
                # Git lists the main folder first.
                git = Git(folders[0], self.marks) if len(folders) == 1 else await self.worktree_at(folders[-1])
                if git:
                    return git
        return None

    async def worktree_at(self, folder: Path) -> "Git | None":
        """Returns git for a worktree, if this repository and the folder name each other."""
        common_folder = Path(await self("rev-parse", "--path-format=absolute", "--git-common-dir")).resolve()
        repository = find_repository(folder.resolve())
        if repository is None or repository.common != common_folder or not points_back(repository):
            return None
        return Git(repository.top, self.marks, repository.folder)

    async def holds(self, older: str, newer: str) -> bool:
        """Says whether the older commit is part of the newer commit's history."""
        return not (await self.ends("merge-base", "--is-ancestor", values=[older, newer])).code

    async def move_branch(self, branch: str, commit: str, before: str) -> None:
        """Moves a branch, if it still points to the commit `before`; an empty `before` means that it must not exist
        yet."""
        ref_values = [f"refs/heads/{branch}", commit, before or "0" * len(commit)]
        await self("update-ref", "-m", "duckflow fleet", values=ref_values)

    async def remove_branch(self, branch: str, before: str) -> bool:
        """Removes a branch if it still points to the commit `before`, and says whether it is gone."""
        return not (await self.ends("update-ref", "-d", values=[f"refs/heads/{branch}", before])).code

    async def add(self) -> None:
        """Stages all files but those that are ignored, listed in `spared`, or left behind by programs. Repositories
        within this one are left alone: git would read their own settings, which may name programs."""
        inner_repositories = [
            name for name in await self.names("ls-files", "-o", "--exclude-standard", "-z") if name.endswith("/")
        ]
        staged_rows = await self.names("ls-files", "--stage", "-z")
        inner_repositories += [row.partition("\t")[2] for row in staged_rows if row.startswith(REPOSITORY)]
        excluded_specs = [f":(top,exclude,literal){name.rstrip('/')}" for name in (*self.spared, *inner_repositories)]
        await self("add", "--all", "--", ":(top)", *pathspecs(LEFTOVERS, exclude=True), *excluded_specs)

    async def commit(self, message: str) -> str:
        """Commits the staged files, and returns the new commit, or the old one where nothing was staged."""
        if await self.commit_of("MERGE_HEAD") or (await self.ends("diff", "--cached", "--quiet")).code:
            await self(*await self._name(), "commit", "--quiet", "--no-verify", "--file=-", given=message)
        return await self("rev-parse", "HEAD")

    async def merge(self, commit: str) -> None:
        """Merges a commit into the files, and commits nothing; conflicts stay in the files."""
        await self.ends(*await self._name(), "merge", "--no-commit", "--no-ff", values=[commit])

    async def _name(self) -> tuple[str, ...]:
        """Returns options that name a committer if the user has set no name. Git demands a name even if it commits
        nothing."""
        email = (await self.ends("config", "user.email")).output.strip() or os.environ.get("GIT_COMMITTER_EMAIL")
        return () if email else NAMELESS

    async def restore(self) -> None:
        """Puts the folder back to its last commit; ignored files stay."""
        await self("reset", "--hard", "--quiet")
        await self("clean", "-fdq", *(f"--exclude=/{name}" for name in self.spared))

    async def unknown(self) -> tuple[str, ...]:
        """Returns the files and folders that are neither committed nor ignored."""
        return await self.names("ls-files", "-o", "--exclude-standard", "--directory", "-z")

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Guards an operation that must not run twice at once in one repository. Other processes wait, too."""
        async with alone_in(Path(await self("rev-parse", "--path-format=absolute", "--git-common-dir"))):
            yield


def _brings_programs(worktree: Repository) -> bool:
    """Says whether a worktree has settings that name programs, beside those of its repository."""
    try:
        known_settings = {*replace(worktree, folder=worktree.common).settings()}
        return not all(is_harmless(*setting) for setting in worktree.settings() if setting not in known_settings)
    except (OSError, ValueError):
        return True


@contextlib.asynccontextmanager
async def alone_in(folder: Path) -> AsyncGenerator[None]:
    """Waits until no other process holds the lock in this folder, then holds it."""
    import fcntl

    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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


def _readable_part(text: str) -> str:
    """Returns one file's part of a diff. A file that is not text is only named, without its lines."""
    header, _, lines = text.partition("\n@@ ")
    if len(ODD.findall(lines)) <= MOST_ODD * len(lines):
        return text
    return header.partition("\n--- ")[0] + "\nBinary files differ"


def pathspecs(patterns: Iterable[str], exclude: bool = False) -> tuple[str, ...]:
    """Turns patterns as people write them, from the top of the repository, into pathspecs: `src` means everything in
    it, `*.py` the files at the top, `**/*.py` also those in folders."""
    magic_words = "top,exclude,glob" if exclude else "top,glob"
    return tuple(f":({magic_words}){pattern.removeprefix('./').rstrip('/')}" for pattern in patterns)


def copy_exactly(source: Path, name: str, target: Path) -> None:
    """Copies a file or a link of the folder `source` with its mode and times. It raises an OSError or a PathRefused
    where a link lies on the way: a command that still runs may swap a folder for a link."""
    top = source.resolve()
    folder = hold(top.parent, (top / name).parent)
    try:
        last_name = Path(name).name
        file_stat = os.stat(last_name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(file_stat.st_mode):
            target.symlink_to(os.readlink(last_name, dir_fd=folder))
            return
        with os.fdopen(open_regular(folder, last_name), "rb") as file, target.open("xb") as copied_file:
            shutil.copyfileobj(file, copied_file)
        target.chmod(stat.S_IMODE(file_stat.st_mode))
        os.utime(target, ns=(file_stat.st_atime_ns, file_stat.st_mtime_ns))
    finally:
        os.close(folder)


def _environment(folder: Path, repository: str) -> dict[str, str]:
    """Returns the environment without the variables that would lead git to another repository."""
    outer_variables = environment_outside(folder, repository)
    variables = {name: value for name, value in outer_variables.items() if not name.startswith(ELSEWHERE)}
    # Commits and files are taken for what they are, not for what a repository would have shown in their place.
    own_variables = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
    return variables | own_variables | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}

"""Clones of repositories that tasks name by their address: made once on each machine, and brought up to date."""

import hashlib
import re
from pathlib import Path

from duckflow.errors import UsageError
from duckflow.safety.git import Git, GitFailed, alone_in

ADDRESS = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")


def is_address(repository: str) -> bool:
    return ADDRESS.fullmatch(repository) is not None


def clone_place(address: str, clones: Path) -> Path:
    """Two addresses that end with the same name have places of their own."""
    name = re.sub(r"[^\w.-]", "-", address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2])
    return clones / f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


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
                await Git(clones)("clone", "--quiet", "--no-checkout", "--", address, str(place))
                # No branch is checked out, so that each can be moved.
                await git("update-ref", "--no-deref", "HEAD", await git("rev-parse", "HEAD"))
            # The remote chooses the name: without what stands before it, git could take it for an option.
            if name := await default_branch(git):
                await git.ends("fetch", "--quiet", "origin", f"refs/heads/{name}:refs/heads/{name}")
    except GitFailed as problem:
        raise UsageError("fleet.no_clone", address=address, reason=str(problem.values["reason"])) from None
    return place


async def default_branch(git: Git) -> str:
    """The branch that the remote names first; nothing where it names none."""
    done = await git.ends("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    return done.output.strip().partition("/")[2]

"""Cleans up after fleets in a repository: removes branches that nobody needs, and worktrees whose worker has died."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.fleet.engine import OVER, AttemptState, TaskState
from duckflow.fleet.task import BRANCHES, AttemptOrder
from duckflow.fleet.worktree import MERGING, message_of, place_of, remove_worktree
from duckflow.safety.git import Git
from duckflow.state.data import Phrase, say

OWN = f"refs/heads/{BRANCHES}"


class Leftover(NamedTuple):
    """A branch or a worktree that can be removed. A branch is removed only while it is at `commit`."""

    repository: Path
    branch: str = ""
    commit: str = ""
    folder: Path | None = None


class Leftovers(NamedTuple):
    """The leftovers that can be removed, and for each branch that stays the reason."""

    found: list[Leftover]
    kept: list[Phrase]


class RepositoryCleaner:
    """Finds and removes leftovers in one repository of this machine."""

    def __init__(self, repository: Path, worktrees: Path) -> None:
        self._git = Git(repository)
        self._worktrees = worktrees

    async def look(self, task: TaskState, attempts: Sequence[AttemptState]) -> Leftovers:
        """Returns the leftovers of one task. While attempts of the task run, or one of them has still to be picked,
        nothing of the task is a leftover."""
        leftovers = Leftovers([], [])
        if task.state not in (*OVER, "done"):
            return leftovers
        for attempt in attempts:
            order = AttemptOrder(fleet=task.fleet, task=task.task, number=attempt.number)
            is_picked = task.picked == attempt.number
            if is_picked and task.state != "merged":
                if await self._git.commit_of(f"refs/heads/{order.branch}"):
                    leftovers.kept.append(say("fleet.clean.unmerged", branch=order.branch, task=task.task.name))
                continue
            for name in (order.attempt_id, order.attempt_id + MERGING):
                if (folder := place_of(self._worktrees, self._git.folder, name)).exists():
                    leftovers.found.append(Leftover(self._git.folder, folder=folder))
            if commit := await self._git.commit_of(f"refs/heads/{order.branch}"):
                if reason := await self._against(order, attempt, commit, is_picked):
                    leftovers.kept.append(say(f"fleet.clean.{reason}", branch=order.branch))
                else:
                    leftovers.found.append(Leftover(self._git.folder, order.branch, commit))
        return leftovers

    async def remove(self, leftover: Leftover) -> bool:
        """Removes a leftover and says whether it is gone. A branch that somebody has changed meanwhile stays."""
        if leftover.folder:
            await remove_worktree(self._git, leftover.folder)
            with contextlib.suppress(OSError):
                await asyncio.to_thread(leftover.folder.parent.rmdir)
            return not leftover.folder.exists()
        if await self._git.checkout_of(leftover.branch):
            return False
        return await self._git.remove_branch(leftover.branch, leftover.commit)

    async def _against(self, order: AttemptOrder, attempt: AttemptState, commit: str, picked: bool) -> str:
        """Returns the reason not to remove a branch, or an empty text."""
        if await self._git.checkout_of(order.branch):
            return "checked_out"
        if picked:
            holding_refs = await self._git("for-each-ref", f"--contains={commit}", "--format=%(refname)", "refs/heads")
            return "" if any(not name.startswith(OWN) for name in holding_refs.split("\n") if name) else "nowhere_else"
        if attempt.report:
            return "" if attempt.report.commit == commit else "moved"
        # The attempt has no report. A commit by its worker is known by its message; any other commit is somebody
        # else's.
        message = await self._git("log", "-1", "--format=%B", values=[commit])
        is_own_commit = attempt.goes and (commit == order.task.base or message.strip() == message_of(order).strip())
        return "" if is_own_commit else "moved"

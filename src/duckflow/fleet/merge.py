"""Merges attempts onto the user's branch, one after the other. Each attempt is merged and checked in its own worktree
before the branch moves forward. Uncommitted work of the user is never touched."""

import os
import posixpath
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.errors import DuckflowError, UsageError
from duckflow.fleet.attempt import Workshop, marks_of
from duckflow.fleet.task import AttemptReport, CheckResult
from duckflow.fleet.worktree import (
    MERGING,
    add_worktree,
    bring_ignored,
    conflicts_in,
    message_of,
    place_of,
    remove_worktree,
)
from duckflow.safety.files import read_plain
from duckflow.safety.git import Git
from duckflow.safety.path_names import shown
from duckflow.safety.risk import names_of_git, runs_later
from duckflow.state.data import Phrase, said, say

LONGEST_NAME = 10_000
TRIES = 3
"""The most tries of a merge when the user's branch keeps moving meanwhile."""

LINK = "120000"

MergeOutcome = Literal["merged", "already", "conflict", "checks", "refused"]


class MergeResult(NamedTuple):
    """The result of a merge. After a conflict or failing checks on the merged state, the attempt can be asked to
    resolve the problem: `head` is the commit that the attempt must be reconciled with."""

    outcome: MergeOutcome
    head: str = ""
    commit: str = ""
    why: Phrase | None = None
    brings: tuple[str, ...] = ()
    """Merged files that make programs run later, and links that lead out of the repository."""

    @property
    def can_be_mended(self) -> bool:
        return self.outcome in ("conflict", "checks")


async def merge(report: AttemptReport, workshop: Workshop) -> MergeResult:
    """Merges an attempt onto the branch that was checked out when the fleet was started, and onto no other branch."""
    try:
        workshop.admit(Path(report.order.task.repository))
        main_git = Git(Path(report.order.task.repository), marks_of(report.order))
        for _ in range(TRIES):
            merge_result = await _merge_once(report, workshop, main_git)
            if merge_result is not None:
                return merge_result
    except DuckflowError as problem:
        return MergeResult("refused", why=said(problem))
    return MergeResult("refused", why=say("fleet.merge.moves", branch=report.order.task.onto))


async def _merge_once(report: AttemptReport, workshop: Workshop, main: Git) -> MergeResult | None:
    task = report.order.task
    head_commit = await _head(report, main)
    if await main.holds(report.commit, head_commit):
        return MergeResult("already", head_commit, head_commit)
    folder = place_of(workshop.worktrees, main.folder, report.order.attempt_id + MERGING)
    await remove_worktree(main, folder)
    git = await add_worktree(main, folder, head_commit)
    try:
        await git.merge(report.commit)
        if files := await conflicts_in(git):
            return MergeResult("conflict", head_commit, why=say("fleet.merge.conflict", files=", ".join(files)))
        commit = await git.commit(f"Merge {report.branch}\n\n{message_of(report.order)}")
        if not await git.holds(report.commit, commit):
            return MergeResult("refused", head_commit, why=say("fleet.merge.nothing", branch=report.branch))
        if failing_checks := await _failing(report, workshop, main, folder):
            check_outputs = "\n".join(f"$ {check.command}\n{check.output}" for check in failing_checks)
            return MergeResult("checks", head_commit, why=say("fleet.merge.checks", output=check_outputs))
        merge_result = await _move_forward(main, task.onto, head_commit, commit)
        return merge_result._replace(brings=await _brought(git, head_commit, commit)) if merge_result else None
    finally:
        await remove_worktree(main, folder)


async def _brought(git: Git, head: str, commit: str) -> tuple[str, ...]:
    lines: list[str] = []
    changes = await git.names("diff", "--raw", "-z", "--no-renames", "--no-abbrev", values=[head, commit])
    for change_fields, path in zip(changes[::2], changes[1::2], strict=True):
        _, mode, _, content, change = change_fields.removeprefix(":").split()
        if change == "D":
            continue
        if mode == LINK and _leads_out(path, link_target := await git("cat-file", "blob", values=[content])):
            lines.append(f"{path} → {link_target}")
        elif runs_later(path, is_new=change == "A"):
            lines.append(path)
    return tuple(map(shown, lines))


def _leads_out(path: str, target: str) -> bool:
    """Says whether a link's target leads out of the repository. Links on the way to it are reported separately."""
    target_path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return target_path.startswith(("/", "../")) or target_path == ".." or names_of_git(target_path)


async def _head(report: AttemptReport, main: Git) -> str:
    """Returns the head of the user's branch, if the attempt was made for this branch and its base is still in it."""
    task = report.order.task
    if not task.onto:
        raise UsageError("fleet.merge.no_branch")
    head_commit = await main.commit_of(f"refs/heads/{task.onto}")
    if not head_commit:
        raise UsageError("fleet.merge.gone", branch=task.onto)
    if not await main.commit_of(report.commit):
        raise UsageError("fleet.merge.elsewhere", branch=report.branch, repository=str(main.folder))
    if task.after and not await main.holds(task.base, head_commit):
        raise UsageError("fleet.merge.after", branch=task.onto, base=task.base[:12], task=task.after[0])
    if not await main.holds(task.base, head_commit) or not await main.holds(task.base, report.commit):
        raise UsageError("fleet.merge.base", branch=task.onto, base=task.base[:12])
    return head_commit


async def _failing(report: AttemptReport, workshop: Workshop, main: Git, folder: Path) -> list[CheckResult]:
    """Returns the checks that fail. A failed set-up counts as a failing check."""
    order = report.order
    if not order.task.checks:
        return []
    await bring_ignored(order.task, main, folder, lambda phrase: None)
    if order.task.setup and (setup_result := await workshop.run(order, folder, order.task.setup, True)).code:
        return [setup_result]
    checks = [await workshop.run(order, folder, command, False) for command in order.task.checks]
    return [check for check in checks if check.code]


async def _move_forward(main: Git, branch: str, head: str, commit: str) -> MergeResult | None:
    """Moves the branch to the commit. Where the branch is checked out, its files change too; git itself refuses to
    touch uncommitted work. Returns None when somebody has committed meanwhile."""
    checkout = await main.checkout_of(branch)
    if checkout is None:
        if await _being_rebased(main, branch):
            return MergeResult("refused", head, why=say("fleet.merge.rebase", branch=branch))
        if await main.commit_of(f"refs/heads/{branch}") != head:
            return None
        await main.move_branch(branch, commit, head)
        return MergeResult("merged", head, commit)
    merge_run = await checkout.ends("merge", "--ff-only", "--no-overwrite-ignore", "--quiet", values=[commit])
    if merge_run.code == 0:
        return MergeResult("merged", head, commit)
    if await main.commit_of(f"refs/heads/{branch}") != head:
        return None
    files = [line.strip() for line in merge_run.errors.split("\n") if line.startswith("\t")]
    reason = ", ".join(files) or merge_run.errors.strip()
    return MergeResult("refused", head, why=say("fleet.merge.in_the_way", files=reason, folder=str(checkout.folder)))


async def _being_rebased(main: Git, branch: str) -> bool:
    """Says whether the branch is being rebased. It is then checked out nowhere, and the rebase would undo our move."""
    git_folder = Path(await main("rev-parse", "--absolute-git-dir"))
    for rebase_folder in ("rebase-merge", "rebase-apply"):
        file = git_folder / rebase_folder / "head-name"
        if file.is_file() and os.fsdecode(read_plain(file, LONGEST_NAME, cut=True)).strip() == f"refs/heads/{branch}":
            return True
    return False

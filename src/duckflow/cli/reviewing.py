"""The reviews of a conversation, built when the first one is wanted, and the changes that a user may have reviewed."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from duckflow.agent.session import Session
from duckflow.cli.code_sense import CodeSense
from duckflow.cli.sandboxes import Sandboxes
from duckflow.errors import DuckflowError, UsageError
from duckflow.proof.settings import ProofSettings
from duckflow.review.change import ReviewedChange, between, checked_out, lies_there, patched, uncommitted
from duckflow.review.current_review import CurrentReview
from duckflow.review.report import ReviewResult, WitnessRunner
from duckflow.safety.git import Git
from duckflow.safety.workspace import Workspace
from duckflow.store.paths import Paths
from duckflow.tools.toolbox import Toolbox
from duckflow.work.sub_agents import SubAgents

STDIN = "-"


def current_review(
    session: Session,
    toolbox: Toolbox,
    workspace: Workspace,
    sandboxes: Sandboxes,
    settings: ProofSettings,
    code: CodeSense,
) -> CurrentReview:
    witness_runner = WitnessRunner(sandboxes.find, sandboxes.launch, settings)
    return CurrentReview(session.state, session.emit, toolbox, workspace, witness_runner, lambda: code.mapped)


@asynccontextmanager
async def wanted_change(folder: Path, wanted: str, piped: str = "") -> AsyncGenerator[tuple[Path, ReviewedChange]]:
    """Finds the change in a range of commits, in a diff on stdin, or in the uncommitted work. Yields it with the folder
    that has its files: the user's own, or one that exists only during the review. Git runs outside the sandbox."""
    from duckflow.cli.fleet_workshop import require_harmless

    require_harmless(Paths.of_user(), folder)
    git = Git(folder)
    if wanted == STDIN:
        async with patched(folder, piped) as folder_and_change:
            yield folder_and_change
    elif not wanted:
        yield folder, _require_some(await uncommitted(git))
    else:
        change, end_commit = await between(git, wanted)
        if await lies_there(git, end_commit):
            yield folder, _require_some(change)
            return
        async with checked_out(git, end_commit) as tree:
            yield tree, _require_some(change)


def _require_some(change: ReviewedChange) -> ReviewedChange:
    if not change.diff.strip():
        raise UsageError("review.no_change")
    return change


class ChatReviews:
    """Carries out `/review` of the session's latest work, of uncommitted work, or of a range that ends at HEAD."""

    def __init__(self, folder: Path, reviewers: Callable[[], SubAgents], admit: Callable[[], Awaitable[bool]]) -> None:
        self._folder = folder
        self._reviewers = reviewers
        self._admit = admit

    async def __call__(self, wanted: str) -> ReviewResult:
        if not await self._admit():
            raise UsageError("review.refused")
        reviewers = self._reviewers()
        if not wanted and (change := await reviewers.latest()).diff:
            return await reviewers.review(change)
        async with wanted_change(self._folder, wanted) as (change_folder, change):
            if change_folder != self._folder:
                raise DuckflowError("review.elsewhere", range=wanted)
            return await reviewers.review(change)

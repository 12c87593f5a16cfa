"""Carries out an attempt at a task: makes a worktree, runs a Duckflow process in it, checks, commits and reports."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from duckflow.clock import PausableTimeout
from duckflow.errors import DuckflowError
from duckflow.fleet.host import MARK, Host, HostCall, granting
from duckflow.fleet.ranking import AttemptReview
from duckflow.fleet.talk import AttemptTalk, TurnResult
from duckflow.fleet.task import AttemptOrder, AttemptOutcome, AttemptPort, AttemptReport, CheckResult, FleetTask
from duckflow.fleet.worktree import Worktree, bring_clone, conflicts_in, open_worktree
from duckflow.i18n.words import Words
from duckflow.programs.find import MAIN_REPOSITORY
from duckflow.safety.files import read_plain
from duckflow.safety.secrets import SECRETS, secret_parts
from duckflow.state.data import Phrase, said, say

LARGEST_MARKED = 50_000_000
MENDS = 1
"""The most times that an attempt is told about failing checks."""
ANSWERS = 5
"""The most questions of the model that are put to a person."""
OUTPUT_TOLD = 3000

RunCommand = Callable[[AttemptOrder, Path, str, bool], Awaitable[CheckResult]]
"""A function that runs a command in the sandbox in this folder. The last argument says whether the command may use the
network."""


class Workshop(NamedTuple):
    """The things that an attempt needs from its machine."""

    worktrees: Path
    admit: Callable[[Path], None]
    """Refuses a repository whose own settings make git run programs, unless the user trusts it."""
    secrets: Callable[[FleetTask], dict[str, str]]
    """Returns the environment variables that the task names. Refuses missing variables, values that cannot be masked,
    and keys of models."""
    call: Callable[[FleetTask, Path, Mapping[str, str]], HostCall]
    """Returns the command that starts a Duckflow process in this folder, with these environment variables."""
    run: RunCommand
    review: Callable[[AttemptReport, Path, str, Mapping[str, str]], Awaitable[AttemptReview | None]]
    """Reviews a diff in this folder, with these environment variables."""
    words: Words


def marks_of(order: AttemptOrder) -> dict[str, str]:
    """Returns environment variables that mark all processes of an attempt, to find them when their worker is dead, and
    name the repository."""
    return {MARK: order.attempt_id, MAIN_REPOSITORY: order.task.repository}


async def carry_out(workshop: Workshop, order: AttemptOrder, link: AttemptPort) -> AttemptReport:
    """Carries out an attempt. When cancelled, ends all its processes and leaves the work so far on its branch."""
    return await Attempt(order, link, workshop).run()


class Attempt:
    """One attempt at a task, carried out once."""

    def __init__(self, order: AttemptOrder, link: AttemptPort, workshop: Workshop) -> None:
        self._order = order
        self._task = order.task
        self._link = link
        self._workshop = workshop
        self._words = workshop.words
        self._began = time.monotonic()
        self._waited = 0.0
        self._marks = marks_of(order) | {SECRETS: ",".join(order.task.secrets)}
        self._report = AttemptReport(order=order, outcome="failed")
        self._secrets: tuple[str, ...] = ()

    async def run(self) -> AttemptReport:
        """Carries the attempt out. Failures are written into the report, not raised."""
        worktree: Worktree | None = None
        try:
            self._link.progress("setup")
            if self._task.remote:
                await bring_clone(self._task.remote, Path(self._task.repository).parent)
            self._workshop.admit(Path(self._task.repository))
            self._secrets = secret_parts(self._workshop.secrets(self._task).values())
            worktree = await open_worktree(self._order, self._workshop.worktrees, marks_of(self._order), self._note)
            outcome, reason = await self._work(worktree)
        except DuckflowError as problem:
            outcome, reason = "failed", said(problem)
        except asyncio.CancelledError:
            if worktree is None:
                raise
            outcome, reason = "cancelled", None
        if worktree:
            # The shield keeps a second cancellation from leaving the worktree half closed.
            reason = await asyncio.shield(self._close(worktree)) or reason
        if outcome == "done" and reason:
            outcome = "failed"
        report = self._report.model_copy(
            update={"outcome": outcome, "open": reason, "seconds": round(self._seconds(), 1)}
        )
        if worktree and self._order.mend and not report.passed:
            await worktree.put_branch_back(self._order)
        return report

    def _seconds(self) -> float:
        """Returns the seconds that the attempt has worked, without those in which it waited for a person."""
        return time.monotonic() - self._began - self._waited

    async def _work(self, worktree: Worktree) -> tuple[AttemptOutcome, Phrase | None]:
        timeout = asyncio.timeout(self._task.minutes * 60)
        clock = PausableTimeout(timeout)
        async with granting(self._link, clock) as address_marks:
            self._marks |= address_marks
            try:
                async with timeout:
                    result = await self._talk(worktree, await self._prepare(worktree), clock)
            except TimeoutError:
                return "budget", say("fleet.too_long", minutes=self._task.minutes)
            if not result.fine:
                return "budget" if result.outcome == "budget" else "failed", result.why or say("fleet.stopped")
            return "done", await self._judge(worktree)

    async def _talk(self, worktree: Worktree, prompt: str, clock: PausableTimeout) -> TurnResult:
        call = self._workshop.call(self._task, worktree.folder, self._marks)
        host = await Host.open(call, worktree.folder, self._marks)
        self._update(session_id=call.session_id)
        self._note(say("fleet.note.session", session=call.session_id))
        attempt_talk = AttemptTalk(host.conversation, self._order, self._link, self._words, clock)
        try:
            return await self._lead(attempt_talk, prompt, worktree)
        finally:
            state = host.conversation.state
            self._update(
                evidence=tuple(evidence.text for evidence in state.evidence if evidence.ok),
                proof=state.proof.verdict if state.proof else None,
            )
            await attempt_talk.close()
            self._waited = clock.stood
            await host.end()

    async def _prepare(self, worktree: Worktree) -> str:
        """Runs the set-up command in the worktree, and returns the prompt for the model."""
        task = self._task
        await worktree.furnish(task, self._note)
        if task.setup:
            setup_result = await self._workshop.run(self._order, worktree.folder, task.setup, True)
            if setup_result.code:
                raise DuckflowError(
                    "fleet.setup_failed", command=task.setup, code=setup_result.code, output=setup_result.output
                )
            await worktree.spare()
        sections = [self._words("fleet.prompt")]
        sections += [self._words("fleet.prompt_checks", checks="\n".join(task.checks))] if task.checks else []
        sections += [self._words("fleet.prompt_secrets", names=", ".join(task.secrets))] if task.secrets else []
        sections += [self._words("fleet.prompt_touch", files=", ".join(task.may_touch))] if task.may_touch else []
        sections += [self._words("fleet.prompt_go_on", base=task.base)] if self._order.go > 1 else []
        if self._order.mend:
            await worktree.git.merge(self._order.mend)
            if files := await conflicts_in(worktree.git):
                sections += [self._words("fleet.prompt_conflict", files=", ".join(files))]
            else:
                await self._commit(worktree)
                failing_checks = [check for check in await self._check(worktree) if check.code]
                sections += [self._failing(failing_checks)] if failing_checks else [self._words("fleet.prompt_merged")]
        return "\n\n".join([task.prompt.strip(), *sections])

    async def _lead(self, talk: AttemptTalk, prompt: str, worktree: Worktree) -> TurnResult:
        """Talks to the model until the checks pass, or questions and retries are used up."""
        mends_left, answers = MENDS, ANSWERS
        while True:
            turn_result = await talk.say(prompt)
            self._update(said=talk.said)
            if not turn_result.fine:
                return turn_result
            self._link.progress("checks")
            commit = await self._commit(worktree)
            checks = await self._check(worktree) if commit else ()
            await worktree.git.restore()
            failing_checks = [check for check in checks if check.code]
            if commit and checks and not failing_checks:
                return turn_result
            if turn_result.question and answers:
                answers -= 1
                prompt = await talk.ask(turn_result.question)
            elif failing_checks and mends_left:
                mends_left -= 1
                prompt = self._failing(failing_checks)
            else:
                return turn_result

    def _failing(self, checks: list[CheckResult]) -> str:
        results = (f"$ {check.command}\n{check.output[-OUTPUT_TOLD:]}\n(exit code {check.code})" for check in checks)
        return self._words("fleet.prompt_failing", checks="\n\n".join(results))

    async def _commit(self, worktree: Worktree) -> str:
        unresolved_files = [name for name in await conflicts_in(worktree.git) if _marked(worktree.folder / name)]
        if unresolved_files:
            raise DuckflowError("fleet.conflict_left", files=", ".join(unresolved_files))
        commit = await worktree.commit(self._order)
        self._update(
            commit=commit,
            branch=self._order.branch if commit else "",
            files=await worktree.changes(commit) if commit else (),
            touched_outside=await worktree.outside(commit, self._task.may_touch) if commit else (),
        )
        return commit

    async def _check(self, worktree: Worktree) -> tuple[CheckResult, ...]:
        checks: list[CheckResult] = []
        for command in self._task.checks:
            checks.append(await self._workshop.run(self._order, worktree.folder, command, False))
            self._note(say("fleet.note.check", command=command, code=checks[-1].code))
        self._update(checks=tuple(checks))
        return tuple(checks)

    async def _judge(self, worktree: Worktree) -> Phrase | None:
        """Returns the reason why the attempt is not done, or None if it is done. If the task has several attempts, a
        review rates this one too."""
        report = self._report
        if not report.commit:
            return say("fleet.nothing_changed")
        if files := await worktree.secrets_in(report.commit, self._secrets):
            return say("fleet.secret_written", files=", ".join(files))
        if failing_commands := [check.command for check in report.checks if check.code]:
            return say("fleet.checks_failed", checks=", ".join(failing_commands))
        if report.touched_outside:
            return say("fleet.touched_outside", files=", ".join(report.touched_outside))
        if self._task.attempts > 1:
            self._link.progress("review")
            diff = await worktree.diff(report.commit)
            if review := await self._workshop.review(report, worktree.folder, diff, self._marks):
                self._update(rating=review.rating, findings=review.findings)
                self._note(say("fleet.note.review", rating=review.rating, findings="; ".join(review.findings) or "–"))
            else:
                self._note(say("fleet.note.no_review"))
        return None

    async def _close(self, worktree: Worktree) -> Phrase | None:
        """Commits the work to the branch and removes the worktree. A branch without work is removed."""
        problem: Phrase | None = None
        try:
            if not self._report.commit and not self._order.mend:
                await self._commit(worktree)
        except DuckflowError as failed:
            problem = said(failed)
        await worktree.remove()
        if not self._report.commit and not problem and not self._order.mend:
            await worktree.drop_branch(self._order)
        return problem

    def _update(self, **values: object) -> None:
        self._report = self._report.model_copy(update=values)

    def _note(self, what: Phrase) -> None:
        self._link.note(self._words.phrase(what))


def _marked(path: Path) -> bool:
    """Says whether the file still has conflict markers."""
    try:
        lines = read_plain(path, LARGEST_MARKED, follow=False, cut=True).split(b"\n")
    except OSError:
        return False
    return any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in lines)

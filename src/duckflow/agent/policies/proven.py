"""Checks the claim that a turn is done: the tests that the turn changed are run on the code from before the turn, and
the model's claims are compared with the record of what happened."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from duckflow.agent.actor import Actor
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Checks, Ending, Loop, Policy, TurnSoFar
from duckflow.agent.proof_runner import ProofRunner
from duckflow.agent.session import StateOwner
from duckflow.agent.undo import hunks_in
from duckflow.events.types import ProofTried, Waiting
from duckflow.prompts.layers import record_line
from duckflow.state.action import evidence_of, succeeded
from duckflow.state.agent import AgentState
from duckflow.state.changes import UndoScope
from duckflow.state.checks import Proof, UnaskedChange, belongs_to_tests, is_code
from duckflow.state.data import say

if TYPE_CHECKING:
    from duckflow.proof.trial import TestsInQuestion
    from duckflow.safety.undo.facts import FileVersions

NAMED = 10
MOST_UNASKED = 50
SHOWN_FILES = 8
DIAGNOSTICS = "diagnostics"
NOT_RUN = "proof.not_passed"


class ProveByTrial(Policy):
    """Tries the tests that a turn has changed, once the model says that the turn is done."""

    def __init__(self, owner: StateOwner, actor: Actor, runner: ProofRunner) -> None:
        self._owner = owner
        self._actor = actor
        self._runner = runner
        self._told = set[str]()
        """The kinds of tests that the model was told about in this turn."""
        self._tried: tuple[list[FileVersions], Proof] | None = None
        self._waiting = 0
        """The first turn that added tests which have not been run yet; 0 if there is none."""

    async def opening(self, turn: TurnSoFar) -> None:
        self._told, self._tried = set[str](), None

    async def after(self, turn: TurnSoFar) -> str | None:
        """Tries the tests before the work ends, while the model can still mend them."""
        if not turn.ending or turn.ending.outcome != "done":
            return None
        proof = await self._proof(turn)
        without_proof = _without_proof(proof, self._tried[0] if self._tried else []) if proof else {}
        kind = next(iter(without_proof), "").partition("_new")[0]
        if not proof or not kind or kind in self._told:
            return None
        self._told.add(kind)
        self._owner.emit(ProofTried(proof=proof))
        notes = [turn.note(key, tests=", ".join(tests[:NAMED])) for key, tests in without_proof.items()]
        return " ".join((*notes, turn.note(f"{kind}_next")))

    async def ending(self, turn: TurnSoFar, ending: Ending) -> None:
        """Reports the proof at the end of a turn, after all other policies."""
        if ending.well and (proof := await self._proof(turn)):
            self._owner.emit(ProofTried(proof=proof))
            was_not_run = proof.why is not None and proof.why.key == NOT_RUN
            self._waiting = (self._waiting or turn.state.turn) if was_not_run else 0

    async def _proof(self, turn: TurnSoFar) -> Proof | None:
        is_proof_owed = turn.state.changed_in_turn or (self._waiting and _passing_command(turn))
        if not self._runner.settings.enabled or not is_proof_owed or turn.checks().failed:
            return None
        changes = await self._runner.undo.changes(UndoScope(turn=turn.state.turn))
        if self._tried is None or self._tried[0] != changes:
            changes_to_try = (
                await self._runner.undo.changes(UndoScope(since=self._waiting)) if self._waiting else changes
            )
            questions = _questions_of(changes_to_try)
            proof = await self._try(turn, questions) if questions else Proof()
            unreached = await self._unreached(Path(turn.state.folder), changes)
            unasked_changes = await asyncio.to_thread(_unasked, turn, changes)
            self._tried = changes, proof.model_copy(update={"unreached": unreached, "unasked": unasked_changes})
        proof = self._tried[1]
        return proof if proof.parts() else None

    async def _unreached(self, folder: Path, changes: "list[FileVersions]") -> tuple[str, ...]:
        """Returns the new names and keys of a change that nothing else in the folder mentions."""
        from duckflow.proof.reach import new_names, texts_of, unreached

        names = new_names(changes)
        if not names:
            return ()
        try:
            texts = await asyncio.to_thread(texts_of, folder, self._runner.settings.reach_seconds)
        except OSError:
            return ()
        return unreached(names, texts) if texts is not None else ()

    async def _try(self, turn: TurnSoFar, questions: "TestsInQuestion") -> Proof:
        command = _passing_command(turn)
        if not command and any(run.report.in_doubt for run in turn.state.check_runs):
            # The tests were run, but in doubt: the line about the checks already says so.
            return Proof()
        if not command:
            return Proof(untold=questions.names("tried"), why=say(NOT_RUN))
        self._owner.emit(Waiting(why=say("wait.proof", seconds=round(self._runner.settings.seconds))))
        try:
            return await self._runner.tests(questions, command)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._actor.inner or task is None:
                raise
            # The user does not want to wait for the proof: the work itself is over.
            task.uncancel()
            return Proof(untold=questions.names("tried"), why=say("proof.skipped"))


class ReviewByRecord(Policy):
    """The last policy of a turn: ends the work, or starts one loop of review, in which the model gets the record of
    what happened."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._reviewed = False

    async def opening(self, turn: TurnSoFar) -> None:
        self._reviewed = False

    async def after(self, turn: TurnSoFar) -> str | None:
        loop = turn.last
        if turn.ending and turn.ending.outcome == "done":
            return self._closed(turn, turn.checks())
        return turn.note("fault_when_tried", fault=loop.fault) if loop.fault and not turn.ending else None

    async def ending(self, turn: TurnSoFar, ending: Ending) -> None:
        if not ending.well:
            return
        self._phases.tell_checks(turn.ran_commands(), owed=ending.outcome == "done" and turn.owes_work())

    def _closed(self, turn: TurnSoFar, checks: Checks) -> str | None:
        """Returns None when the work is over; otherwise a note that tells the model what to look at first."""
        is_reviewed = self._reviewed or bool(turn.doubt)
        if self._phases.finish(checks.failed or turn.doubt, is_reviewed, checks.unmade, checks.wanted):
            return None
        self._reviewed = True
        return _for_review(turn, checks)


def _for_review(turn: TurnSoFar, checks: Checks) -> str:
    """Returns the note for a review: why there is one, and what the record shows."""
    state = turn.state
    why = turn.note("check_failed" if checks.by_command else "not_all_succeeded", check=checks.failed)
    record_text = record_line(state, SHOWN_FILES, lambda path: (Path(state.folder) / path).exists())
    return turn.note("review_due", why=why, record=record_text)


def _questions_of(changes: "list[FileVersions]") -> "TestsInQuestion | None":
    """Returns the tests of a change that are to be tried. If the change touches no test, the module that tries tests is
    not loaded."""
    if not any(belongs_to_tests(change.path) for change in changes):
        return None
    from duckflow.proof.trial import questions_of

    return questions_of(changes)


def _without_proof(proof: Proof, changes: "list[FileVersions]") -> dict[str, tuple[str, ...]]:
    """Returns the keys of the notes about tests that do not prove the change, each with the tests that it names; none
    if all is well. If the turn changed no code, tests of existing code were what the user wanted."""
    if proof.hollow:
        hollow = proof.by_run_before(proof.hollow)
        groups = {"proof_hollow": hollow.passed, "proof_hollow_new": (*hollow.absent, *hollow.other)}
        return {key: tests for key, tests in groups.items() if tests}
    passing_tests = proof.by_run_before(proof.guarding).passed
    if proof.verdict == "guards" and passing_tests and any(is_code(change.path) for change in changes):
        return {"proof_guards": passing_tests}
    return {}


def _passing_command(turn: TurnSoFar) -> str:
    """Returns the last command of the turn that ran tests which passed, even if an agent has run it."""
    evidence = [evidence_of(result) for loop in turn.loops for result in loop.done.results]
    test_runs = [run for run in (*turn.state.evidence, *evidence) if run and run.check and run.check.kind == "tests"]
    return next((run.command for run in reversed(test_runs) if run.check and run.check.ok), "")


def _unasked(turn: TurnSoFar, changes: "list[FileVersions]") -> tuple[UnaskedChange, ...]:
    """Returns the hunks of the turn that belong to nothing that the user asked for."""
    hunks = hunks_in(turn.state.turn, "", changes)
    if len(hunks) < 2:
        # A change in one place is compared with itself alone, and so always belongs to the request.
        return ()
    from duckflow.proof.asked import ChangingCall, Record, unasked

    results = {result.action_id: result for loop in turn.loops for result in loop.done.results}
    calls = [
        ChangingCall(result.changed, "\n".join(_texts(action.args)), action.why or _rationale(loop))
        for loop in turn.loops
        for action in loop.decision.actions
        if (result := results.get(action.action_id)) and result.effect == "write"
    ]
    state = turn.state
    requests = [message for message in state.messages if message.role == "user" and not message.job]
    plan = [f"{plan.name}\n{step.text}" for plan in state.plans.values() for step in plan.steps]
    request = "\n".join((turn.request, turn.wish, *(message.text for message in requests), *_offered(state), *plan))
    failures = [result.for_model for result in results.values() if result.effect == "run" and not succeeded(result)]
    failures += [
        message.text for message in state.messages if message.operation == DIAGNOSTICS and message.turn == state.turn
    ]
    failures += [attachment.text for attachment in turn.attachments]
    return tuple(
        UnaskedChange(turn=hunk.turn, path=hunk.path, line=max(hunk.changed()[0][2:]), hunk_id=hunk.hunk_id)
        for hunk in unasked(changes, hunks, Record(request, calls, "\n".join(failures)))[:MOST_UNASKED]
    )


def _rationale(loop: Loop) -> str:
    return loop.decision.rationale if "rationale" in loop.decision.declared else ""


def _offered(state: AgentState) -> list[str]:
    """Returns what the model said last before the turn, because a short "yes" of the user refers to it."""
    replies = [
        message
        for message in state.messages
        if message.role == "assistant" and message.turn < state.turn and not message.job
    ]
    return [replies[-1].text, *(replies[-1].decision.said() if replies[-1].decision else ())] if replies else []


def _texts(value: object) -> Iterator[str]:
    """Yields all texts inside the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        container = cast("dict[str, object] | list[object]", value)
        for contained_value in container.values() if isinstance(container, dict) else container:
            yield from _texts(contained_value)

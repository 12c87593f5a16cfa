"""Keeps track of the phase of the work: moves that the model asks for, moves of the system itself, and the computed
review."""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from duckflow.agent.session import StateOwner
from duckflow.errors import UsageError
from duckflow.events.types import MessageAdded, Noticed, PhaseMoved, PhaseRefused, Reviewed, StatusChanged
from duckflow.i18n.template import note
from duckflow.state.action import Decision
from duckflow.state.agent import AgentState
from duckflow.state.checks import lines_of, state_of
from duckflow.state.data import FrozenData, say
from duckflow.state.message import Message
from duckflow.state.phase import Phase, Review, Status

TRANSITIONS = Path(__file__).with_name("transitions.json")


class TransitionTable(FrozenData):
    """The allowed moves between phases. The table comes with the program, and settings can override it."""

    allowed: dict[Phase, dict[Phase, str]] = Field(default_factory=dict)

    def allows(self, source: Phase, target: Phase) -> bool:
        return target in self.allowed.get(source, {})

    def reason(self, source: Phase, target: Phase) -> str:
        return self.allowed.get(source, {}).get(target, "")

    def targets(self, source: Phase) -> list[Phase]:
        return list(self.allowed.get(source, {}))


def transition_table(own: Mapping[str, Mapping[str, str]]) -> TransitionTable:
    """Returns the packaged table with the user's own moves on top. A move with an empty reason is removed."""
    allowed_moves: dict[str, dict[str, str]] = json.loads(TRANSITIONS.read_text(encoding="utf-8"))
    for source, own_moves in own.items():
        merged_moves = {**allowed_moves.get(source, {}), **own_moves}
        allowed_moves[source] = {target: why for target, why in merged_moves.items() if why}
    try:
        return TransitionTable.model_validate({"allowed": allowed_moves})
    except ValidationError as problem:
        error = problem.errors()[0]
        raise UsageError("config.bad_transitions", name=error["input"], known=", ".join(Phase)) from None


class Phases:
    """Moves from phase to phase. A reply of the model makes at most one move; the system itself moves for error
    recovery, for a question to the user, and for the review."""

    def __init__(self, session: StateOwner, table: TransitionTable) -> None:
        self._session = session
        self._table = table
        self._doubted = 0
        """The last turn whose end was shown as unverified, so that it is shown only once a turn."""

    def follow(self, decision: Decision) -> bool:
        """Makes the move between phases that the model's reply asks for. The model is told if the move is not
        allowed."""
        phase, target = self._session.state.phase, decision.step
        if phase == target:
            return True
        if self._table.allows(phase, target):
            self._move(target, decision.rationale, by_model=True)
            return True
        possible_targets = ", ".join(self._table.targets(phase)) or "-"
        why = self._why("step_refused", here=phase, there=target, possible=possible_targets)
        self._session.emit(PhaseRefused(source=phase, target=target, why=why))
        self._session.emit(MessageAdded(message=Message(role="system", text=why, turn=self._session.state.turn)))
        return False

    def recover(self, why: str) -> bool:
        """Goes back to planning after an error while executing or reviewing. Says whether the phase has changed."""
        if self._session.state.phase in (Phase.EXECUTION, Phase.REVIEW):
            self._move(Phase.PLANNING, why, status=Status.ERROR)
            return True
        self._session.emit(StatusChanged(status=Status.ERROR))
        return False

    def plan_anew(self, why: str) -> None:
        """Goes back to planning from any phase, because the Pacemaker (the limits on steps and progress) wants a new
        plan."""
        if self._session.state.phase is not Phase.PLANNING:
            self._move(Phase.PLANNING, why)

    @contextmanager
    def gate(self) -> Generator[Callable[[bool, str], None]]:
        """Sets the phase AWAITING_APPROVAL while the user is asked. The caller reports the answer by calling the
        yielded function: whether the actions are allowed, and the key of the note that says why not."""
        phase_before, answered = self._session.state.phase, False

        def answer(allowed: bool, why: str) -> None:
            nonlocal answered
            answered = True
            if self._session.state.phase is not Phase.AWAITING_APPROVAL:
                return
            if not allowed:
                self._move(Phase.PLANNING, self._why(why), status=Status.REQUIRES_USER_INPUT)
            elif phase_before is not Phase.AWAITING_APPROVAL:
                # A read that was asked about while planning is no reason to begin executing.
                self._move(
                    Phase.PLANNING if phase_before is Phase.PLANNING else Phase.EXECUTION, self._why("moved_yes")
                )

        if self._table.allows(phase_before, Phase.AWAITING_APPROVAL):
            self._move(Phase.AWAITING_APPROVAL, self._why("moved_asked"), status=Status.REQUIRES_USER_INPUT)
        try:
            yield answer
        finally:
            if not answered:
                answer(False, "moved_interrupted")

    def refused(self, why: str) -> None:
        """Goes back to planning because the actions were refused."""
        if self._session.state.phase is Phase.EXECUTION:
            self._move(Phase.PLANNING, why or self._why("moved_refused"), status=Status.REQUIRES_USER_INPUT)

    def finish(
        self, failed: str = "", reviewed: bool = False, unmade: bool = False, checks_wanted: bool = False
    ) -> bool:
        """Ends the work when the model says `done`. Returns False if the model must first review what happened, in one
        more loop. `failed` names what speaks against `done`; work that ends all the same is shown as unverified.
        `unmade` means that a change failed, so that the phase went back to planning. `checks_wanted` means that the
        user asked for checks: then no work whose last command failed succeeds."""
        phase = self._session.state.phase
        was_at_work = reviewed or unmade or phase in (Phase.EXECUTION, Phase.REVIEW)
        if phase is Phase.EXECUTION or (unmade and phase is Phase.PLANNING and not reviewed):
            self._move(Phase.REVIEW, self._why("moved_executed"))
            if failed and not reviewed:
                return False
        state = self._session.state
        if state.review and state.review.verdict != "approved":
            failed = failed or f"{state.review.rating}, {state.review.verdict}"
        if failed and was_at_work:
            self._doubted = state.turn
            self._session.emit(Noticed(what=say("review.unverified", check=failed)))
        is_rejected = state.review is not None and state.review.verdict == "rejected"
        is_red = any(run.failing for run in state.check_runs)
        run_fails = checks_wanted and _is_last_run(state, failed)
        if state.phase is Phase.REVIEW:
            is_review_too_good = state.review is None or (run_fails and state.review.verdict == "approved")
            if is_review_too_good or state_of(state.check_runs) == "failing" or (is_red and failed):
                self._session.emit(Reviewed(review=_computed(state, failed)))
            why = self._why("moved_unverified", failed=failed or lines_of(state.check_runs))
            why = why if failed or is_red or is_rejected else self._why("moved_succeeded")
            self._move(Phase.DONE, why, status=Status.ERROR if is_red or run_fails or is_rejected else Status.SUCCESS)
        return True

    def tell_checks(self, ran_commands: bool, owed: bool) -> None:
        """Reports the last checks and their results when the model calls the work done. A last command that failed is
        reported, too. `owed` means that the request orders work but none was done, which is reported whatever the model
        says."""
        state = self._session.state
        check_state, has_run = state_of(state.check_runs), any(run.turn == state.turn for run in state.check_runs)
        result_fails = bool(state.evidence) and not state.evidence[-1].ok
        if has_run or state.changed_in_turn or check_state == "failing" or (ran_commands and (owed or result_fails)):
            last_result = state.evidence[-1].text if check_state == "none" and state.evidence else ""
            key = "checks.other" if last_result else f"checks.{check_state}"
            self._session.emit(Noticed(what=say(key, runs=last_result or lines_of(state.check_runs))))
        elif owed and self._doubted != state.turn:
            self._session.emit(Noticed(what=say("checks.nothing")))

    def close(self, failed: str) -> bool:
        """Ends the work of a turn whose last words ask what else to do. Says whether the work has ended. `failed` says
        what speaks against its success."""
        was_at_work = self._session.state.phase in (Phase.EXECUTION, Phase.REVIEW)
        return was_at_work and self.finish(failed, reviewed=True)

    def wait_for_user(self) -> None:
        """Waits for the user when the turn ends with a question. If there is a draft of a plan, the phase is the one
        that waits for its approval."""
        state = self._session.state
        has_plan_draft = state.plan is not None and state.plan.status == "draft"
        if has_plan_draft and self._table.allows(state.phase, Phase.AWAITING_APPROVAL):
            self._move(Phase.AWAITING_APPROVAL, self._why("moved_plan_waits"), status=Status.REQUIRES_USER_INPUT)
        else:
            self._session.emit(StatusChanged(status=Status.REQUIRES_USER_INPUT))

    def plan_approved(self) -> None:
        if self._session.state.phase is not Phase.EXECUTION:
            self._move(Phase.EXECUTION, self._why("moved_plan_approved"))

    def plan_refused(self) -> None:
        if self._session.state.phase is not Phase.PLANNING:
            self._move(Phase.PLANNING, self._why("moved_plan_refused"))

    def job_ended(self, completed: bool, why: str) -> None:
        """Goes back to planning if a job failed. When the last job of a plan has completed it, the work ends."""
        state = self._session.state
        if not completed:
            self.recover(why or self._why("moved_job_failed"))
        elif state.plan is not None and state.plan.status == "completed" and not state.turn_open:
            self.finish()

    def _why(self, key: str, **values: str) -> str:
        return note(self._session.state.language, key, **values)

    def _move(self, target: Phase, why: str, status: Status = Status.IN_PROGRESS, by_model: bool = False) -> None:
        source = self._session.state.phase
        self._session.emit(
            PhaseMoved(source=source, target=target, status=status, why=why, by="model" if by_model else "system")
        )


def _is_last_run(state: AgentState, failed: str) -> bool:
    """Says whether what failed is the last command, which nothing has taken back since."""
    return bool(state.evidence) and not state.evidence[-1].ok and state.evidence[-1].text == failed


def _computed(state: AgentState, failed: str) -> Review:
    """Computes the review of the work: good if a check or another command has succeeded since the last change,
    otherwise fair."""
    check_state = state_of(state.check_runs)
    if failed or check_state == "failing":
        return Review(rating="needs_work", verdict="fix")
    has_proof = check_state in ("passing", "passing_before") or (
        check_state == "none" and state.evidence and state.evidence[-1].ok
    )
    return Review(rating="good" if has_proof else "fair", verdict="approved")

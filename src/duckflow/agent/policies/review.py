"""Done is what a result shows: work that is called done is held against the record."""

import re
from pathlib import Path

from duckflow import DEFAULT_LANGUAGE
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Checks, Policy, TurnSoFar
from duckflow.i18n.patterns import joined, may_find, search
from duckflow.prompts.layers import record_line

FILES = 8
CLAUSES = r"(?<=[.!?])\s+|[,;:、。！？\n]"


def claims_a_check(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Whether an answer says that tests or other checks have passed."""
    if not may_find("claims.passes", text, language):
        return False
    clauses = re.split(rf"{CLAUSES}|\s{joined('claims.joint', text, language)}\s", text)
    return any(_is_claim(clause, language) for clause in clauses)


def _is_claim(clause: str, language: str) -> bool:
    passes = search("claims.passes", clause, language)
    return passes is not None and not search("claims.not_claimed", clause, language)


class ReviewByRecord(Policy):
    """Comes last: it closes the work, or sends it into one loop of review with what is on record."""

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

    def _closed(self, turn: TurnSoFar, checks: Checks) -> str | None:
        """Nothing when the work is over; else what is to be looked at first."""
        claimed = "" if checks.failed or not _claimed_untried(turn) else turn.note("not_tried")
        if claimed and not self._reviewed:
            self._reviewed = True
            return turn.note("claimed_untried", why=claimed)
        doubt = claimed or turn.doubt
        if self._phases.finish(checks.failed or doubt, self._reviewed or bool(doubt)):
            return None
        self._reviewed = True
        return _for_review(turn, checks)


def _claimed_untried(turn: TurnSoFar) -> bool:
    """A check is said to have passed in a turn that changed something or was to try it, and nothing was tried since."""
    results = [result for loop in turn.loops for result in loop.done.results]
    language = turn.state.language
    to_be_tried = search("claims.to_be_tried", turn.request, language)
    if not to_be_tried and not any(result.changed for result in results):
        return False
    if not any(claims_a_check(result.said or "", language) for result in turn.last.done.results):
        return False
    from duckflow.tools.plan.proof import tries_out

    return not any(tries_out(one.command) for one in turn.state.evidence)


def _for_review(turn: TurnSoFar, checks: Checks) -> str:
    """Why there is a review, and what is on the record."""
    state = turn.state
    why = turn.note("check_failed" if checks.by_command else "not_all_succeeded", check=checks.failed)
    shown = record_line(state, FILES, lambda path: (Path(state.folder) / path).exists())
    return turn.note("review_due", why=why, record=shown)

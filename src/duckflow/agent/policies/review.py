"""Compares work that is called done with the record of its results."""

from pathlib import Path

from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Checks, Ending, Policy, TurnSoFar
from duckflow.prompts.layers import record_line

FILES = 8


class ReviewByRecord(Policy):
    """Comes last: it closes the work, or sends it into one loop of review with the record."""

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
        """Returns nothing when the work is over; otherwise the note on what is to be looked at first."""
        if self._phases.finish(checks.failed or turn.doubt, self._reviewed or bool(turn.doubt), checks.unmade):
            return None
        self._reviewed = True
        return _for_review(turn, checks)


def _for_review(turn: TurnSoFar, checks: Checks) -> str:
    """Returns the note for a review: why there is one, and what the record shows."""
    state = turn.state
    why = turn.note("check_failed" if checks.by_command else "not_all_succeeded", check=checks.failed)
    shown = record_line(state, FILES, lambda path: (Path(state.folder) / path).exists())
    return turn.note("review_due", why=why, record=shown)

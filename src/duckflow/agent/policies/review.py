"""Done is what a result shows: work that is called done is held against the record."""

from pathlib import Path

from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Checks, Policy, TurnSoFar
from duckflow.prompts.wording import record_line
from duckflow.state.phase import Phase

FILES = 8


class ReviewByRecord(Policy):
    """Comes last: it closes the work, or sends it into one loop of review with what is on record."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    async def after(self, turn: TurnSoFar) -> str | None:
        checks, loop = turn.checks(), turn.last
        if loop.decision.next_step == "done":
            if turn.ending and self._phases.finish(*checks):
                return None
            if turn.state.phase is Phase.REVIEW:
                return _for_review(turn, checks)
        return turn.note("fault_when_tried", fault=loop.fault) if loop.fault and not turn.ending else None


def _for_review(turn: TurnSoFar, checks: Checks) -> str:
    """Why there is a review, and what is on the record."""
    state = turn.state
    why = turn.note("check_failed", check=checks.failed) if checks.failed else turn.note("not_all_succeeded")
    shown = record_line(state, FILES, lambda path: (Path(state.folder) / path).exists())
    return turn.note("review_due", why=why, record=shown)

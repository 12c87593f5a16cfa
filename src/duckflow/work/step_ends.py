"""When the work on a task is over: what was called has succeeded, and shows what it should."""

import re
from collections.abc import Callable

from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.state.action import succeeded
from duckflow.state.phrase import say

PASSING = re.compile(r"\d+(?:\.\d+)?\s?m?s\b|0x[0-9a-f]+")
"""What differs each time something fails in the same way: times, addresses."""


class StepEnds(Policy):
    """Ends the turn without another request where that can be told. What fails goes back with its cause; what then
    fails in the same way ends it, too."""

    def __init__(self, lacking: Callable[[], str]) -> None:
        """`lacking`: what the task is to reach and nothing on the record shows."""
        self._lacking = lacking
        self._cause = ""
        self._asked_for_proof = False

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        results = turn.last.done.results
        failed = [one for one in results if not succeeded(one)]
        if causes := [one.for_model for one in failed if one.effect != "read"]:
            before, self._cause = self._cause, PASSING.sub("", causes[0])
            return Ending("failed", say("agent.fails_again")) if self._cause == before else None
        acted = not failed and any(one.effect not in ("read", "talk") for one in results)
        if not turn.ending and (not acted or _more_follows(turn)):
            return None
        lacking = self._lacking()
        if not lacking or self._asked_for_proof:
            return turn.ending or Ending("done")
        self._asked_for_proof = True
        return turn.note("step_not_shown", lacking=lacking)


def _more_follows(turn: TurnSoFar) -> bool:
    """Whether the model has said so, in so many words: calls alone do not mean it."""
    decision = turn.last.decision
    return decision.next_step == "continue" and "next_step" in decision.declared

"""When the answer is given, the turn of a small model is over."""

from collections.abc import Sequence

from duckflow.agent.led.errand import errand, greets
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Guidance, Policy, TurnSoFar
from duckflow.state.action import RESPOND, Operation


class AnswerEnds(Policy):
    """A request that only asks or greets is done with the answer: a small model would only talk on."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        """To a greeting there is nothing but an answer: it would look for the file of the example."""
        if turn.loops or not greets(turn.request):
            return None
        return Guidance("", _answering)

    async def after(self, turn: TurnSoFar) -> Ending | None:
        done = turn.last.done
        if done.stop or not done.ran(RESPOND) or not (errand(turn.request).only_asks or greets(turn.request)):
            return None
        self._phases.finish()
        return Ending("done")


def _answering(operations: Sequence[Operation]) -> list[Operation]:
    return [one for one in operations if one.name == RESPOND]

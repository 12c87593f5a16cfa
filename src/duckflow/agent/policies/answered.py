"""When the answer is given, the turn of a small model is over."""

from duckflow.agent.errand import errand
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.state.action import RESPOND


class AnswerEnds(Policy):
    """A request that only asks something is done with the answer: a small model would only talk on."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    async def after(self, turn: TurnSoFar) -> Ending | None:
        done = turn.last.done
        if done.stop or not done.ran(RESPOND) or not errand(turn.request).only_asks:
            return None
        if not (await turn.profile()).led:
            return None
        self._phases.finish()
        return Ending("done")

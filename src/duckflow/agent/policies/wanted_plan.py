"""A small model does not think of planning by itself, even when it is asked to."""

from functools import partial

from duckflow.agent.policies.policy import Guidance, Policy, TurnSoFar
from duckflow.prompts.offer import held_to_planning, wants_plan


class HoldToPlan(Policy):
    """Where the user wants a plan, proposing one is the first thing that is offered, and the only one."""

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        if turn.loops or not (await turn.profile()).led or not wants_plan(turn.state):
            return None
        return Guidance(turn.note("plan_wanted"), partial(held_to_planning, state=turn.state))

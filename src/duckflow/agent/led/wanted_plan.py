"""A small model does not think of planning by itself, even when it is asked to."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from duckflow.agent.policies.policy import Guidance, Policy, TurnSoFar
from duckflow.state.action import PROPOSE_PLAN, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import last_request

WANTS_PLAN = (
    r"(?i)\bplan\b|step by step|\b(?:two|three|four|several|multiple) files\b"
    r"|計画|段階|(?:[二三四2-9２-９]つ|複数)の(?:ファイル|モジュール)"
)


class HoldToPlan(Policy):
    """Where the user wants a plan, proposing one is the first thing that is offered, and the only one."""

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        if turn.loops or not wants_plan(turn.state):
            return None
        return Guidance(turn.note("plan_wanted"), partial(_held_to_planning, state=turn.state))


def wants_plan(state: AgentState) -> bool:
    """Whether the user asks for a plan, and there is none yet."""
    return state.plan is None and re.search(WANTS_PLAN, last_request(state.messages)) is not None


def _held_to_planning(operations: Iterable[Operation], state: AgentState) -> list[Operation]:
    """Nothing but proposing a plan, for what the user has said: a small model would put it in worse words."""
    request = last_request(state.messages)
    return [held_to(operation, text=[request]) for operation in operations if operation.name == PROPOSE_PLAN]


def held_to(operation: Operation, **values: Sequence[str]) -> Operation:
    """The operation with some arguments held to these values."""
    held = {name: {"type": "string", "enum": list(texts)} for name, texts in values.items()}
    properties = {**operation.parameters.get("properties", {}), **held}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})

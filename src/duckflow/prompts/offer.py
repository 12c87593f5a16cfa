"""Which operations the model is told of: few for a small model, and of plans only what can be done now."""

import re
from collections.abc import Callable, Iterable, Sequence

from duckflow.state.action import PROPOSE_PLAN, WRITE_FILE, Operation, PlanMoment
from duckflow.state.agent import AgentState
from duckflow.state.message import last_request
from duckflow.state.profile import ModelProfile

Narrow = Callable[[Sequence[Operation]], Sequence[Operation]]
"""Some of the operations that are offered, or all of them with fewer arguments."""
# A small model would plan the smallest thing if it could: it is told of plans only when the request has several parts.
SEVERAL_PARTS = (
    r"(?i)\b(?:plan|step by step|(?:two|three|several|multiple) files|(?:program|app|game|tool) with)\b"
    r"|計画|ゲームを|アプリ|複数の|段階"
)
WANTS_PLAN = (
    r"(?i)\bplan\b|step by step|\b(?:two|three|four|several|multiple) files\b"
    r"|計画|段階|(?:[二三四2-9２-９]つ|複数)の(?:ファイル|モジュール)"
)


def told_so_far(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """What is about a plan at hand is told of from the first plan on: before, every request would pay for it."""
    return tuple(one for one in operations if state.plans or not one.when or "none" in one.when)


def offered(operations: Iterable[Operation], profile: ModelProfile, state: AgentState) -> tuple[Operation, ...]:
    """The operations a model of this size is told of. The others work too, or say why they do not."""
    now = plan_moments(state)
    timely = (one for one in operations if not one.when or now.intersection(one.when))
    if not profile.compact:
        return tuple(timely)
    simple = state.plan is None and not re.search(SEVERAL_PARTS, last_request(state.messages))
    return tuple(one for one in timely if one.led and not (simple and one.when))


def plan_moments(state: AgentState) -> frozenset[PlanMoment]:
    """What can be done about plans now: propose one; revise a draft; carry an approved one out; steer its jobs; go on
    with one that was completed."""
    plan = state.plan
    if plan is None or plan.status in ("completed", "failed"):
        return frozenset({"none", "over"} if plan and plan.status == "completed" else {"none"})
    if plan.status == "draft":
        return frozenset({"draft"})
    at_work = any(job.status in ("running", "paused", "interrupted") for job in state.jobs.values())
    return frozenset({"approved", "jobs"} if at_work else {"approved"})


def wants_plan(state: AgentState) -> bool:
    """Whether the user asks for a plan, and there is none yet."""
    return state.plan is None and re.search(WANTS_PLAN, last_request(state.messages)) is not None


def held_to_writing(operations: Iterable[Operation], paths: Sequence[str], may_look: bool) -> tuple[Operation, ...]:
    """Nothing but writing these files, after a look around where that is still due."""
    return tuple(
        _only(one, path=paths) if one.name == WRITE_FILE else one
        for one in operations
        if one.name == WRITE_FILE or (may_look and one.effect == "read")
    )


def held_to_planning(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Nothing but proposing a plan, for what the user has said: a small model would put it in worse words."""
    return tuple(_only(one, text=[last_request(state.messages)]) for one in operations if one.name == PROPOSE_PLAN)


def _only(operation: Operation, **values: Sequence[str]) -> Operation:
    """The operation with some arguments held to these values."""
    held = {name: {"type": "string", "enum": list(texts)} for name, texts in values.items()}
    properties = {**operation.parameters.get("properties", {}), **held}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})

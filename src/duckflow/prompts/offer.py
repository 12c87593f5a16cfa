"""Which operations the model is told of: few for a small model, and of plans only what can be done now."""

import re
from collections.abc import Iterable, Sequence

from duckflow.state.action import Operation
from duckflow.state.agent import AgentState
from duckflow.state.profile import ModelProfile

# A small model does better with few operations; whole-file writes replace edits, and writing makes its folders.
COMPACT_OPERATIONS = frozenset(
    ("response", "file_ops.list_files", "file_ops.find_files", "file_ops.grep", "file_ops.read_file")
    + ("file_ops.write_file", "file_ops.move_file", "file_ops.delete_file")
)
COMPACT_PLANNING = frozenset(
    ("plan_tool.propose", "plan_tool.revise", "task_tool.generate_list", "task_loop.run", "plan_tool.update_step")
)
PROPOSE = "plan_tool.propose"
WRITE = "file_ops.write_file"
LOOKING = frozenset(("file_ops.list_files", "file_ops.find_files", "file_ops.grep", "file_ops.read_file"))
PLANNING = ("plan_tool.", "task_tool.", "task_loop.")
# A small model would plan the smallest thing if it could: it is told of plans only when the request has several parts.
SEVERAL_PARTS = re.compile(
    r"\b(?:plan|step by step|(?:two|three|several|multiple) files|(?:program|app|game|tool) with)\b"
    r"|計画|ゲームを|アプリ|複数の|段階",
    re.IGNORECASE,
)
WANTS_PLAN = re.compile(
    r"\bplan\b|step by step|\b(?:two|three|four|several|multiple) files\b"
    r"|計画|段階|(?:[二三四2-9２-９]つ|複数)の(?:ファイル|モジュール)",
    re.IGNORECASE,
)


def offered(operations: Iterable[Operation], profile: ModelProfile, state: AgentState) -> tuple[Operation, ...]:
    """The operations a model of this size is told of. The others work too, or say why they do not."""
    planning = plan_operations(state)
    if not profile.compact:
        return tuple(one for one in operations if one.name in planning or not one.name.startswith(PLANNING))
    simple = state.plan is None and not SEVERAL_PARTS.search(_request(state))
    known = COMPACT_OPERATIONS if simple else COMPACT_OPERATIONS | (planning & COMPACT_PLANNING)
    return tuple(one for one in operations if one.name in known)


def plan_operations(state: AgentState) -> frozenset[str]:
    """What can be done about plans now: propose one; revise a draft; carry an approved one out; steer its jobs."""
    plan = state.plan
    if plan is None or plan.status in ("completed", "failed"):
        return frozenset({"plan_tool.propose"})
    if plan.status == "draft":
        return frozenset({"plan_tool.revise", "plan_tool.get"})
    names = {"plan_tool.get", "plan_tool.revise", "plan_tool.update_step", "task_tool.generate_list", "task_loop.run"}
    statuses = {job.status for job in state.jobs.values()}
    if statuses & {"running", "paused", "interrupted"}:
        names |= {f"task_loop.{name}" for name in ("status", "pause", "resume", "cancel")}
    return frozenset(names)


def plan_hint(state: AgentState, profile: ModelProfile) -> str:
    """A small model does not think of planning by itself, even when it is asked to."""
    if not profile.led or state.plan is not None or state.loop > 1 or not WANTS_PLAN.search(_request(state)):
        return ""
    return f"the user wants a plan: your only action now is {PROPOSE}"


def held_to_writing(operations: Iterable[Operation], paths: Sequence[str], may_look: bool) -> tuple[Operation, ...]:
    """Nothing but writing these files, after a look around where that is still due."""
    return tuple(
        _only(one, path=paths) if one.name == WRITE else one
        for one in operations
        if one.name == WRITE or (may_look and one.name in LOOKING)
    )


def held_to_planning(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Nothing but proposing a plan, for what the user has said: a small model would put it in worse words."""
    return tuple(_only(one, text=[_request(state)]) for one in operations if one.name == PROPOSE)


def _only(operation: Operation, **values: Sequence[str]) -> Operation:
    """The operation with some arguments held to these values."""
    held = {name: {"type": "string", "enum": list(texts)} for name, texts in values.items()}
    properties = {**operation.parameters.get("properties", {}), **held}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})


def _request(state: AgentState) -> str:
    return next((message.text for message in reversed(state.messages) if message.role == "user"), "")

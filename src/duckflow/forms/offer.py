"""Which operations a model is told of: of plans only what can be done now, and few for a small model."""

from collections.abc import Iterable
from typing import Any

from duckflow.i18n.language import text_in
from duckflow.i18n.patterns import search
from duckflow.i18n.template import tool_text
from duckflow.state.action import Operation, PlanMoment
from duckflow.state.agent import AgentState
from duckflow.state.message import last_request


def timely(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Without what is about plans and cannot be done now."""
    now = plan_moments(state) | ({"changed"} if state.changed_before else frozenset[PlanMoment]())
    return tuple(operation for operation in operations if not operation.when or now.intersection(operation.when))


def few(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """What a small model is told of, with nothing but the arguments that must be given. It would plan the smallest
    thing if it could: it is told of plans only when the request has several parts."""
    several = search("requests.several_parts", last_request(state.messages), state.language)
    simple = state.plan is None and not several
    known = (operation for operation in timely(operations, state) if operation.led)
    return tuple(brief(operation, state.language) for operation in known if not (simple and operation.when))


def told(operation: Operation, language: str) -> str:
    """What the model is told of an operation, in a few words."""
    text = text_in(operation.told, language) if operation.told else tool_text(language, operation.name)
    return text.replace("{more}", operation.more)


def signature(operation: Operation) -> str:
    """`file_ops.read_file(path, start_line?, end_line?)`"""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    names = [name if name in required else f"{name}?" for name in properties]
    return f"{operation.name}({', '.join(names)})"


def listed(operations: Iterable[Operation], language: str, marked: bool = False) -> str:
    """One line an operation: how it is called, and what it is for. `marked`: a star for those that change things."""
    signs = ("-", "*" if marked else "-")
    return "\n".join(f"{signs[one.changes]} {signature(one)}: {told(one, language)}" for one in operations)


def brief(operation: Operation, language: str) -> Operation:
    """Only what must be given, and no text of a file. Operations that then take the same share one shape of the
    schema."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    kept = {name: properties[name] for name in properties if name in required}
    parameters = {**operation.parameters, "properties": kept}
    text = tool_text(language, f"{operation.name}.brief") or told(operation, language)
    return without_body(operation.model_copy(update={"parameters": parameters, "told": {language: text}}))


def without_body(operation: Operation) -> Operation:
    """The operation as it is told of where its long text is asked for by itself."""
    if not operation.body:
        return operation
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    kept = {name: properties[name] for name in properties if name != operation.body}
    required = [name for name in operation.parameters.get("required", ()) if name != operation.body]
    parameters = {**operation.parameters, "properties": kept, "required": required}
    return operation.model_copy(update={"parameters": parameters})


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

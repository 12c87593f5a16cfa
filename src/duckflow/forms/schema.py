"""The JSON schema of a Decision: a union over the offered operations.

It uses only what OpenAI's strict mode and llama.cpp's grammars both understand: every property is required and closed,
optional ones may be null, and there are no references. The order of properties is the order in which a model writes
them: reasons first, then the actions, then what comes next. In an action the operation comes first, because strict mode
tells the members of a union apart by their first property.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from duckflow.i18n.language import search, text_in
from duckflow.i18n.template import tool_text
from duckflow.state.action import CHECK_PATTERN, NextStep, Operation, PlanMoment, PromptPattern, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.five import StateDelta
from duckflow.state.message import last_request
from duckflow.state.phase import Phase, Rating, ReviewVerdict


def timely(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Leaves out operations about plans that cannot be used now."""
    now = plan_moments(state) | ({"changed"} if state.changed_before else frozenset[PlanMoment]())
    return tuple(operation for operation in operations if not operation.when or now.intersection(operation.when))


def few(operations: Iterable[Operation], state: AgentState) -> tuple[Operation, ...]:
    """Returns the operations that a small model is told of, with only their required arguments. It would plan even the
    smallest thing, so it is told of plans only when the request has several parts."""
    several = search("requests.several_parts", last_request(state.messages), state.language)
    simple = state.plan is None and not several
    known = (operation for operation in timely(operations, state) if operation.led)
    return tuple(brief(operation, state.language) for operation in known if not (simple and operation.when))


def told(operation: Operation, language: str) -> str:
    """Returns the description of an operation for the model, in a few words."""
    text = text_in(operation.told, language) if operation.told else tool_text(language, operation.name)
    return text.replace("{more}", operation.more)


def signature(operation: Operation) -> str:
    """Returns the call of an operation, such as `file_ops.read_file(path, start_line?, end_line?)`."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    names = [name if name in required else f"{name}?" for name in properties]
    return f"{operation.name}({', '.join(names)})"


def listed(operations: Iterable[Operation], language: str, marked: bool = False) -> str:
    """Lists operations, one a line: how each is called, and its purpose. `marked` puts a star before those that change
    things."""
    signs = ("-", "*" if marked else "-")
    return "\n".join(
        f"{signs[operation.changes]} {signature(operation)}: {told(operation, language)}" for operation in operations
    )


def brief(operation: Operation, language: str) -> Operation:
    """Returns the operation with only its required arguments, and no text of a file. Operations that then take the same
    arguments share one shape of the schema."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    shown = {name: properties[name] for name in properties if name in required}
    parameters = {**operation.parameters, "properties": shown}
    text = tool_text(language, f"{operation.name}.brief") or told(operation, language)
    return without_body(operation.model_copy(update={"parameters": parameters, "told": {language: text}}))


def without_body(operation: Operation) -> Operation:
    """Returns the operation without its long text, which is asked for by itself."""
    if not operation.body:
        return operation
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    others = {name: properties[name] for name in properties if name != operation.body}
    required = [name for name in operation.parameters.get("required", ()) if name != operation.body]
    parameters = {**operation.parameters, "properties": others, "required": required}
    return operation.model_copy(update={"parameters": parameters})


def plan_moments(state: AgentState) -> frozenset[PlanMoment]:
    """Says what can be done about plans now: propose one, revise a draft, carry an approved one out, steer its jobs, or
    continue a completed one."""
    plan = state.plan
    if plan is None or plan.status in ("completed", "failed"):
        return frozenset({"none", "over"} if plan and plan.status == "completed" else {"none"})
    if plan.status == "draft":
        return frozenset({"draft"})
    at_work = any(job.status in ("running", "paused", "interrupted") for job in state.jobs.values())
    return frozenset({"approved", "jobs"} if at_work else {"approved"})


Schema = dict[str, Any]

STEPS = tuple(phase for phase in Phase if phase is not Phase.DONE)
TEXT: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
CHECK: Schema = {"type": "string", "pattern": CHECK_PATTERN}
KEPT = ("type", "enum", "const")


def decision_schema(
    operations: Sequence[Operation],
    with_delta: bool = True,
    several_actions: bool = True,
    steps: Sequence[Phase] = STEPS,
    review: bool = False,
) -> Schema:
    """Returns the schema for these operations.

    Without `with_delta` the model is not asked for changes to the five items, or for what only planning needs: a small
    model only makes them up. `several_actions` allows more than one in the list. `review` asks for its opinion of the
    work."""
    actions = _actions(operations)
    delta: Schema = {"state_delta": {"anyOf": [_delta(), NULL]}} if with_delta else {}
    alternative: Schema = {"alternative": {"type": ["string", "null"]}} if with_delta else {}
    rated: Schema = {"rating": _one_of(get_args(Rating)), "verdict": _one_of(get_args(ReviewVerdict))} if review else {}
    at_most: Schema = {} if several_actions else {"maxItems": 1}
    left_out = () if with_delta else (Phase.AWAITING_APPROVAL, "defer")
    return _object(
        {
            "rationale": TEXT,
            **alternative,
            "goal_consistency": CHECK,
            "constraint_check": CHECK,
            "confidence": {"type": "number"},
            "task_profile": _one_of(TaskProfile),
            "step": _one_of(step for step in steps if step not in left_out),
            **rated,
            **delta,
            "actions": {"type": "array", "items": actions[0] if len(actions) == 1 else {"anyOf": actions}, **at_most},
            "next_step": _one_of(kind for kind in get_args(NextStep) if kind not in left_out),
            "prompt_pattern": _one_of(get_args(PromptPattern)),
        }
    )


def _delta() -> Schema:
    """Returns the schema of StateDelta, written by hand: making it with pydantic costs time at every start."""
    text, texts = {"type": ["string", "null"]}, {"type": ["array", "null"], "items": TEXT}
    lists = ("constraints", "plan_brief", "open_questions")
    return _object({name: texts if name in lists else text for name in StateDelta.model_fields})


def tasks_schema(operations: Sequence[Operation], answers: bool = False) -> Schema:
    """Returns the schema of a list of tasks: actions without a Decision around them, and an answer to the user if they
    have said something."""
    actions = _actions(operations)
    tasks: Schema = {"type": "array", "items": actions[0] if len(actions) == 1 else {"anyOf": actions}}
    return _object({"answer": TEXT, "tasks": tasks} if answers else {"tasks": tasks})


def strict_schema(schema: Schema) -> Schema:
    """Returns pydantic's schema of an object in the form that every model understands."""
    return _closed(schema)


def _actions(operations: Sequence[Operation]) -> list[Schema]:
    """Returns one shape for each kind of arguments. Operations that take the same arguments share it."""
    shapes: list[tuple[Schema, list[str]]] = []
    for operation in operations:
        args = _closed(operation.parameters)
        names = next((names for shape, names in shapes if shape == args), None)
        if names is None:
            shapes.append((args, [operation.name]))
        else:
            names.append(operation.name)
    return [_object({"operation": _one_of(names), "reasoning": TEXT, "args": args}) for args, names in shapes]


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(values: Any) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def _closed(schema: Schema) -> Schema:
    """Returns pydantic's schema of an object in the strict form: all properties required, the optional ones
    nullable."""
    definitions = schema.get("$defs", {})
    # Pydantic uses a reference even at the top for arguments that contain themselves.
    top = str(schema.get("$ref", "")).rpartition("/")[2]
    return _strict_object(definitions.get(top, schema), definitions, (top,))


def _strict_object(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Schema:
    required = schema.get("required", ())
    properties: Schema = {}
    for name, part in schema.get("properties", {}).items():
        strict = _strict(part, definitions, seen)
        properties[name] = strict if name in required else _nullable(strict)
    return _object(properties)


def _strict(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Schema:
    if reference := schema.get("$ref"):
        name = str(reference).rpartition("/")[2]
        if name in seen:
            # A shape that contains itself cannot be written out: any object may stand there.
            return {"type": "object"}
        return _strict(definitions[name], definitions, (*seen, name))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _union([_strict(option, definitions, seen) for option in options])
    if "properties" in schema:
        return _strict_object(schema, definitions, seen)
    strict = {key: schema[key] for key in KEPT if key in schema}
    if "items" in schema:
        strict["items"] = _strict(schema["items"], definitions, seen)
    return strict


def _nullable(schema: Schema) -> Schema:
    return _union([*cast("list[Schema]", schema.get("anyOf", [schema])), NULL])


def _union(options: list[Schema]) -> Schema:
    """Joins options. Null beside a plain type is written as a list of types, which is shorter than a union."""
    options = [option for at, option in enumerate(options) if option not in options[:at]]
    others = [option for option in options if option != NULL]
    if len(others) == len(options) or len(others) != 1:
        return options[0] if len(options) == 1 else {"anyOf": options}
    only = others[0]
    kind = only.get("type")
    if isinstance(kind, list):
        return only
    if isinstance(kind, str) and "enum" not in only and "const" not in only and "properties" not in only:
        return {**only, "type": [kind, "null"]}
    return {"anyOf": [only, NULL]}

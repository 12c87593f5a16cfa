"""The JSON schema of a Decision: a union over the offered operations.

Kept to what OpenAI's strict mode and llama.cpp's grammars both understand: every property is required and closed,
what is optional may be null, nothing is referred to. The order of properties is the order in which a model writes
them: reasons first, then the actions, then what comes next. In an action the operation comes first, because strict
mode tells the members of a union apart by their first property.
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
    """The schema for these operations.

    Without `with_delta` the model is spared the changes to the five items, and what only those need who plan: a small
    one only makes them up. `several_actions`: whether there may be more than one in the list. `review`: it says what it
    thinks of the work."""
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
    """StateDelta, written out: asking pydantic for it costs time at every start."""
    text, texts = {"type": ["string", "null"]}, {"type": ["array", "null"], "items": TEXT}
    lists = ("constraints", "plan_brief", "open_questions")
    return _object({name: texts if name in lists else text for name in StateDelta.model_fields})


def tasks_schema(operations: Sequence[Operation], answers: bool = False) -> Schema:
    """The schema of a list of tasks: actions without a Decision around them, and an answer to the user where they have
    said something."""
    actions = _actions(operations)
    tasks: Schema = {"type": "array", "items": actions[0] if len(actions) == 1 else {"anyOf": actions}}
    return _object({"answer": TEXT, "tasks": tasks} if answers else {"tasks": tasks})


def strict_schema(schema: Schema) -> Schema:
    """An object schema of pydantic's in the form that every model understands."""
    return _closed(schema)


def _actions(operations: Sequence[Operation]) -> list[Schema]:
    """One shape for each kind of arguments; operations that take the same share it."""
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
    """An object schema of pydantic's in the strict form: all properties required, the optional ones nullable."""
    definitions = schema.get("$defs", {})
    # Pydantic refers to arguments that hold themselves even at the top.
    top = str(schema.get("$ref", "")).rpartition("/")[2]
    return _strict_object(definitions.get(top, schema), definitions, (top,))


def _strict_object(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Schema:
    required = schema.get("required", ())
    properties: Schema = {}
    for name, given in schema.get("properties", {}).items():
        strict = _strict(given, definitions, seen)
        properties[name] = strict if name in required else _nullable(strict)
    return _object(properties)


def _strict(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Schema:
    if reference := schema.get("$ref"):
        name = str(reference).rpartition("/")[2]
        if name in seen:
            # A shape that holds itself cannot be written out; any object may stand there.
            return {"type": "object"}
        return _strict(definitions[name], definitions, (*seen, name))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _union([_strict(option, definitions, seen) for option in options])
    if "properties" in schema:
        return _strict_object(schema, definitions, seen)
    kept = {key: schema[key] for key in KEPT if key in schema}
    if "items" in schema:
        kept["items"] = _strict(schema["items"], definitions, seen)
    return kept


def _nullable(schema: Schema) -> Schema:
    return _union([*cast("list[Schema]", schema.get("anyOf", [schema])), NULL])


def _union(options: list[Schema]) -> Schema:
    """Null beside a plain type is written as a list of types, which is shorter than a union."""
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

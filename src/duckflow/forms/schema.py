"""The JSON schema of a Decision: a union over the offered operations.

It uses only features that OpenAI's strict mode and llama.cpp's grammars both understand: every property is required and
closed, optional ones may be null, and there are no references. The order of properties is the order in which a model
writes them: reasons first, then the actions, then what comes next. In an action the operation comes first, because
strict mode tells the members of a union apart by their first property.
"""

from collections.abc import Sequence
from typing import Any, cast, get_args

from duckflow.forms.calls import one_of
from duckflow.state.action import CHECK_PATTERN, NextStep, Operation, PromptPattern, TaskProfile
from duckflow.state.phase import Phase, Rating, ReviewVerdict, StateDelta

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

    Without `with_delta` the model is not asked for changes to the goal and the other items of every prompt, or for
    fields that only planning needs: a small model would only invent them. `several_actions` allows more than one
    action. `review` asks for the model's opinion of the work."""
    actions = _actions(operations)
    delta: Schema = {"state_delta": {"anyOf": [_delta(), NULL]}} if with_delta else {}
    alternative: Schema = {"alternative": {"type": ["string", "null"]}} if with_delta else {}
    review_properties: Schema = (
        {"rating": one_of(get_args(Rating)), "verdict": one_of(get_args(ReviewVerdict))} if review else {}
    )
    length_limit: Schema = {} if several_actions else {"maxItems": 1}
    excluded_steps = () if with_delta else (Phase.AWAITING_APPROVAL, "defer")
    return _object(
        {
            "rationale": TEXT,
            **alternative,
            "goal_consistency": CHECK,
            "constraint_check": CHECK,
            "confidence": {"type": "number"},
            "task_profile": one_of(TaskProfile),
            "step": one_of(step for step in steps if step not in excluded_steps),
            **review_properties,
            **delta,
            "actions": {
                "type": "array",
                "items": actions[0] if len(actions) == 1 else {"anyOf": actions},
                **length_limit,
            },
            "next_step": one_of(kind for kind in get_args(NextStep) if kind not in excluded_steps),
            "prompt_pattern": one_of(get_args(PromptPattern)),
        }
    )


def _delta() -> Schema:
    """Returns the schema of StateDelta, written by hand: making it with pydantic costs time at every start."""
    text, texts = {"type": ["string", "null"]}, {"type": ["array", "null"], "items": TEXT}
    lists = ("constraints", "plan_brief", "open_questions")
    return _object({name: texts if name in lists else text for name in StateDelta.model_fields})


def tasks_schema(operations: Sequence[Operation], answers: bool = False) -> Schema:
    """Returns the schema of a list of tasks: actions without a Decision around them. `answers` adds an answer to the
    user, for when they have said something."""
    actions = _actions(operations)
    tasks: Schema = {"type": "array", "items": actions[0] if len(actions) == 1 else {"anyOf": actions}}
    return _object({"answer": TEXT, "tasks": tasks} if answers else {"tasks": tasks})


def strict_schema(schema: Schema) -> Schema:
    """Returns pydantic's schema of an object in the form that every model understands."""
    return _closed(schema)


def _actions(operations: Sequence[Operation]) -> list[Schema]:
    """Returns one shape of the schema for each set of arguments. Operations that take the same arguments share it."""
    shapes_and_names: list[tuple[Schema, list[str]]] = []
    for operation in operations:
        args = _closed(operation.parameters)
        names = next((names for shape, names in shapes_and_names if shape == args), None)
        if names is None:
            shapes_and_names.append((args, [operation.name]))
        else:
            names.append(operation.name)
    return [_object({"operation": one_of(names), "reasoning": TEXT, "args": args}) for args, names in shapes_and_names]


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _closed(schema: Schema) -> Schema:
    """Returns pydantic's schema of an object in the strict form: all properties required, the optional ones
    nullable."""
    definitions = schema.get("$defs", {})
    # For arguments that contain themselves, Pydantic uses a reference even at the top.
    top_name = str(schema.get("$ref", "")).rpartition("/")[2]
    return _strict_object(definitions.get(top_name, schema), definitions, (top_name,))


def _strict_object(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Schema:
    required = schema.get("required", ())
    properties: Schema = {}
    for name, part in schema.get("properties", {}).items():
        strict_part = _strict(part, definitions, seen)
        properties[name] = strict_part if name in required else _nullable(strict_part)
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
    kept_schema = {key: schema[key] for key in KEPT if key in schema}
    if "items" in schema:
        kept_schema["items"] = _strict(schema["items"], definitions, seen)
    return kept_schema


def _nullable(schema: Schema) -> Schema:
    return _union([*cast("list[Schema]", schema.get("anyOf", [schema])), NULL])


def _union(options: list[Schema]) -> Schema:
    """Returns the schema of a value that fits one option. Plain types and null become a list of types, which is
    short."""
    options = [option for index, option in enumerate(options) if option not in options[:index]]
    other_options = [option for option in options if option != NULL]
    if len(other_options) == len(options) or len(other_options) != 1:
        return options[0] if len(options) == 1 else {"anyOf": options}
    single = other_options[0]
    kind = single.get("type")
    if isinstance(kind, list):
        return single
    if isinstance(kind, str) and "enum" not in single and "const" not in single and "properties" not in single:
        return {**single, "type": [kind, "null"]}
    return {"anyOf": [single, NULL]}

"""The schema a Decision is asked for with: strict, small, and in the order in which a model should think."""

import json
from collections.abc import Iterator
from typing import Any, Literal, cast

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from duckflow.forms.calls import without_body
from duckflow.forms.decision import PLAIN_FIELDS
from duckflow.forms.json_form import read_decision
from duckflow.forms.schema import decision_schema
from duckflow.state.action import Operation

ALLOWED = {"pattern", "type", "enum", "items", "anyOf", "properties", "required", "additionalProperties"}


class Text(BaseModel):
    text: str


class Path(BaseModel):
    path: str


class Write(Path):
    content: str


class Read(Path):
    start_line: int = 1
    end_line: int | None = None


class Range(BaseModel):
    first: int
    last: int = 0


class Search(BaseModel):
    """Arguments of every type that a tool may have."""

    pattern: str
    kinds: list[Literal["file", "folder"]] = []
    order: Literal["name", "size"] | None = None
    within: Range | None = None
    ranges: list[Range]
    deep: bool = False


class Nested(BaseModel):
    name: str
    parts: list["Nested"] = []


def operation(name: str, args: type[BaseModel], body: str = "") -> Operation:
    return Operation(name=name, parameters=args.model_json_schema(), body=body)


RESPONSE = operation("response", Text)
WRITE = operation("file_ops.write_file", Write, body="content")
READ = operation("file_ops.read_file", Read)
FOLDER = operation("file_ops.make_folder", Path)
SEARCH = operation("file_ops.search", Search)


def action_shapes(schema: dict[str, Any]) -> list[dict[str, Any]]:
    items = schema["properties"]["actions"]["items"]
    return items.get("anyOf", [items])


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields every schema inside a schema."""
    if isinstance(schema, list):
        for one in cast("list[Any]", schema):
            yield from parts(one)
    elif isinstance(schema, dict):
        table = cast("dict[str, Any]", schema)
        yield table
        yield from parts(list(table.get("properties", {}).values()))
        yield from parts([table[key] for key in ("items", "anyOf") if key in table])


def test_the_whole_schema() -> None:
    assert decision_schema([RESPONSE, READ]) == snapshot(
        {
            "type": "object",
            "properties": {
                "rationale": {"type": "string"},
                "alternative": {"type": ["string", "null"]},
                "goal_consistency": {"type": "string", "pattern": r'^(yes|no: [^"\\]+)$'},
                "constraint_check": {"type": "string", "pattern": r'^(yes|no: [^"\\]+)$'},
                "confidence": {"type": "number"},
                "task_profile": {
                    "type": "string",
                    "enum": [
                        "SIMPLE_QUESTION",
                        "GENERAL_CHAT",
                        "FILE_OPERATION",
                        "CREATIVE_WRITING",
                        "CODE_ANALYSIS",
                        "DEBUGGING",
                        "MULTI_STEP_TASK",
                        "RESEARCH",
                        "COMPLEX_REASONING",
                    ],
                },
                "step": {"type": "string", "enum": ["PLANNING", "EXECUTION", "REVIEW", "AWAITING_APPROVAL"]},
                "state_delta": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {
                                "goal": {"type": ["string", "null"]},
                                "why_now": {"type": ["string", "null"]},
                                "constraints": {"type": ["array", "null"], "items": {"type": "string"}},
                                "plan_brief": {"type": ["array", "null"], "items": {"type": "string"}},
                                "open_questions": {"type": ["array", "null"], "items": {"type": "string"}},
                                "decision": {"type": ["string", "null"]},
                            },
                            "required": ["goal", "why_now", "constraints", "plan_brief", "open_questions", "decision"],
                            "additionalProperties": False,
                        },
                        {"type": "null"},
                    ]
                },
                "actions": {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {
                                "type": "object",
                                "properties": {
                                    "operation": {"type": "string", "enum": ["response"]},
                                    "reasoning": {"type": "string"},
                                    "args": {
                                        "type": "object",
                                        "properties": {"text": {"type": "string"}},
                                        "required": ["text"],
                                        "additionalProperties": False,
                                    },
                                },
                                "required": ["operation", "reasoning", "args"],
                                "additionalProperties": False,
                            },
                            {
                                "type": "object",
                                "properties": {
                                    "operation": {"type": "string", "enum": ["file_ops.read_file"]},
                                    "reasoning": {"type": "string"},
                                    "args": {
                                        "type": "object",
                                        "properties": {
                                            "path": {"type": "string"},
                                            "start_line": {"type": ["integer", "null"]},
                                            "end_line": {"type": ["integer", "null"]},
                                        },
                                        "required": ["path", "start_line", "end_line"],
                                        "additionalProperties": False,
                                    },
                                },
                                "required": ["operation", "reasoning", "args"],
                                "additionalProperties": False,
                            },
                        ]
                    },
                },
                "next_step": {"type": "string", "enum": ["done", "pending_user", "defer", "continue"]},
                "prompt_pattern": {"type": "string", "enum": ["base_main", "base_main_specialized"]},
            },
            "required": [
                "rationale",
                "alternative",
                "goal_consistency",
                "constraint_check",
                "confidence",
                "task_profile",
                "step",
                "state_delta",
                "actions",
                "next_step",
                "prompt_pattern",
            ],
            "additionalProperties": False,
        }
    )


def test_it_keeps_to_what_strict_mode_allows() -> None:
    for part in parts(decision_schema([RESPONSE, WRITE, READ, FOLDER, SEARCH])):
        assert part.keys() <= ALLOWED
        if part.get("type") == "object":
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False


def test_its_fields_are_those_of_a_decision() -> None:
    assert decision_schema([RESPONSE], review=True)["properties"].keys() == set(PLAIN_FIELDS)


def test_a_small_model_is_spared_the_delta_and_read_all_the_same() -> None:
    fields = decision_schema([RESPONSE], with_delta=False)["properties"]
    assert fields.keys() == set(PLAIN_FIELDS) - {"state_delta", "alternative", "rating", "verdict"}


def test_reasons_come_before_actions_and_what_comes_next_after_them() -> None:
    order = list(decision_schema([RESPONSE])["properties"])
    assert order.index("rationale") == 0
    assert order[-3:] == ["actions", "next_step", "prompt_pattern"]


def test_strict_mode_can_tell_the_actions_apart_by_their_first_property() -> None:
    shapes = action_shapes(decision_schema([RESPONSE, WRITE, READ, FOLDER, SEARCH]))
    assert all(next(iter(shape["properties"])) == "operation" for shape in shapes)
    names = [name for shape in shapes for name in shape["properties"]["operation"]["enum"]]
    assert sorted(names) == sorted(one.name for one in (RESPONSE, WRITE, READ, FOLDER, SEARCH))


def test_operations_with_the_same_arguments_share_a_shape() -> None:
    shapes = action_shapes(decision_schema([without_body(WRITE), RESPONSE, FOLDER]))
    assert [shape["properties"]["operation"]["enum"] for shape in shapes] == [
        ["file_ops.write_file", "file_ops.make_folder"],
        ["response"],
    ]


@pytest.mark.parametrize(("offered", "names"), [(without_body(WRITE), ["path"]), (WRITE, ["path", "content"])])
def test_a_body_stays_outside_where_it_is_not_offered(offered: Operation, names: list[str]) -> None:
    (shape,) = action_shapes(decision_schema([offered]))
    assert list(shape["properties"]["args"]["properties"]) == names


def test_arguments_keep_their_types_and_optional_ones_may_be_null() -> None:
    (shape,) = action_shapes(decision_schema([SEARCH]))
    assert shape["properties"]["args"]["properties"] == snapshot(
        {
            "pattern": {"type": "string"},
            "kinds": {"type": ["array", "null"], "items": {"type": "string", "enum": ["file", "folder"]}},
            "order": {"anyOf": [{"type": "string", "enum": ["name", "size"]}, {"type": "null"}]},
            "within": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"first": {"type": "integer"}, "last": {"type": ["integer", "null"]}},
                        "required": ["first", "last"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
            "ranges": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"first": {"type": "integer"}, "last": {"type": ["integer", "null"]}},
                    "required": ["first", "last"],
                    "additionalProperties": False,
                },
            },
            "deep": {"type": ["boolean", "null"]},
        }
    )


def test_arguments_that_hold_themselves_are_left_open() -> None:
    (shape,) = action_shapes(decision_schema([operation("tree.make", Nested)]))
    assert shape["properties"]["args"]["properties"]["parts"] == {
        "type": ["array", "null"],
        "items": {"type": "object"},
    }


def test_a_reply_that_fits_the_schema_is_read() -> None:
    asked = {
        "rationale": "to see it",
        "alternative": None,
        "goal_consistency": "yes",
        "constraint_check": "yes",
        "confidence": 0.9,
        "task_profile": "FILE_OPERATION",
        "step": "PLANNING",
        "state_delta": None,
        "actions": [
            {
                "operation": "file_ops.read_file",
                "reasoning": "to see it",
                "args": {"path": "a.py", "start_line": None, "end_line": None},
            }
        ],
        "next_step": "continue",
        "prompt_pattern": "base_main",
    }
    assert list(asked) == decision_schema([READ])["required"]
    reading = read_decision(json.dumps(asked), [READ])
    assert reading.decision.actions[0].args == {"path": "a.py"}
    assert not reading.doubtful


def test_the_schema_stays_small() -> None:
    compact = json.dumps(decision_schema([RESPONSE, without_body(WRITE), READ, FOLDER]), separators=(",", ":"))
    assert len(compact) < 2500

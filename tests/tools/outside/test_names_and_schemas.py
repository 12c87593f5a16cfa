"""Names, schemas and answers between a server and us."""

import asyncio
import re
from pathlib import Path
from typing import Any

from duckflow.agent.questions import Questions
from duckflow.state.action import wire_name
from duckflow.state.data import say
from duckflow.state.question import Choice, Question
from duckflow.tools.outside.content import KeptOutputs, read_result
from duckflow.tools.outside.outside_tool import operation_names, plain_schema


def test_names_fit_every_wire_and_no_two_are_the_same() -> None:
    long = "a_very_long_name_of_a_tool_" * 4
    tools = [("git", "status"), ("git", "a.b"), ("git", "a/b"), ("x", long), ("x", long + "2"), ("サーバー", "道具")]
    names = operation_names(tools)
    assert names["git", "status"] == "mcp__git__status" and len(set(names.values())) == len(tools)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) and wire_name(name) == name for name in names.values())
    assert names["git", "a.b"] == operation_names(reversed(tools))["git", "a.b"]


def test_references_in_a_schema_are_written_out() -> None:
    given: dict[str, Any] = {
        "type": "object",
        "$defs": {"point": {"properties": {"x": {"type": "number"}, "next": {"$ref": "#/$defs/point"}}}},
        "properties": {"at": {"$ref": "#/$defs/point"}, "any": {}, "odd": {"$ref": "http://elsewhere"}, "no": 3},
        "required": ["at", "missing"],
        "allOf": [{"properties": {"more": {"type": "string"}}, "required": ["more"]}],
    }
    plain = plain_schema(given)
    assert list(plain["properties"]) == ["at", "any", "odd", "no", "more"] and plain["required"] == ["at", "more"]
    assert plain["properties"]["at"]["properties"]["x"] == {"type": "number"} and "$ref" not in str(plain)
    assert plain_schema(None) == plain_schema([]) == {"type": "object", "properties": {}, "required": []}


def test_structured_content_that_repeats_the_text_is_left_out(tmp_path: Path) -> None:
    kept = KeptOutputs(tmp_path, 1000)
    text = {"type": "text", "text": "Bread\nfor 2 ducks"}
    same = {"content": [text], "structuredContent": {"content": "Bread\nfor 2 ducks", "count": 2}}
    assert read_result(same, "x", kept).text == "Bread\nfor 2 ducks"
    more = {"content": [text], "structuredContent": {"count": 3}}
    assert read_result(more, "x", kept).text == 'Bread\nfor 2 ducks\n{"count": 3}'
    assert read_result({"content": "nonsense"}, "x", kept).text == "(no output)"


async def test_a_question_for_words_takes_numbers_as_words() -> None:
    choices = (
        Choice(key="text", label=say("mcp.type_it"), wants_text=True),
        Choice(key="default", label=say("mcp.default", value="30")),
        Choice(key="no", label=say("mcp.decline")),
    )
    read = {"2": ("text", "2"), "default": ("default", ""), "いいえ": ("no", ""), "Duck": ("text", "Duck")}
    for typed, meant in read.items():
        questions = Questions(lambda event: None, lambda: "en")
        question = Question(kind="text", title=say("mcp.asks", server="s"), choices=choices)
        asked = asyncio.create_task(questions.ask(question))
        await asyncio.sleep(0)
        questions.answer(question.question_id, typed, "")
        answer = await asked
        assert (answer.choice, answer.text) == meant

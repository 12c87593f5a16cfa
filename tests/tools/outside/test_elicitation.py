"""A form of a server is asked field by field, and nobody answers it in the user's name."""

from typing import Any

import pytest

from duckflow.state.data import Phrase
from duckflow.state.question import NOBODY, Answer, Question
from duckflow.tools.outside.elicitation import elicit


def form(**fields: dict[str, Any]) -> dict[str, Any]:
    """A form whose first field is required."""
    schema = {"type": "object", "properties": fields, "required": list(fields)[:1]}
    return {"message": "Please fill in.", "requestedSchema": schema}


async def filled(params: dict[str, Any], *answers: Answer) -> tuple[dict[str, Any], list[Question], list[Phrase]]:
    asked: list[Question] = []
    notices: list[Phrase] = []
    given = iter(answers)

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return next(given)

    return await elicit(ask, notices.append, "far", params), asked, notices


async def test_nobody_declines_a_form_in_the_users_name() -> None:
    """Neither where nobody is there, nor where it is too long to be asked."""
    for params in (form(name={"type": "string"}), {"message": "Sure?"}):
        assert (await filled(params, Answer(choice=NOBODY)))[0] == {"action": "cancel"}
    long = form(**{f"field{number}": {"type": "string"} for number in range(41)})
    answer, asked, notices = await filled(long)
    assert answer == {"action": "cancel"} and not asked and [one.key for one in notices] == ["mcp.form_not_asked"]


async def test_optional_fields_may_be_left_out_and_twelve_fields_are_asked_for() -> None:
    fields = {f"field{number}": {"type": "string"} for number in range(12)}
    typed = [Answer(choice="text", text="a"), *[Answer(choice="skip")] * 11]
    answer, asked, _ = await filled(form(**fields), *typed)
    assert answer == {"action": "accept", "content": {"field0": "a"}} and len(asked) == 12
    offered = [[choice.key for choice in question.choices] for question in asked]
    assert "skip" not in offered[0] and all("skip" in keys for keys in offered[1:])


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, "10", 9),
        ({"type": "number", "minimum": 0.5}, "0.1", 0.5),
        ({"type": "integer"}, "many", 3),
        ({"type": "string", "minLength": 3}, "ab", "abc"),
        ({"type": "string", "maxLength": 3}, "abcd", "abc"),
        ({"type": "string", "format": "email"}, "duck", "duck@pond.example"),
        ({"type": "string", "format": "uri"}, "pond", "https://pond.example"),
        ({"type": "string", "format": "date"}, "today", "2026-01-31"),
        ({"type": "string", "enum": [f"v{number}" for number in range(30)]}, "v31", "v29"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}, "a, c", ["b"]),
    ],
)
async def test_limits_of_a_field_are_checked(field: dict[str, Any], wrong: str, right: Any) -> None:
    typed = str(right).strip("[]'")
    answers = Answer(choice="text", text=wrong), Answer(choice="text", text=typed)
    answer, asked, _ = await filled(form(it=field), *answers)
    assert answer == {"action": "accept", "content": {"it": right}}
    assert len(asked) == 2 and len(asked[1].details) == len(asked[0].details) + 1

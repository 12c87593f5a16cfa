"""`--json-schema`: an answer that is JSON of a given shape, checked before it is handed out."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.errors import UsageError
from duckflow.whole_text import make_value_whole, parse_json

BRACKET = re.compile(r"[{\[]")
FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class Unfit(Exception):
    """Raised for an answer that does not have the wanted shape. The message says what is wrong with the answer."""


class AnswerShape(NamedTuple):
    """A JSON schema, and the function that checks a value against it."""

    schema: str
    check: Callable[[Any], Any]

    def read(self, answer: str) -> Any:
        """Returns the value in the answer: the whole answer, or the last part of it that fits. Raises Unfit if there is
        none."""
        from fastjsonschema import JsonSchemaValueException

        reason = "no JSON"
        for value in _values(answer):
            try:
                return self.check(value)
            except JsonSchemaValueException as problem:
                reason = problem.message
        raise Unfit(reason)


def _values(answer: str) -> Iterator[Any]:
    """Yields the JSON in a text: first the whole text, then each block of code, then each object and list between other
    words. If there are several blocks or objects, the last one comes first."""
    for text in (answer, *reversed(FENCED.findall(answer))):
        with suppress(ValueError):
            yield parse_json(text)
    values, position = list[Any](), 0
    while start := BRACKET.search(answer, position):
        position = start.end()
        with suppress(ValueError, RecursionError):
            value, position = json.JSONDecoder().raw_decode(answer, start.start())
            values.append(make_value_whole(value))
    yield from reversed(values)


def answer_shape(schema_or_path: str) -> AnswerShape:
    """Reads a schema, given as JSON or as the path of a file. Raises UsageError if the text is no JSON schema."""
    import fastjsonschema

    text = schema_or_path
    try:
        if not schema_or_path.lstrip().startswith("{"):
            text = Path(schema_or_path).read_text("utf-8")
        schema: Any = json.loads(text)
        if not isinstance(schema, dict):
            raise ValueError("{…}?")
        # A schema that refers to an address is refused: nothing is fetched.
        validate: Callable[[Any], Any] = fastjsonschema.compile(
            cast("dict[str, Any]", schema), handlers={"http": _refuse, "https": _refuse}
        )
    except (OSError, ValueError, RecursionError, fastjsonschema.JsonSchemaDefinitionException) as problem:
        raise UsageError("usage.bad_schema", reason=str(problem)) from None
    return AnswerShape(json.dumps(schema, ensure_ascii=False), validate)


def _refuse(address: str) -> Any:
    raise ValueError(address)

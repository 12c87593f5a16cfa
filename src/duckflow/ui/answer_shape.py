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
    """The answer is not of that shape; the message says what is wrong with it."""


class AnswerShape(NamedTuple):
    """A JSON schema, and the check for it."""

    schema: str
    check: Callable[[Any], Any]

    def read(self, answer: str) -> Any:
        """The value in the answer: all of it, or what stands last in it and fits. Unfit when there is none."""
        from fastjsonschema import JsonSchemaValueException

        why = "no JSON"
        for value in _values(answer):
            try:
                return self.check(value)
            except JsonSchemaValueException as problem:
                why = problem.message
        raise Unfit(why)


def _values(answer: str) -> Iterator[Any]:
    """The JSON in a text: all of it, then each block of code, then each object and list between other words, the last
    ones first."""
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


def answer_shape(given: str) -> AnswerShape:
    """From the schema itself, or from the file that holds it. UsageError when it is no JSON schema."""
    import fastjsonschema

    text = given
    try:
        if not given.lstrip().startswith("{"):
            text = Path(given).read_text("utf-8")
        schema: Any = json.loads(text)
        if not isinstance(schema, dict):
            raise ValueError("{…}?")
        # Nothing is fetched for a schema that refers elsewhere.
        check: Callable[[Any], Any] = fastjsonschema.compile(
            cast("dict[str, Any]", schema), handlers={"http": _refuse, "https": _refuse}
        )
    except (OSError, ValueError, RecursionError, fastjsonschema.JsonSchemaDefinitionException) as problem:
        raise UsageError("usage.bad_schema", reason=str(problem)) from None
    return AnswerShape(json.dumps(schema, ensure_ascii=False), check)


def _refuse(address: str) -> Any:
    raise ValueError(address)

"""`--json-schema`: an answer that is JSON of a given shape, checked before it is handed out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.errors import UsageError

FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class Unfit(Exception):
    """The answer is not of that shape; the message says what is wrong with it."""


class AnswerShape(NamedTuple):
    """A JSON schema, and the check for it."""

    schema: str
    check: Callable[[Any], Any]

    def read(self, answer: str) -> Any:
        """The value in the answer: all of it, or the last block of code in it. Unfit when there is none that fits."""
        from fastjsonschema import JsonSchemaValueException

        blocks = FENCED.findall(answer)
        for text in (answer, *reversed(blocks)):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            try:
                return self.check(value)
            except JsonSchemaValueException as problem:
                raise Unfit(problem.message) from None
        raise Unfit("no JSON")


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

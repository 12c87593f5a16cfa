"""`--output-format stream-json`: every line that is sent, and the JSON Schema of them all.

A line is an event of the session, or one of the five below. A phrase is sent as its key, with its `text` in the user's
language beside the key. `python -m duckflow.ui.stream_lines` prints the schema."""

import json
from collections.abc import Iterator
from typing import Any, Literal, cast

from pydantic import Field

from duckflow.events.event import Event
from duckflow.events.ports import Conversation
from duckflow.events.views import Meaning, Taken
from duckflow.i18n.words import Words
from duckflow.state.data import FrozenData, Phrase
from duckflow.state.question import Question
from duckflow.state.turn_summary import TurnSummary
from duckflow.ui.streams import print_out

VERSION = 1
"""The version of these lines. It grows when a line loses a field or changes its meaning; new lines and fields do not
change it."""
PHRASE = {"key", "values", "texts"}


class SessionLine(FrozenData):
    """The first line."""

    type: Literal["session"] = "session"
    version: int = VERSION
    session_id: str
    folder: str
    mode: str
    language: str


class QuestionLine(FrozenData):
    """A question, which is sent only with `--input-format stream-json`. The work waits for a line of the type
    `answer`."""

    type: Literal["question"] = "question"
    question: Question


class TakenLine(FrozenData):
    """Says how Duckflow has understood an input line of the type `answer`."""

    type: Literal["taken"] = "taken"
    question_id: str
    meaning: Meaning
    told: tuple[Phrase, ...] = ()


class ErrorLine(FrozenData):
    """Says that a line of the input could not be read."""

    type: Literal["error"] = "error"
    error: str


class ResultLine(TurnSummary):
    """The result of a turn. It comes after the turn; with `--input-format stream-json` after each turn."""

    type: Literal["result"] = "result"
    structured: Any = Field(default=None)
    """The value in the answer, with `--json-schema`."""


LINES: tuple[type[FrozenData], ...] = (SessionLine, QuestionLine, TakenLine, ErrorLine, ResultLine)


class StreamLines:
    """Writes the lines of one conversation."""

    def __init__(self, conversation: Conversation, words: Words) -> None:
        self._conversation = conversation
        self._words = words

    def session(self) -> None:
        state, mode = self._conversation.state, self._conversation.choices.mode
        line = SessionLine(session_id=state.session_id, folder=state.folder, mode=mode, language=state.language)
        self.send(line)

    def event(self, event: Event) -> None:
        print_out(self._json({"type": event.kind, **event.model_dump(mode="json")}))

    def taken(self, question_id: str, taken: Taken) -> None:
        self.send(TakenLine(question_id=question_id, meaning=taken.meaning, told=taken.told))

    def send(self, line: FrozenData) -> None:
        print_out(self._json(line.model_dump(mode="json")))

    def _json(self, line: dict[str, Any]) -> str:
        return json.dumps(self._with_texts(line), ensure_ascii=False)

    def _with_texts(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._with_texts(item) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        table = cast("dict[str, Any]", value)
        if table.keys() == PHRASE:
            return {**table, "text": self._words.phrase(Phrase.model_validate(table))}
        return {name: self._with_texts(item) for name, item in table.items()}


def stream_schema() -> dict[str, Any]:
    """Returns the JSON Schema of one line."""
    from pydantic.json_schema import models_json_schema

    events = sorted(_events(Event), key=lambda event: event.kind)
    _, schema = models_json_schema([(model, "serialization") for model in (*LINES, *events)])
    definitions = cast("dict[str, dict[str, Any]]", schema["$defs"])
    for event in events:
        table = definitions[event.__name__]
        table["properties"] = {"type": {"const": event.kind}, **table["properties"]}
        table["required"] = ["type", *table.get("required", [])]
    text = {"type": "string", "description": "The phrase in the user's language."}
    definitions["Phrase"]["properties"]["text"] = text
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of --output-format stream-json, version {VERSION}",
        "anyOf": [{"$ref": f"#/$defs/{model.__name__}"} for model in (*LINES, *events)],
        "$defs": definitions,
    }


def _events(base: type[Event]) -> Iterator[type[Event]]:
    import duckflow.events.talking
    import duckflow.events.types
    import duckflow.events.work

    assert duckflow.events.talking and duckflow.events.types and duckflow.events.work
    for event in base.__subclasses__():
        if "kind" in vars(event):
            yield event
        yield from _events(event)


if __name__ == "__main__":
    print_out(json.dumps(stream_schema(), indent=2, ensure_ascii=False))

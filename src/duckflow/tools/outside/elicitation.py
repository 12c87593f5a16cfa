"""What a server wants to know is asked in the conversation, one thing at a time."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from duckflow.events.ports import Ask
from duckflow.llm.json_fields import as_table, tables
from duckflow.safety.path_names import shown, shown_line
from duckflow.state.phrase import Phrase, quote, say
from duckflow.state.question import Choice, Question

Table = dict[str, Any]
MOST_FIELDS = 10
MOST_CHOICES = 20
MOST_LINES, LONGEST_WORDS = 30, 4000
LONGEST_LABEL = 200
MARK = "» "
DECLINED: Table = {"action": "decline"}
NO = Choice(key="no", label=say("mcp.decline"))


async def elicit(ask: Ask, server: str, params: Table) -> Table:
    """The answer as the protocol has it: what was filled in, or that the user declined."""
    message = str(params.get("message", ""))
    fields = _fields(as_table(params.get("requestedSchema")))
    if params.get("mode") == "url" or len(fields) > MOST_FIELDS:
        return DECLINED
    if not fields:
        return {"action": "accept", "content": {}} if await _confirmed(ask, server, message) else DECLINED
    content: Table = {}
    for name, field in fields.items():
        question = _question(server, message, name, field)
        while True:
            answer = await ask(question)
            if answer.choice == "no":
                return DECLINED
            if answer.choice == "default":
                content[name] = field.get("default")
                break
            try:
                content[name] = _value(field, answer.text if answer.choice == "text" else answer.choice)
                break
            except ValueError:
                question = _question(server, message, name, field, say("mcp.not_a_number"))
    return {"action": "accept", "content": {name: value for name, value in content.items() if value is not None}}


async def _confirmed(ask: Ask, server: str, message: str) -> bool:
    title, choices = say("mcp.asks", server=server), (Choice(key="yes", label=say("mcp.accept")), NO)
    question = Question(kind="choice", title=title, details=(_own(message),), choices=choices)
    return (await ask(question)).choice == "yes"


def _fields(schema: Table) -> dict[str, Table]:
    return {name: as_table(one) for name, one in as_table(schema.get("properties")).items() if as_table(one)}


def _question(server: str, message: str, name: str, field: Table, *warnings: Phrase) -> Question:
    about = str(field.get("description") or field.get("title") or name)
    title = say("mcp.asks_for", server=shown(server), field=shown(name)[:LONGEST_LABEL])
    details = (*warnings, _own(message), *((_own(about),) if about != name else ()))
    default = field.get("default")
    offered = tuple(_choices(field))
    told = say("mcp.default_choice" if offered else "mcp.default", value=shown(str(default))[:LONGEST_LABEL])
    standing = () if default is None else (Choice(key="default", label=told),)
    if offered:
        return Question(kind="choice", title=title, details=details, choices=(*offered, *standing, NO))
    typed = Choice(key="text", label=say("mcp.type_it"), wants_text=True)
    return Question(kind="text", title=title, details=details, choices=(typed, *standing, NO))


def _choices(field: Table) -> Iterator[Choice]:
    if field.get("type") == "boolean":
        yield Choice(key="true", label=say("mcp.true"))
        yield Choice(key="false", label=say("mcp.false"))
    titled = tables(field.get("oneOf"))
    values: list[Any] = list(field.get("enum") or ()) or [one.get("const") for one in titled]
    names: list[Any] = list(field.get("enumNames") or ()) or [one.get("title") for one in titled]
    for value, name in zip_longest(values[:MOST_CHOICES], names[: len(values)]):
        yield Choice(key=str(value), label=quote(shown(str(name or value))[:LONGEST_LABEL]))


def _value(field: Table, text: str) -> Any:
    match field.get("type"):
        case "boolean":
            return text == "true"
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "array":
            return [part.strip() for part in text.split(",") if part.strip()]
        case _:
            return text


def _own(text: str) -> Phrase:
    """The server's own words, in no language of ours. Every line is marked as its words, so that none can look like a
    question of ours."""
    lines = text[:LONGEST_WORDS].splitlines()[:MOST_LINES] or [""]
    return quote("\n".join(f"{MARK}{shown_line(line)}" for line in lines))

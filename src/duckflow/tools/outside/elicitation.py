"""Questions of a server, asked in the conversation one field at a time."""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, cast

from duckflow.events.ports import Ask
from duckflow.safety.path_names import shown, shown_line
from duckflow.state.data import Phrase, as_table, quote, say, tables
from duckflow.state.question import NOBODY, Choice, Question

Table = dict[str, Any]
MOST_FIELDS = 40
"""A form with more fields than this is not asked, because nobody would answer so many questions one after the other."""
MOST_CHOICES = 20
MOST_LINES, LONGEST_WORDS = 30, 4000
LONGEST_LABEL = 200
MARK = "» "
DECLINED: Table = {"action": "decline"}
CANCELLED: Table = {"action": "cancel"}
NO = Choice(key="no", label=say("mcp.decline"))
SKIP = Choice(key="skip", label=say("mcp.skip"))
FORMATS = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d\S*"),
}


class UnfitValue(ValueError):
    """Raised for a typed text that does not fit the field that the server asks for."""

    def __init__(self, why: Phrase) -> None:
        super().__init__(why.key)
        self.why = why


async def elicit(ask: Ask, notice: Callable[[Phrase], None], server: str, params: Table) -> Table:
    """Asks the user, and returns the answer in the form of the protocol: the values; or that the user declined, or that
    the form could not be asked."""
    message = str(params.get("message", ""))
    schema = as_table(params.get("requestedSchema"))
    fields = _fields(schema)
    if params.get("mode") == "url" or len(fields) > MOST_FIELDS:
        # Duckflow never declines in the user's name: the server is told that the form was cancelled.
        notice(say("mcp.form_not_asked", server=shown(server), fields=len(fields)))
        return CANCELLED
    if not fields:
        return await _confirmed(ask, server, message)
    raw_required: Any = schema.get("required")
    required_names = cast("list[Any]", raw_required) if isinstance(raw_required, list) else []
    content: Table = {}
    for name, field in fields.items():
        skip_choices = () if name in required_names or field.get("default") is not None else (SKIP,)
        warnings: tuple[Phrase, ...] = ()
        while True:
            answer = await ask(_question(server, message, name, field, skip_choices, warnings))
            if answer.choice == NO.key:
                return DECLINED
            if answer.choice == NOBODY:
                notice(say("mcp.form_not_asked", server=shown(server), fields=len(fields)))
                return CANCELLED
            if answer.choice == SKIP.key:
                break
            if answer.choice == "default":
                content[name] = field.get("default")
                break
            try:
                content[name] = _value(field, answer.text if answer.choice == "text" else answer.choice)
                break
            except UnfitValue as problem:
                warnings = (problem.why,)
    return {"action": "accept", "content": content}


async def _confirmed(ask: Ask, server: str, message: str) -> Table:
    title, choices = say("mcp.asks", server=server), (Choice(key="yes", label=say("mcp.accept")), NO)
    details = (_own(message),)
    match (await ask(Question(kind="choice", title=title, details=details, choices=choices, for_person=True))).choice:
        case "yes":
            return {"action": "accept", "content": {}}
        case choice:
            return CANCELLED if choice == NOBODY else DECLINED


def _fields(schema: Table) -> dict[str, Table]:
    return {name: as_table(field) for name, field in as_table(schema.get("properties")).items() if as_table(field)}


def _question(
    server: str, message: str, name: str, field: Table, skip: tuple[Choice, ...], warnings: tuple[Phrase, ...]
) -> Question:
    description = str(field.get("description") or field.get("title") or name)
    title = say("mcp.asks_for", server=shown(server), field=shown(name)[:LONGEST_LABEL])
    details = (*warnings, _own(message), *((_own(description),) if description != name else ()))
    default = field.get("default")
    offered_choices = tuple(_choices(field))
    default_label = say(
        "mcp.default_choice" if offered_choices else "mcp.default", value=shown(str(default))[:LONGEST_LABEL]
    )
    default_choices = () if default is None else (Choice(key="default", label=default_label),)
    text_choice = Choice(key="text", label=say("mcp.type_it"), wants_text=True)
    choices = (*(offered_choices or (text_choice,)), *default_choices, *skip, NO)
    kind = "choice" if offered_choices else "text"
    return Question(kind=kind, title=title, details=details, choices=choices, for_person=True)


def _choices(field: Table) -> Iterator[Choice]:
    if field.get("type") == "boolean":
        yield Choice(key="true", label=say("mcp.true"))
        yield Choice(key="false", label=say("mcp.false"))
    titled_options = tables(field.get("oneOf"))
    values: list[Any] = list(field.get("enum") or ()) or [option.get("const") for option in titled_options]
    names: list[Any] = list(field.get("enumNames") or ()) or [option.get("title") for option in titled_options]
    if len(values) > MOST_CHOICES:
        # With so many choices the user types the value, which is then compared with the choices.
        return
    for value, name in zip_longest(values, names[: len(values)]):
        yield Choice(key=str(value), label=quote(shown(str(name or value))[:LONGEST_LABEL]))


def _value(field: Table, text: str) -> Any:
    """Returns the typed text as the type that the field wants. Raises UnfitValue where the field does not allow it."""
    match field.get("type"):
        case "boolean":
            return text == "true"
        case "integer" | "number" as kind:
            try:
                number = int(text) if kind == "integer" else float(text)
            except ValueError:
                raise UnfitValue(say("mcp.not_a_number")) from None
            _within(number, field, "minimum", "maximum")
            return number
        case "array":
            values = [value.strip() for value in text.split(",") if value.strip()]
            _within(len(values), field, "minItems", "maxItems")
            _offered(values, as_table(field.get("items")).get("enum"))
            return values
        case _:
            _offered([text], field.get("enum"))
            _within(len(text), field, "minLength", "maxLength")
            format_pattern = FORMATS.get(str(field.get("format", "")))
            if format_pattern and not format_pattern.fullmatch(text):
                raise UnfitValue(say("mcp.not_in_form", form=str(field["format"])))
            return text


def _offered(values: list[str], enum: Any) -> None:
    allowed_values = [str(value) for value in cast("list[Any]", enum)] if isinstance(enum, list) else []
    if unknown_values := [value for value in values if allowed_values and value not in allowed_values]:
        choices = shown(", ".join(allowed_values))[:LONGEST_LABEL]
        raise UnfitValue(say("mcp.not_offered", value=shown(unknown_values[0])[:LONGEST_LABEL], choices=choices))


def _within(size: float, field: Table, least: str, most: str) -> None:
    low, high = field.get(least), field.get(most)
    if (isinstance(low, int | float) and size < low) or (isinstance(high, int | float) and size > high):
        limits = f"{'' if low is None else low} … {'' if high is None else high}".strip()
        raise UnfitValue(say("mcp.outside_limits", size=size, limits=limits))


def _own(text: str) -> Phrase:
    """Quotes the server's own words, in whatever language. Every line is marked, so that none can look like a question
    of Duckflow."""
    lines = text[:LONGEST_WORDS].splitlines()[:MOST_LINES] or [""]
    return quote("\n".join(f"{MARK}{shown_line(line)}" for line in lines))

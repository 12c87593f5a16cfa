"""Events and state as the page gets them: JSON in which every phrase is a sentence, and what the model says is also
there as HTML that holds nothing but what Markdown means."""

import json
from collections.abc import Callable
from functools import cache
from html import escape
from math import isfinite
from typing import Any, cast

from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.noun import ELLIPSIS
from duckflow.state.phrase import SAID, Phrase

PHRASE = frozenset(Phrase.model_fields)
FINISHED, MESSAGE = "action_finished", "message_added"
DEEPEST = 60
LONGEST_MARKDOWN, MOST_BRACKETS = 100_000, 2_000
LINKS = ("http://", "https://", "mailto:")


def worded(value: Any, words: Words, deep: int = 0) -> Any:
    """The same with sentences for phrases; nothing in it steers how a text is shown, and all of it is JSON."""
    match value:
        case str():
            return plain(value)
        case float():
            return value if isfinite(value) else None
        case dict() | list() | tuple() if deep > DEEPEST:
            return ELLIPSIS
        case dict():
            fields = cast("dict[str, Any]", value)
            if fields.keys() == PHRASE and isinstance(fields["key"], str) and isinstance(fields["values"], dict):
                return _sentence(fields, words)
            return {plain(name): worded(one, words, deep + 1) for name, one in fields.items()}
        case list() | tuple():
            return [worded(one, words, deep + 1) for one in cast("list[Any]", value)]
        case _:
            return value


def _sentence(fields: dict[str, Any], words: Words) -> str:
    try:
        return plain(words.phrase(Phrase.model_validate(fields)))
    except (ValueError, KeyError, IndexError, TypeError):
        # Only looks like one, or is from another version: better a rough line than none.
        return plain(" ".join([str(fields["key"]), *map(str, fields["values"].values())]))


def told(number: int, kind: str, event: dict[str, Any], words: Words) -> dict[str, Any]:
    """One event; of one that is not kept the number is 0."""
    if kind == MESSAGE and event["message"]["role"] != "user":
        # What the model and the tools say is told by other events; this is how a request has it.
        event = {**event, "message": {**event["message"], "text": "", "native": None}}
    data: dict[str, Any] = {"number": number, "kind": kind, "event": worded(event, words)}
    if kind == FINISHED and (text := _said(event)):
        data |= {"said": True, "html": markdown(text)}
    return data


def _said(event: dict[str, Any]) -> str:
    """What the model says to the user with this result."""
    result: dict[str, Any] = event.get("result", {})
    phrase: dict[str, Any] = result.get("for_user", {})
    return str(phrase.get("values", {}).get("text", "")) if phrase.get("key") == SAID and result.get("ok") else ""


def message(number: int, kind: str, event: dict[str, Any], words: Words) -> bytes:
    return sent(told(number, kind, event, words))


def sent(data: dict[str, Any]) -> bytes:
    """As a stream of server-sent events has it: JSON has no line breaks of its own."""
    name = f"id: {data['number']}\n" if data["number"] else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def markdown(text: str) -> str:
    """What would take long to read as Markdown, while everybody waits, is shown as it stands."""
    if len(text) > LONGEST_MARKDOWN or text.count("[") > MOST_BRACKETS:
        return f"<pre>{escape(plain(text))}</pre>"
    return _renderer()(plain(text))


@cache
def _renderer() -> Callable[[str], str]:
    """No HTML of the text's own, no pictures (they would be fetched), links only to other sites."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("js-default").disable("image")
    reader.validateLink = lambda url: url.lower().startswith(LINKS)
    reader.add_render_rule("link_open", _open_link)
    for cell in ("th_open", "td_open"):
        reader.add_render_rule(cell, _open_cell)
    return reader.render


def _open_link(reader: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("target", "_blank")
    tokens[place].attrSet("rel", "noopener noreferrer")
    return reader.renderToken(tokens, place, options, env)


def _open_cell(reader: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    """Where its text stands is a class: the page allows no styles in its text."""
    style = tokens[place].attrs.pop("style", "")
    if style:
        tokens[place].attrSet("class", style.replace(":", "-"))
    return reader.renderToken(tokens, place, options, env)

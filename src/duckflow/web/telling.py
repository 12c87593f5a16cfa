"""Items and state as JSON for the page, with sentences in place of phrases. The model's texts become HTML with only the
elements that Markdown can express."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from html import escape
from math import isfinite
from typing import Any, cast

from duckflow.errors import ended_well
from duckflow.i18n.literal_signs import keep_literal_signs
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.data import ELLIPSIS, FrozenData, MutableData, Phrase
from duckflow.view.items import (
    About,
    ActionItem,
    CommandItem,
    Item,
    NoticeItem,
    OutputItem,
    PlanItem,
    QuestionItem,
    ReasonItem,
    ReportItem,
    TextItem,
    TurnItem,
    notice_line,
)

PHRASE = frozenset(Phrase.model_fields)
NOTICES: frozenset[About] = frozenset(
    ("noticed", "rejected", "model", "intervened", "reviewed", "pruned", "undone", "allowed", "ended", "proof")
)
DEEPEST = 60
LONGEST_MARKDOWN, MOST_BRACKETS = 100_000, 2_000
LINKS = ("http://", "https://", "mailto:")


def worded(value: Any, words: Words | None, deep: int = 0) -> Any:
    """Returns the value as plain JSON, with no control characters in its texts, and with sentences in place of phrases.
    Without `words`, nothing is taken for a phrase."""
    match value:
        case str():
            return plain(value)
        case float():
            return value if isfinite(value) else None
        case dict() | list() | tuple() if deep > DEEPEST:
            return ELLIPSIS
        case dict():
            fields = cast("dict[str, Any]", value)
            if (
                words
                and fields.keys() == PHRASE
                and isinstance(fields["key"], str)
                and isinstance(fields["values"], dict)
            ):
                return _sentence(fields, words)
            # What a model passes to a tool may look like a phrase, and is shown as it is.
            return {
                plain(name): worded(part, None if name == "args" else words, deep + 1) for name, part in fields.items()
            }
        case list() | tuple():
            return [worded(part, words, deep + 1) for part in cast("list[Any]", value)]
        case _:
            return value


def _sentence(fields: dict[str, Any], words: Words) -> str:
    try:
        return plain(words.phrase(Phrase.model_validate(fields)))
    except (ValueError, KeyError, IndexError, TypeError):
        # The fields only look like a phrase, or come from another version. A rough line is better than none.
        return plain(" ".join([str(fields["key"]), *map(str, fields["values"].values())]))


def item_message(number: int, items: Iterable[Item], words: Words) -> dict[str, Any]:
    """Returns the message with the items of one event. The number is 0 for an event that is not recorded."""
    return {"number": number, "items": [page_fields for item in items if (page_fields := page_item(item, words))]}


def page_item(item: Item, words: Words) -> dict[str, Any] | None:
    """Returns the item as JSON for the page; None if the page does not show it, or shows it as part of the state."""
    match item:
        case TextItem():
            return _text(item, words)
        case ReasonItem() if item.rationale or item.thoughts:
            return _fields(item, words, "rationale", "confidence", "profile", "alternative", "thoughts")
        case ActionItem() if item.state != "asked" and not item.talks and (item.doing or item.result):
            fields = _fields(item, words, "operation", "state", "action", "doing", "job", "job_name", "result")
            return fields | {"well": item.result.well if item.result else None}
        case QuestionItem() if item.question.on_record if item.question else item.number:
            return _fields(item, words, "question", "answer")
        case PlanItem(active=True, plan=plan) if plan.status == "draft":
            return _fields(item, words, "plan")
        case ReportItem():
            return _fields(item, words, "job_name", "status", "report") | {"html": markdown(item.report.summary)}
        case NoticeItem():
            return _notice(item, words)
        case TurnItem() if item.number:
            return _fields(item, words, "turn", "outcome")
        case OutputItem():
            return _fields(item, words, "job", "tail", "over")
        case CommandItem(over=True) if item.text or item.problem:
            return _fields(item, words, "line", "text", "problem")
        case _:
            return None


def _text(item: TextItem, words: Words) -> dict[str, Any] | None:
    is_over = item.state in ("reset", "passed") or (item.by == "thought" and item.state != "streaming")
    if item.by == "body":
        return None
    if is_over:
        return {"kind": "gone", "id": item.id}
    if item.by == "model":
        return _fields(item, words, "by", "state", "duck") | {"html": markdown(item.text)}
    return _fields(item, words, "by", "state", "text", "meanwhile", "pictures")


def _notice(item: NoticeItem, words: Words) -> dict[str, Any] | None:
    if item.about == "offered":
        return {"kind": "offered", "id": item.id, "text": plain(item.subject)}
    text = notice_line(item, words) if item.about in NOTICES else ""
    is_well = (item.outcome is None or ended_well(item.outcome)) and not (item.proof and item.proof.hollow)
    fields = _fields(item, words, "about", "proof", "turn", "paths", "subject") | {"text": plain(text), "well": is_well}
    return fields if text else None


def _fields(item: Item, words: Words, *names: str) -> dict[str, Any]:
    item_fields = item._asdict()
    common_fields = {"kind": item.kind, "id": item.id, "number": item.number, "at": item.at}
    return common_fields | {name: worded(_dumped(item_fields[name]), words) for name in names}


def _dumped(value: Any) -> Any:
    match value:
        case MutableData() | FrozenData():
            return value.model_dump(mode="json")
        case tuple():
            return [_dumped(element) for element in cast("tuple[Any, ...]", value)]
        case _:
            return value


def sent(data: dict[str, Any]) -> bytes:
    """Encodes the message as a server-sent event. JSON contains no line breaks, which would end the event."""
    name = f"id: {data['number']}\n" if data["number"] else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def markdown(text: str) -> str:
    """Renders Markdown as HTML. A text that would take long to parse is shown unrendered, since all pages wait
    meanwhile."""
    if len(text) > LONGEST_MARKDOWN or text.count("[") > MOST_BRACKETS:
        return f"<pre>{escape(plain(text))}</pre>"
    return _renderer()(plain(text))


@cache
def _renderer() -> Callable[[str], str]:
    """Makes a renderer that drops HTML in the text, pictures (they would be fetched), and links that do not lead to
    other sites."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.tasklists import tasklists_plugin

    reader = MarkdownIt("js-default").disable("image").use(tasklists_plugin, label=True).use(footnote_plugin)
    keep_literal_signs(reader)
    reader.validateLink = lambda url: url.lower().startswith(LINKS)
    reader.add_render_rule("link_open", _open_link)
    for cell_rule in ("th_open", "td_open"):
        reader.add_render_rule(cell_rule, _open_cell)
    return reader.render


def _open_link(reader: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("target", "_blank")
    tokens[place].attrSet("rel", "noopener noreferrer")
    return reader.renderToken(tokens, place, options, env)


def _open_cell(reader: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    """Turns the alignment of a table cell into a class: the page allows no inline styles."""
    cell_style = tokens[place].attrs.pop("style", "")
    if cell_style:
        tokens[place].attrSet("class", cell_style.replace(":", "-"))
    return reader.renderToken(tokens, place, options, env)

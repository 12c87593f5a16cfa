"""Reads fields of JSON of which only the outline is known: what is missing or of another kind is empty."""

import json
from collections.abc import Mapping
from typing import Any, cast

DECODER = json.JSONDecoder(strict=False)
"""Takes line ends inside of texts, which some servers send."""
MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 1_000_000.0


def read_json(text: str | bytes) -> Any:
    """The value of a text that others wrote; None where it is no JSON, or nested too deeply."""
    try:
        return DECODER.decode(text if isinstance(text, str) else text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def as_table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def tables(value: Any) -> list[dict[str, Any]]:
    """Those of a list's items that are tables."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [as_table(one) for one in items if isinstance(one, dict)]


def text_of(table: Mapping[str, Any], *names: str) -> str:
    """The first of these that is a text."""
    return next((value for name in names if isinstance(value := table.get(name), str) and value), "")


def first_table(value: Any) -> dict[str, Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return as_table(items[0]) if items else {}


def as_text(value: Any) -> str:
    """A string, or the text of a list of content parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    parts = [as_table(part) for part in cast("list[Any]", value)]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") == "text")


def as_count(value: Any) -> int:
    """Of tokens: none where it is no number, or a negative one; one that cannot be true is cut down."""
    return int(min(value, MOST_TOKENS)) if isinstance(value, int | float) and value > 0 else 0


def as_cost(value: Any) -> float:
    """In dollars, likewise."""
    return float(min(value, MOST_DOLLARS)) if isinstance(value, int | float) and value > 0 else 0.0

"""Reading JSON of which only the outline is known: what is not there is empty."""

from typing import Any, cast


def table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def first_table(value: Any) -> dict[str, Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return table(items[0]) if items else {}


def text_of(value: Any) -> str:
    """A string, or the text of a list of content parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    parts = [table(part) for part in cast("list[Any]", value)]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") == "text")


def count_of(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0

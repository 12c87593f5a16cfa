"""What all nouns share: pydantic settings, ids, and text that keeps its limit."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 1_000_000.0


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


ELLIPSIS = "…"


class Noun(BaseModel):
    """Mutable data owned by the session's state."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Value(BaseModel):
    """Data that never changes once made."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Section(BaseModel):
    """A part of the settings: a name that it does not know is refused, and so is a number without end."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


def new_id(prefix: str) -> Callable[[], str]:
    """A factory of ids such as `plan_1a2b3c4d`."""
    return lambda: f"{prefix}_{uuid4().hex[:8]}"


def shorten(text: str, limit: int) -> str:
    """Cut at a word boundary with `…`, so that the result has at most `limit` characters."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ")
    # Japanese has no spaces: a boundary far back would throw away most of the text.
    if not text[limit - 1].isspace() and space >= limit // 2:
        cut = cut[:space]
    return cut.rstrip() + ELLIPSIS


def at_most(limit: int) -> AfterValidator:
    return AfterValidator(lambda text: shorten(text, limit))


def first(limit: int, counted: bool = False) -> BeforeValidator:
    """Keep only the first `limit` items of a list. `counted`: the last of them says how many are not told."""

    def keep(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        kept, left = cast("list[Any]", items)[:limit], len(cast("list[Any]", items)) - limit
        return [*kept[:-1], f"{shorten(str(kept[-1]), 90)} … +{left}"] if counted and left > 0 else kept

    return BeforeValidator(keep)


Line100 = Annotated[str, at_most(100)]
Line200 = Annotated[str, at_most(200)]


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def holds(text: str, words: str) -> bool:
    return folded(words) in folded(text)


def same_words(one: str, other: str) -> bool:
    """Says whether two texts differ only in quotes, spaces and other signs: a model may set those differently."""
    return _letters(one) == _letters(other)


def _letters(text: str) -> str:
    return "".join(sign for sign in folded(text) if sign.isalnum())

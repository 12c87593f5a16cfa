"""What all nouns share: pydantic settings, ids, and text that keeps its limit."""

import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, cast
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

ELLIPSIS = "…"


class Noun(BaseModel):
    """Mutable data owned by the session's state."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Value(BaseModel):
    """Data that never changes once made."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Section(BaseModel):
    """A part of the settings: a name that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


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

"""The base of all data types: pydantic settings, ids, texts of limited length, and reading of untyped data. A phrase
names a sentence for the user, or a note for the model, by a key; i18n has the texts in each language."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from duckflow.errors import DuckflowError

MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 1_000_000.0


def as_table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def tables(value: Any) -> list[dict[str, Any]]:
    """Returns the items of a list that are tables (dicts)."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [as_table(item) for item in items if isinstance(item, dict)]


def text_of(table: Mapping[str, Any], *names: str) -> str:
    """Returns the first entry of the table, among these keys, that is a text."""
    return next((value for name in names if isinstance(value := table.get(name), str) and value), "")


def first_table(value: Any) -> dict[str, Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return as_table(items[0]) if items else {}


def as_text(value: Any) -> str:
    """Returns a string, or the joined text of a list of content parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    content_parts = [as_table(part) for part in cast("list[Any]", value)]
    return "".join(str(part.get("text") or "") for part in content_parts if part.get("type", "text") == "text")


def as_count(value: Any) -> int:
    """Returns a number of tokens: 0 for a value that is not a positive number, and an upper limit for an impossibly
    large one."""
    return int(min(value, MOST_TOKENS)) if isinstance(value, int | float) and value > 0 else 0


def as_cost(value: Any) -> float:
    """Returns a cost in dollars: 0 for a value that is not a positive number, and an upper limit for an impossibly
    large one."""
    return float(min(value, MOST_DOLLARS)) if isinstance(value, int | float) and value > 0 else 0.0


ELLIPSIS = "…"


class MutableData(BaseModel):
    """Mutable data that is part of the session's state."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class FrozenData(BaseModel):
    """Data that cannot be changed once it is made."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Section(BaseModel):
    """A part of the settings. It refuses unknown names and infinite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


def new_id(prefix: str) -> Callable[[], str]:
    """Returns a factory of ids such as `plan_1a2b3c4d`."""
    return lambda: f"{prefix}_{uuid4().hex[:8]}"


def shorten(text: str, limit: int) -> str:
    """Cuts a text at a word boundary and adds `…`, so that the result has at most `limit` characters."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut_text = text[: limit - 1]
    space = cut_text.rfind(" ")
    # Japanese has no spaces: a boundary far back would throw away most of the text.
    if not text[limit - 1].isspace() and space >= limit // 2:
        cut_text = cut_text[:space]
    return cut_text.rstrip() + ELLIPSIS


SENTENCE_END = re.compile(r"[.!?]['\")\]*]*(?=\s)|[。！？]|\n")


def whole_sentences(text: str, limit: int) -> str:
    """Cuts a text after the last sentence or line that fits and is not in the middle of code, and adds `…`. Line breaks
    stay. A first sentence that is too long is cut at a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    ends = [match.end() for match in SENTENCE_END.finditer(text, 0, limit - 1)]
    beginnings = [text[:end].rstrip() for end in ends if text.count("`", 0, end) % 2 == 0]
    if beginnings and len(beginnings[-1]) >= limit // 4:
        return f"{beginnings[-1]} {ELLIPSIS}"
    line = shorten(text, limit)
    return line if line.count("`") % 2 == 0 else line[: line.rindex("`")].rstrip() + ELLIPSIS


def at_most(limit: int) -> AfterValidator:
    return AfterValidator(lambda text: shorten(text, limit))


def first(limit: int, counted: bool = False) -> BeforeValidator:
    """Keeps only the first `limit` items of a list. With `counted`, the last of them says how many were left out."""

    def keep(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        shown_items, omitted_count = cast("list[Any]", items)[:limit], len(cast("list[Any]", items)) - limit
        return (
            [*shown_items[:-1], f"{shorten(str(shown_items[-1]), 90)} … +{omitted_count}"]
            if counted and omitted_count > 0
            else shown_items
        )

    return BeforeValidator(keep)


Line100 = Annotated[str, at_most(100)]
Line200 = Annotated[str, at_most(200)]
Sentences = Annotated[str, AfterValidator(lambda text: whole_sentences(text, 800))]
"""A few sentences that people read: they are not cut in the middle."""


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def holds(text: str, words: str) -> bool:
    return folded(words) in folded(text)


def same_words(text: str, other: str) -> bool:
    """Says whether two texts differ only in quotes, spaces and other signs, which a model may set differently."""
    return _letters(text) == _letters(other)


def _letters(text: str) -> str:
    return "".join(sign for sign in folded(text) if sign.isalnum())


def clamp(value: float) -> float:
    return min(1.0, max(0.0, float(value)))


Unit = Annotated[float, BeforeValidator(clamp)]
"""A number from 0 to 1."""


SAID = "talk.said"
"""The key of the phrase for a text that the model says to the user."""
LEFT_OUT = "tool.left_out"
"""The key of the phrase for an action that did not run because nobody was there to allow it."""
REFUSED = "tool.refused"
"""The key of the phrase for an action that the user refused."""
WISHED = "tool.wished"
"""The key of the phrase for an action that was held back because the user wants something else first."""
CAUSE = "cause"


class Phrase(FrozenData):
    """A sentence for people: a key of the catalogue, or own texts by language, and the values to fill in."""

    key: str
    values: dict[str, str | int | float] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.key, *self.values.items(), *self.texts.items()))

    def with_cause(self, cause: str) -> "Phrase":
        """Returns the phrase with a technical cause added. The cause is not part of the sentence, and is shown where
        there is room for it."""
        return self.model_copy(update={"values": {**self.values, CAUSE: cause}})

    @property
    def cause(self) -> str:
        return str(self.values.get(CAUSE, ""))


def say(key: str, **values: str | int | float) -> Phrase:
    return Phrase(key=key, values=values)


def tell(texts: Mapping[str, str], **values: str | int | float) -> Phrase:
    """Makes a phrase with its own texts by language, which no catalogue has."""
    return Phrase(key="", values=values, texts=dict(texts))


def quote(text: str) -> Phrase:
    """Makes a phrase of somebody else's words, which are not translated."""
    return say("talk.quoted", text=text)


def said(error: DuckflowError) -> Phrase:
    return Phrase(key=error.key, values=dict(error.values))

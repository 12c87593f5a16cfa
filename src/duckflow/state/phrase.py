"""Words for people, by key: the catalogue in i18n turns a phrase into the user's language."""

from pydantic import Field

from duckflow.errors import DuckflowError
from duckflow.state.noun import Value


class Phrase(Value):
    """A catalogue key and what to fill in."""

    key: str
    values: dict[str, str | int | float] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.key, *self.values.items()))


def say(key: str, **values: str | int | float) -> Phrase:
    return Phrase(key=key, values=values)


def said(error: DuckflowError) -> Phrase:
    return Phrase(key=error.key, values=dict(error.values))

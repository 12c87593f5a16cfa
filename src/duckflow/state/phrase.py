"""Phrases: sentences by key. i18n puts a phrase into the user's language, and the notes in prompts into the model's."""

from collections.abc import Mapping

from pydantic import Field

from duckflow.errors import DuckflowError
from duckflow.state.data import FrozenData

SAID = "talk.said"
"""The key of the phrase for a text that the model says to the user."""
LEFT_OUT = "tool.left_out"
"""The key of the phrase for an action that was left out because nobody was there to allow it."""
REFUSED = "tool.refused"
"""The key of the phrase for an action that the user refused."""
WISHED = "tool.wished"
"""The key of the phrase for an action that was held back because the user wants something else first."""
CAUSE = "cause"


class Phrase(FrozenData):
    """A key of the catalogue, or its own texts by language; and the values to fill in."""

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

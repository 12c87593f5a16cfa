"""Words by key: i18n puts a phrase into the user's language, the notes in prompts into one for the model."""

from collections.abc import Mapping

from pydantic import Field

from duckflow.errors import DuckflowError
from duckflow.state.noun import Value

SAID = "talk.said"
"""The phrase of what the model says to the user."""
LEFT_OUT = "tool.left_out"
"""The phrase of an action that nobody was there to allow."""
REFUSED = "tool.refused"
"""The phrase of an action that the user said no to."""
WISHED = "tool.wished"
"""The phrase of an action in whose place the user wants another one first."""
CAUSE = "cause"


class Phrase(Value):
    """A catalogue key, or texts of its own by language; and what to fill in."""

    key: str
    values: dict[str, str | int | float] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.key, *self.values.items(), *self.texts.items()))

    def with_cause(self, cause: str) -> "Phrase":
        """Not part of the sentence: for those who have room for it."""
        return self.model_copy(update={"values": {**self.values, CAUSE: cause}})

    @property
    def cause(self) -> str:
        return str(self.values.get(CAUSE, ""))


def say(key: str, **values: str | int | float) -> Phrase:
    return Phrase(key=key, values=values)


def tell(texts: Mapping[str, str], **values: str | int | float) -> Phrase:
    """A phrase that no catalogue knows, by language."""
    return Phrase(key="", values=values, texts=dict(texts))


def quote(text: str) -> Phrase:
    """Somebody else's words, in no language of ours."""
    return say("talk.quoted", text=text)


def said(error: DuckflowError) -> Phrase:
    return Phrase(key=error.key, values=dict(error.values))

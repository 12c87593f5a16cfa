"""Settings of what people see."""

from pydantic import BaseModel, ConfigDict


class UiSettings(BaseModel):
    """How the terminal looks."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    emoji: bool = True
    """Faces for the vitals; without them they are told in figures."""
    color: bool = True
    ascii: bool = False
    """Only plain signs for borders, bullets and the spinner: for terminals that draw the others two columns wide."""

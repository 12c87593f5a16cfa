"""Settings of what people see."""

from typing import Literal

from pydantic import Field

from duckflow.state.noun import Section


class UiSettings(Section):
    """How the terminal looks."""

    emoji: bool = True
    """Faces for the vitals; without them they are told in figures."""
    color: bool = True
    notify: Literal["off", "bell", "desktop"] = "bell"
    """How the user is called when something that took its time is done or asks."""
    notify_seconds: float = Field(default=15.0, ge=0)
    """What is done sooner calls nobody."""
    ascii: bool = False
    """Only plain signs for borders, bullets and the spinner: for terminals that draw the others two columns wide."""

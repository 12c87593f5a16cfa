"""Settings of the terminal."""

from typing import Literal

from pydantic import Field

from duckflow.state.data import Section


class UiSettings(Section):
    """The look of the terminal, and when the user is called."""

    emoji: bool = True
    """Shows the vitals as faces; otherwise as figures."""
    color: bool = True
    notify: Literal["off", "bell", "desktop"] = "bell"
    """The way in which the user is called when work that took long has ended or asks something."""
    notify_seconds: float = Field(default=15.0, ge=0)
    """The user is called only after work that took at least this many seconds."""
    ascii: bool = False
    """Uses only plain signs for borders, bullets and the spinner, for terminals that draw the others two columns
    wide."""

"""What every event is, and those that begin and change a session."""

import time
from typing import ClassVar

from pydantic import Field

from duckflow.state.noun import Value
from duckflow.state.phrase import Phrase


class Event(Value):
    """Something that happened, with its time."""

    kind: ClassVar[str]
    live: ClassVar[bool] = False
    """Live events are for the screen only: they change no state and are not kept."""
    at: float = Field(default_factory=time.time)

    @property
    def journaled(self) -> bool:
        return not self.live


class SessionOpened(Event):
    """First event of a journal. A fork names the session it came from."""

    kind = "session_opened"
    session_id: str
    folder: str
    language: str
    forked_from: str = ""


class JournalSalvaged(Event):
    """The journal was damaged: so many events were saved, and the damaged file lies at `aside`."""

    kind = "journal_salvaged"
    saved: int
    aside: str


class ModelChosen(Event):
    """Before the first turn, and whenever the model changes."""

    kind = "model_chosen"
    model: str
    why: Phrase
    window: int = 0
    """How many tokens fit into one request and its reply."""


class LanguageChosen(Event):
    kind = "language_chosen"
    language: str


class ModeChosen(Event):
    """What may be done without asking from now on."""

    kind = "mode_chosen"
    mode: str


class SessionTitled(Event):
    """The user gave the session a name of its own."""

    kind = "session_titled"
    title: str

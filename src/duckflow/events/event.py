"""The base of all events, questions (which may stay off the record), and the events that begin and change a session."""

import time
from typing import ClassVar

from pydantic import Field

from duckflow.state.data import FrozenData, Phrase
from duckflow.state.question import Answer, Question


class Event(FrozenData):
    """Something that happened, with its time."""

    kind: ClassVar[str]
    live: ClassVar[bool] = False
    """Live events are only for the screen: they change no state and are not stored."""
    at: float = Field(default_factory=time.time)

    @property
    def journaled(self) -> bool:
        return not self.live


class QuestionAsked(Event):
    """A question was put to the user. Nothing that it asks about has been done yet. Only questions with `on_record` are
    stored."""

    kind = "question_asked"
    question: Question

    @property
    def journaled(self) -> bool:
        return self.question.on_record


class QuestionClosed(Event):
    """A question was answered or given up; this follows its QuestionAsked. If there is no answer, the asker was
    interrupted. The event is then not stored, so that the journal shows which question was waiting."""

    kind = "question_closed"
    question_id: str
    answer: Answer | None = None
    on_record: bool = False

    @property
    def journaled(self) -> bool:
        return self.on_record


class SessionOpened(Event):
    """The first event of a journal. A fork names the session it came from."""

    kind = "session_opened"
    session_id: str
    folder: str
    language: str
    forked_from: str = ""


class JournalSalvaged(Event):
    """The journal was damaged. `saved` events could be recovered, and the damaged file is now at `aside`."""

    kind = "journal_salvaged"
    saved: int
    aside: str


class ModelChosen(Event):
    """A model was chosen, before the first turn or as a change during the session."""

    kind = "model_chosen"
    model: str
    why: Phrase
    window: int = 0
    """The number of tokens that fit into one request and its reply."""


class LanguageChosen(Event):
    kind = "language_chosen"
    language: str


class ModeChosen(Event):
    """The user chose a mode: how much may be done without asking from now on."""

    kind = "mode_chosen"
    mode: str


class SessionTitled(Event):
    """The user gave the session a title."""

    kind = "session_titled"
    title: str

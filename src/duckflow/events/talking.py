"""Live events of the talk itself: what was typed, what is asked, which commands run, and that it is over.

Every front end of a conversation hears them, so that it can show what was typed at another one. A message is told by
MessageAdded when its turn begins.
"""

from typing import Literal

from duckflow.events.event import Event
from duckflow.events.views import Unheard
from duckflow.state.phrase import Phrase
from duckflow.state.question import Answer, Question


class LineTaken(Event):
    """A line that is no message was typed; what comes of it follows."""

    journaled = False
    kind = "line_taken"
    text: str


class LineOffered(Event):
    """A line for the user to change and to say again."""

    journaled = False
    kind = "line_offered"
    text: str


class QuestionAsked(Event):
    """A question is open. Those at the Gate and of the Pacemaker are on record as GateOpened and DuckCalled, too."""

    journaled = False
    kind = "question_asked"
    question: Question


class QuestionClosed(Event):
    """It was answered, or what asked it has been interrupted."""

    journaled = False
    kind = "question_closed"
    question_id: str
    answer: Answer | None = None


class CommandStarted(Event):
    """A command that was typed, a slash command or the user's own, runs beside the turns."""

    journaled = False
    kind = "command_started"
    command_id: int
    line: str


class CommandFinished(Event):
    """Follows its CommandStarted, with the lines to show, or why it could not be carried out."""

    journaled = False
    kind = "command_finished"
    command_id: int
    text: str = ""
    problem: Phrase | None = None


class NowChanged(Event):
    """What goes on has changed beside what other events tell: the same as the port's properties of these names."""

    journaled = False
    kind = "now_changed"
    in_turn: bool
    busy: bool
    waiting: tuple[Unheard, ...]
    health_bar: Phrase


class ConversationLeft(Event):
    """The last event: the user leaves, for another session or for good; `detached`, and the jobs go on in a process of
    their own."""

    journaled = False
    kind = "conversation_left"
    where: Literal["out", "other_session", "detached"]

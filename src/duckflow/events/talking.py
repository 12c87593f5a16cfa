"""Events of a review, and live events of the talk itself: typed lines, running commands, and the end of the talk.

Every front end of a conversation hears the live ones, so that it can show what was typed at another one. A message is
announced by MessageAdded when its turn begins."""

from typing import Literal

from duckflow.events.event import Event
from duckflow.events.views import Unheard
from duckflow.state.changes import Hunk, LineComment, ReviewFinding
from duckflow.state.data import Phrase
from duckflow.state.question import Question


class ReviewEvent(Event):
    """The base of events about the lines of a diff."""

    kind = "review"


class LineCommented(ReviewEvent):
    """The user commented on a line, and the comment waits to be sent. It replaces an earlier comment with the same
    id."""

    kind = "line_commented"
    comment: LineComment


class CommentsLeft(ReviewEvent):
    """Some comments no longer wait: they were sent with a message, or dropped."""

    kind = "comments_left"
    comment_ids: tuple[str, ...]
    sent: bool


class HunkMarked(ReviewEvent):
    """The user marked a hunk as read, or removed the mark."""

    kind = "hunk_marked"
    hunk_id: str
    reviewed: bool = True


class HunkMoved(ReviewEvent):
    """A hunk was taken back, or put into the file again."""

    kind = "hunk_moved"
    hunk: Hunk
    back: bool


class FindingMade(ReviewEvent):
    """A review agent has found something. It replaces the same agent's earlier finding at the same line."""

    kind = "finding_made"
    finding: ReviewFinding


class FindingWithdrawn(ReviewEvent):
    kind = "finding_withdrawn"
    agent_id: str
    place: str


class LineTaken(Event):
    """The user typed a line that is not a message. Its effect follows as further events."""

    live = True
    kind = "line_taken"
    text: str


class AskedBack(Event):
    """The user asks something about an open Gate (a question before a risky action). The Gate stays open; the model's
    answer follows as a notice."""

    live = True
    kind = "asked_back"
    question: Question
    text: str


class WordsPassedOn(Event):
    """A part of what the user said at the Gate of a job (the question before a risky action) goes on to the
    conversation as a message. `answered`: the Gate got its answer; otherwise it stays open."""

    live = True
    kind = "words_passed_on"
    question: Question
    text: str
    answered: bool


class LineOffered(Event):
    """The user is offered a line to change and send again."""

    live = True
    kind = "line_offered"
    text: str


class CommandStarted(Event):
    """A typed command began to run beside the turns: a slash command, or the user's own."""

    live = True
    kind = "command_started"
    command_id: int
    line: str


class CommandFinished(Event):
    """A command has ended, with the lines to show, or the reason why it could not be carried out."""

    live = True
    kind = "command_finished"
    command_id: int
    text: str = ""
    problem: Phrase | None = None


class NowChanged(Event):
    """The present activity has changed, and no other event says so. The fields have the names of properties of
    `Conversation`."""

    live = True
    kind = "now_changed"
    in_turn: bool
    busy: bool
    waiting: tuple[Unheard, ...]
    health_bar: Phrase


class ConversationLeft(Event):
    """The last event: the user leaves, for another session or for good. With `detached`, the jobs go on in a process of
    their own."""

    live = True
    kind = "conversation_left"
    where: Literal["out", "other_session", "detached"]

"""Events of those who look through changes: a user's comments, marks and hunks taken back, and what review
agents find."""

from duckflow.events.event import Event
from duckflow.state.finding import ReviewFinding
from duckflow.state.hunk import Hunk, LineComment


class ReviewEvent(Event):
    """Something about the lines of a diff."""

    kind = "review"


class LineCommented(ReviewEvent):
    """A comment waits to be sent. One with the id of another takes its place."""

    kind = "line_commented"
    comment: LineComment


class CommentsLeft(ReviewEvent):
    """Comments wait no more: they were sent with a message, or dropped."""

    kind = "comments_left"
    comment_ids: tuple[str, ...]
    sent: bool


class HunkMarked(ReviewEvent):
    """The user has read a hunk, or takes the mark away."""

    kind = "hunk_marked"
    hunk_id: str
    reviewed: bool = True


class HunkMoved(ReviewEvent):
    """A hunk was taken back, or put in again."""

    kind = "hunk_moved"
    hunk: Hunk
    back: bool


class FindingMade(ReviewEvent):
    """A review agent has found something. It takes the place of what the same agent found at the same line."""

    kind = "finding_made"
    finding: ReviewFinding


class FindingWithdrawn(ReviewEvent):
    kind = "finding_withdrawn"
    agent_id: str
    place: str

"""Says which part of a session's work an undo takes back, and who has done a piece of that work."""

from typing import NamedTuple


class WorkAuthor(NamedTuple):
    """A turn of the conversation; or a step of a background job, with the turn in which it began."""

    turn: int
    job: str = ""
    step: str = ""

    @property
    def name(self) -> str:
        """The key under which the work is kept."""
        return f"{self.job}/{self.step}" if self.job else str(self.turn)

    @property
    def whole(self) -> "UndoScope":
        """The turn, or the job with all of its steps."""
        return UndoScope(job=self.job) if self.job else UndoScope(turn=self.turn)


class UndoScope(NamedTuple):
    """Without anything it means the work that changed something last: a turn, or a whole job."""

    turn: int = 0
    job: str = ""
    step: str = ""
    """A step of any job; with `job` of that one."""
    since: int = 0
    """Everything from this turn on, jobs that began then included."""
    paths: tuple[str, ...] = ()
    """Only these files of it, and what lies in these folders. Alone: the newest change of each, whoever made it."""
    without: frozenset[str] = frozenset()
    """Jobs that are left alone, since they still run."""

    @property
    def named(self) -> bool:
        return bool(self.turn or self.job or self.step or self.since)

    def touches(self, path: str) -> bool:
        return not self.paths or any(path == wanted or path.startswith(f"{wanted}/") for wanted in self.paths)

    def holds(self, author: WorkAuthor) -> bool:
        """Says whether a piece of work belongs to the scope; to one that names nothing belongs all."""
        if author.job in self.without:
            return False
        if self.since:
            return author.turn >= self.since
        if self.turn:
            return author.turn == self.turn and not author.job
        return (not self.job or author.job == self.job) and (not self.step or author.step == self.step)


LATEST = UndoScope()

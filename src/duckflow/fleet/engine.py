"""Data types of a fleet: its order, its progress, and its limits for models."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from duckflow.errors import UsageError
from duckflow.fleet.task import LARGEST_NUMBER, AttemptOutcome, AttemptReport, FleetTask
from duckflow.state.data import FrozenData, Phrase

TaskProgress = Literal["waiting", "running", "choose", "done", "failed", "cancelled", "merged"]
"""Stages of a task. `choose`: its attempts have ended, and a person has to pick one. `done`: an attempt is picked."""

OVER = ("merged", "failed", "cancelled")
"""Stages of a task in which nothing is left to decide."""

AttemptProgress = Literal["queued", "running"] | AttemptOutcome
LIVE = ("queued", "running")

Choose = Callable[[Sequence[AttemptReport], bool], int | None]
"""A function that returns the number of the best attempt that may be merged. `True` means that other attempts still
run; then only an attempt that is clearly good is chosen."""


class Happening(NamedTuple):
    """An event for people: an attempt asks something, a choice is due, a task is done or has failed."""

    event: Literal["waiting", "done", "failed"]
    fleet: str
    task: str
    attempt: int = 0
    said: Phrase | None = None


Notify = Callable[[Happening], None]


class FleetState(FrozenData):
    """A fleet and its progress."""

    fleet: str
    started: float
    """The time of the start, in seconds since 1970. All times in this file are of this form."""
    budget_usd: float
    """Dollars for the whole fleet; 0 means no limit."""
    budget_tokens: int = 0
    cost_usd: float
    tokens: int
    tasks: dict[TaskProgress, int]
    places: tuple[str, ...] = ()
    """The machines that the fleet's tasks were given to."""
    workers: int = 0
    """Number of living workers on the machines of this fleet."""

    @property
    def forsaken(self) -> bool:
        """Says whether the fleet has tasks left but no worker."""
        return not self.ended and not self.workers

    @property
    def ended(self) -> bool:
        return not (self.tasks.get("waiting", 0) or self.tasks.get("running", 0))

    @property
    def over(self) -> bool:
        """Says whether no task of the fleet is still to be picked or merged."""
        return all(state in OVER for state, count in self.tasks.items() if count)


class TaskState(FrozenData):
    """A task of a fleet and its progress."""

    fleet: str
    task: FleetTask
    place: str
    """The machine that carries out the task."""
    state: TaskProgress
    round: int = 1
    """Number of times that attempts were started for the task."""
    picked: int | None
    """The number of the attempt that a person or the fleet itself has picked. In the stage `choose` it is only the
    fleet's suggestion to a person."""
    merged: str
    """The commit on the user's branch that merged the task."""
    delivered: str = ""
    """The remote and branch to which the task's result was pushed, or the address of its pull request."""


class AttemptState(FrozenData):
    """An attempt and its progress."""

    fleet: str
    task: str
    number: int
    round: int = 1
    """The round of the task that the attempt belongs to."""
    state: AttemptProgress
    doing: str
    """The current stage, in one word that the attempt reports."""
    worker: str
    goes: int
    """Number of times that the attempt was begun: more than once where a worker died."""
    taken: float
    """The time when the latest worker took the attempt."""
    ended: float
    cost_usd: float
    tokens: int
    open_questions: int
    report: AttemptReport | None

    @property
    def live(self) -> bool:
        """Says whether the attempt has not ended."""
        return self.state in LIVE


class WorkerState(FrozenData):
    """A worker, as last recorded in the database."""

    worker: str
    place: str
    machine: str
    seen: float
    """The time of the lease's last renewal."""
    lives: bool
    running: int
    """Number of attempts that the worker carries out."""


class TaskFigures(FrozenData):
    """The cost and the result of a task. These figures are kept after the task's fleet is removed from the database."""

    task: str
    repository: str
    state: TaskProgress
    attempts: int
    cost_usd: float
    tokens: int
    seconds: float
    """Seconds of all attempts, without the time in which they waited for a person."""
    proof: str = ""
    result: str = ""
    """The place to which the task was delivered, or else the commit that merged it, or else its branch."""


class LogLine(FrozenData):
    """A log line of an attempt, or of the engine about it."""

    line: int
    """Number of the line; later lines have larger numbers."""
    at: float
    task: str
    attempt: int
    said: Phrase


class Limit(FrozenData):
    """Limits for calls to a model. They hold for all fleets of a database, over all machines."""

    model: str
    """The model's name in tasks, or a pattern for all models of one endpoint."""
    at_once: int | None = None
    """The most attempts that may run at once."""
    requests: int | None = None
    """The most requests in a minute."""
    tokens: int | None = None
    """The most tokens of prompts and replies in a minute."""

    @classmethod
    def read(cls, text: str) -> "Limit":
        """Reads `MODEL=AT_ONCE/REQUESTS/TOKENS`. Each figure may be left out; `MODEL=` removes the limit."""
        model, _, figures = text.rpartition("=")
        figure_texts = figures.split("/")
        if not model or len(figure_texts) > 3 or not all(not text or _is_count(text) for text in figure_texts):
            raise UsageError("fleet.limit", text=text)
        named_texts = zip(("at_once", "requests", "tokens"), figure_texts, strict=False)
        return cls(model=model, **{name: int(text) for name, text in named_texts if text})

    def covers(self, model: str) -> bool:
        return fnmatchcase(model, self.model)


class FleetOrder(NamedTuple):
    """A fleet that is to be started."""

    tasks: Sequence[FleetTask]
    budget_usd: float = 0.0
    """Dollars for the whole fleet; 0 means no limit."""
    places: Sequence[str] = ()
    """Machines to which the tasks are dealt in turn; empty means this machine only."""
    limits: Sequence[Limit] = ()
    budget_tokens: int = 0


def _is_count(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) <= LARGEST_NUMBER

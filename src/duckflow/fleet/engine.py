"""The nouns of a fleet: what is ordered, how far it is, and what of a model it may use."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from duckflow.errors import UsageError
from duckflow.fleet.task import AttemptOutcome, AttemptReport, FleetTask
from duckflow.state.noun import Value
from duckflow.state.phrase import Phrase

TaskProgress = Literal["waiting", "running", "choose", "done", "failed", "cancelled", "merged"]
"""`choose`: its attempts have ended and a person has to pick one. `done`: one is picked."""

OVER = ("merged", "failed", "cancelled")
"""Of tasks: there is nothing left to decide."""

AttemptProgress = Literal["queued", "running"] | AttemptOutcome
LIVE = ("queued", "running")

Choose = Callable[[FleetTask, Sequence[AttemptReport], bool], int | None]
"""The number of the best attempt that may be merged. With `True` others still run: only one that is clearly good."""


class Happening(NamedTuple):
    """Something that people may want to hear of: an attempt asks or a choice is due, a task is done or has failed."""

    event: Literal["waiting", "done", "failed"]
    fleet: str
    task: str
    attempt: int = 0
    said: Phrase | None = None


Notify = Callable[[Happening], None]


class FleetState(Value):
    """A fleet and how far it is."""

    fleet: str
    started: float
    """Seconds since 1970, as all times here."""
    budget_usd: float
    """0 without a limit."""
    budget_tokens: int = 0
    cost_usd: float
    tokens: int
    tasks: dict[TaskProgress, int]
    workers: int = 0
    """Workers that live, on the machines of this fleet."""

    @property
    def forsaken(self) -> bool:
        """Says whether there is something to do and nobody who does it."""
        return not self.ended and not self.workers

    @property
    def ended(self) -> bool:
        return not (self.tasks.get("waiting", 0) or self.tasks.get("running", 0))

    @property
    def over(self) -> bool:
        """Nothing of it is to be picked or merged."""
        return all(state in OVER for state, count in self.tasks.items() if count)


class TaskState(Value):
    """A task of a fleet and how far it is."""

    fleet: str
    task: FleetTask
    place: str
    """The machine that it is carried out on."""
    state: TaskProgress
    picked: int | None
    """The attempt that was picked, by a person or as the best one; while a person has to choose: what seems best."""
    merged: str
    """The commit that it became on the user's branch."""
    delivered: str = ""
    """Where its result was pushed, or the address of its pull request."""


class AttemptState(Value):
    """An attempt and how far it is."""

    fleet: str
    task: str
    number: int
    state: AttemptProgress
    doing: str
    """One word of its own."""
    worker: str
    goes: int
    """How often it was begun: more than once where a worker died."""
    started: float
    ended: float
    cost_usd: float
    tokens: int
    open_questions: int
    report: AttemptReport | None

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.state in LIVE


class WorkerState(Value):
    """A worker, as its machine has last told of it."""

    worker: str
    place: str
    machine: str
    seen: float
    """When it last said that it lives."""
    lives: bool
    running: int
    """Attempts that it carries out."""


class TaskFigures(Value):
    """What a task has cost and come to. It is kept when its fleet is taken out of the database."""

    task: str
    repository: str
    state: TaskProgress
    attempts: int
    cost_usd: float
    tokens: int
    seconds: float
    """Of all attempts, without the time in which they waited for a person."""
    proof: str = ""
    result: str = ""
    """Where it was delivered, or the commit that it became, or its branch."""


class LogLine(Value):
    """A line of an attempt, or of the engine about it."""

    line: int
    """Grows from line to line."""
    at: float
    task: str
    attempt: int
    said: Phrase


class Limit(Value):
    """How much of a model the fleets of a database may use at a time, over all machines."""

    model: str
    """As tasks name it, or a pattern for all models of one endpoint."""
    at_once: int | None = None
    """Attempts."""
    requests: int | None = None
    """In a minute."""
    tokens: int | None = None
    """In a minute, prompts and replies."""

    @classmethod
    def read(cls, text: str) -> "Limit":
        """`MODEL=AT_ONCE/REQUESTS/TOKENS`, each of them may be left out; `MODEL=` for no limit any more."""
        model, _, figures = text.rpartition("=")
        parts = figures.split("/")
        if not model or len(parts) > 3 or not all(not part or _is_count(part) for part in parts):
            raise UsageError("fleet.limit", text=text)
        named = zip(("at_once", "requests", "tokens"), parts, strict=False)
        return cls(model=model, **{name: int(part) for name, part in named if part})

    def covers(self, model: str) -> bool:
        return fnmatchcase(model, self.model)


class FleetOrder(NamedTuple):
    """A fleet that is to be started."""

    tasks: Sequence[FleetTask]
    budget_usd: float = 0.0
    """For all of it; 0 without a limit."""
    places: Sequence[str] = ()
    """Machines that the tasks are dealt out to in turn; none: all are for this one."""
    limits: Sequence[Limit] = ()
    budget_tokens: int = 0


def _is_count(text: str) -> bool:
    return text.isdecimal() and int(text) > 0

"""What a fleet works on and what comes of it. Everything travels as JSON, between processes and machines."""

import re
from collections.abc import Awaitable, Callable, Container, Sequence
from itertools import chain, count
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import DuckflowError
from duckflow.state.checks import ProofVerdict
from duckflow.state.mode import Mode
from duckflow.state.noun import Value, new_id, shorten
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question

MOST_ATTEMPTS = 4
NAME = re.compile(r"\w[\w.-]*")
COMMIT = r"^[0-9a-f]*$"
IMAGE = r"^(?:[A-Za-z0-9][\w./:@-]*)?$"
BRANCHES = "duckflow/"
LONGEST_TOLD = 80

Delivery = Literal["branch", "push", "pull-request", "merge"]
AttemptOutcome = Literal["done", "failed", "cancelled", "budget"]


Row = TypeVar("Row", bound=Value)


def read_row(kind: type[Row], text: str) -> Row:
    """As it stands in the database, which others write, too."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors()[0]
        field, value = ".".join(map(str, first["loc"])) or kind.__name__, shorten(str(first["input"]), LONGEST_TOLD)
        raise DuckflowError("fleet.row", field=field, value=value) from None


def require_branch_name(name: str) -> str:
    """It becomes a part of branches and of folders."""
    if not NAME.fullmatch(name) or ".." in name or name.endswith((".lock", ".")):
        raise ValueError(name)
    return name


def require_no_option(value: str) -> str:
    """It stands in command lines."""
    if value.startswith("-") or not value.isprintable():
        raise ValueError(value)
    return value


NoOption = Annotated[str, AfterValidator(require_no_option)]


class FleetTask(Value):
    """One thing to do in one repository."""

    name: Annotated[str, AfterValidator(require_branch_name)]
    repository: str
    """The absolute path of its top folder."""
    prompt: str
    checks: tuple[str, ...] = ()
    """Commands that the fleet runs itself in the end; each must end with 0."""
    mode: Mode = Mode.FULL_AUTO
    model: NoOption = ""
    budget_usd: float = Field(default=0.0, ge=0)
    """For all attempts at it; 0 without a limit."""
    budget_tokens: int = Field(default=0, ge=0)
    """For all attempts at it, prompts and replies; 0 without a limit."""
    minutes: float = Field(default=60.0, gt=0)
    """For each attempt, without the time in which it waits for an answer."""
    attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS)
    setup: str = ""
    """A command that is run in a fresh worktree."""
    include: tuple[str, ...] = ()
    """Patterns of ignored files that a worktree gets a copy of, such as `.env`."""
    secrets: tuple[str, ...] = ()
    """Names of variables on the worker's machine that its commands get; their values are in no record."""
    container: str = Field(default="", pattern=IMAGE)
    """The image that attempts run in, by podman or docker; nothing for the sandbox."""
    may_touch: tuple[str, ...] = ()
    """Patterns of the files that may change; none: all."""
    base: NoOption = ""
    """What it starts from: as given a branch or a commit, nothing for what is checked out; the full commit once the
    fleet has been started."""
    onto: NoOption = ""
    """The branch that was checked out then: where `merge` puts it."""
    pick: Literal["ask", "best"] = "ask"
    cancel_losers: bool = False
    """Attempts that still run are cancelled when one is clearly good."""
    instance: str = ""
    """The id of the benchmark's instance that it is made of. Its name differs where the fleet had one of that name."""
    remote: NoOption = ""
    """The address that the repository is cloned from; nothing for one that lies on the machine."""
    after: tuple[str, ...] = ()
    """Tasks of the fleet that must be done before. With one of them in the same repository, it starts from its
    result."""
    priority: int = 0
    """The larger ones are begun first."""
    deliver: Delivery = "branch"
    """How its result leaves the machine."""


class AttemptOrder(Value):
    """Have a go at a task."""

    fleet: str = Field(pattern=r"^\w[\w.-]*$")
    task: FleetTask
    number: int = Field(ge=1)
    go_on: str | None = None
    """The branch to go on from, where an earlier go at the same attempt was cut off; else it begins at the base."""
    mend: str = Field(default="", pattern=COMMIT)
    """A commit that the branch does not go together with: it is merged into the worktree, and the conflicts are the
    work."""

    @property
    def branch(self) -> str:
        return f"{BRANCHES}{self.task.name}-{self.number}"

    @property
    def attempt_id(self) -> str:
        return id_of_attempt(self.fleet, self.task.name, self.number)


def id_of_attempt(fleet: str, task: str, number: int) -> str:
    return f"{fleet}.{task}.{number}"


def free_name(name: str, *taken: Container[str]) -> str:
    numbered = (f"{name}.{number}" for number in count(2))
    return next(one for one in chain([name], numbered) if not any(one in names for names in taken))


def under_names(tasks: Sequence[FleetTask], names: Sequence[str]) -> list[FleetTask]:
    """The tasks under new names, by which those that wait for others know them, too."""
    new = dict(zip((task.name for task in tasks), names, strict=True))
    return [
        task.model_copy(update={"name": name, "after": tuple(new.get(other, other) for other in task.after)})
        for task, name in zip(tasks, names, strict=True)
    ]


class CheckResult(Value):
    """A check that the fleet has run."""

    command: str
    code: int
    output: str = ""
    """Its end."""


class FileChange(Value):
    """A file that differs from the base."""

    path: str
    added: int = 0
    removed: int = 0


class AttemptReport(Value):
    """What came of an attempt."""

    order: AttemptOrder
    outcome: AttemptOutcome
    branch: str = ""
    """Empty where nothing was changed."""
    commit: str = Field(default="", pattern=COMMIT)
    checks: tuple[CheckResult, ...] = ()
    evidence: tuple[str, ...] = ()
    """Commands with their exit codes that the attempt ran itself after its last change."""
    proof: ProofVerdict | None = None
    """What its tests show, where it has changed some together with code."""
    files: tuple[FileChange, ...] = ()
    touched_outside: tuple[str, ...] = ()
    """Files that it changed but should not have."""
    findings: tuple[str, ...] = ()
    """Of the review."""
    rating: int = Field(default=0, ge=0, le=10)
    """Of the review; 0 where there was none."""
    said: str = ""
    """Its last words."""
    cost_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    session_id: str = ""
    open: Phrase | None = None
    """Why it is not done."""

    @model_validator(mode="after")
    def _names_its_own_branch(self) -> "AttemptReport":
        if self.branch not in ("", self.order.branch):
            raise ValueError(self.branch)
        return self

    @property
    def passed(self) -> bool:
        """Whether it may be merged."""
        whole = len(self.checks) == len(self.order.task.checks) and not any(check.code for check in self.checks)
        return self.outcome == "done" and bool(self.commit) and whole and not self.touched_outside

    @property
    def lines_changed(self) -> int:
        return sum(file.added + file.removed for file in self.files)


class Asked(Value):
    """A question of an attempt, in the inbox."""

    asked_id: str = Field(default_factory=new_id("ask"))
    fleet: str
    task: str
    attempt: int
    question: Question
    """Whole, as the attempt puts it: a Gate with its diff, a Duck Call, or what the model wants to know."""
    same: str = ""
    """Equal for questions that ask the same."""


class Answered(Value):
    """What a person says to it: the key of a choice, or words that are read as typed."""

    asked_id: str
    text: str = ""
    choice: str = ""
    for_all_same: bool = False
    """Also to all that ask the same now."""


class Note(NamedTuple):
    """A log line that is to be written."""

    fleet: str
    task: str
    attempt: int
    said: Phrase


class Desk(Protocol):
    """Where an attempt tells how it goes and puts its questions."""

    async def ask(self, asked: Asked) -> Answered:
        """Kept until somebody answers."""
        ...

    def withdraw(self, asked: Asked) -> None:
        """It was answered elsewhere, or is not asked any more."""
        ...

    def note(self, text: str) -> None:
        """A line for `fleet logs`."""
        ...

    def progress(self, doing: str) -> None:
        """How far it is, in one word: setup, working, waiting, checks, review."""
        ...

    async def allow(self, wanted: CallWanted) -> int:
        """Waits until a call to a model may be made, and gives its number. BudgetSpent when it may not be made."""
        ...

    async def used(self, call: int, used: CallUsed | None) -> None:
        """What that call has taken; nothing where nobody knows."""
        ...


CarryOut = Callable[[AttemptOrder, Desk], Awaitable[AttemptReport]]
"""Cancelled, it ends all processes of the attempt and leaves its branch with what there is."""

"""Tasks of a fleet, orders to attempt them, and reports. They are passed between processes and machines as JSON."""

import re
from collections.abc import Awaitable, Callable, Container, Sequence
from itertools import chain, count
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import DuckflowError
from duckflow.state.checks import ProofVerdict
from duckflow.state.data import FrozenData, Phrase, new_id, shorten
from duckflow.state.mode import Mode
from duckflow.state.question import Question

MOST_ATTEMPTS = 4
LARGEST_NUMBER = 2**31 - 1
"""The largest number that an integer column of any database holds."""
MOST_TOKENS = 2**53
NAME = re.compile(r"\w[\w.-]*")
COMMIT = r"^[0-9a-f]*$"
IMAGE = r"^(?:[A-Za-z0-9][\w./:@-]*)?$"
BRANCHES = "duckflow/"
LONGEST_TOLD = 80

Delivery = Literal["branch", "push", "pull-request", "merge"]
AttemptOutcome = Literal["done", "failed", "cancelled", "budget"]


Row = TypeVar("Row", bound=FrozenData)


def read_row(kind: type[Row], text: str) -> Row:
    """Reads a value from its JSON in the database. Other machines write there too, so bad JSON gets a clear error."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as problem:
        first_error = problem.errors()[0]
        field_name, bad_value = (
            ".".join(map(str, first_error["loc"])) or kind.__name__,
            shorten(str(first_error["input"]), LONGEST_TOLD),
        )
        raise DuckflowError("fleet.row", field=field_name, value=bad_value) from None


def require_branch_name(name: str) -> str:
    """Checks a task's name, which becomes part of branches and folders."""
    if not NAME.fullmatch(name) or ".." in name or name.endswith((".lock", ".")):
        raise ValueError(name)
    return name


def require_no_option(value: str) -> str:
    """Checks that a value which is put into command lines is not read as an option."""
    if value.startswith("-") or not value.isprintable():
        raise ValueError(value)
    return value


NoOption = Annotated[str, AfterValidator(require_no_option)]


class Budgets(FrozenData):
    """The most that may be spent on a task or a fleet."""

    budget_usd: float = Field(default=0.0, ge=0, strict=True, allow_inf_nan=False)
    """Dollars for all attempts together; 0 means no limit."""
    budget_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS, strict=True)
    """Tokens of prompts and replies for all attempts together; 0 means no limit."""


class FleetTask(Budgets):
    """One piece of work in one repository."""

    name: Annotated[str, AfterValidator(require_branch_name)]
    repository: str
    """The absolute path of the repository's top folder."""
    prompt: str
    checks: tuple[str, ...] = ()
    """Commands that the fleet itself runs after the work is done; each must exit with 0."""
    mode: Mode = Mode.FULL_AUTO
    model: NoOption = ""
    minutes: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Minutes for each attempt, without the time in which it waits for an answer."""
    attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS)
    setup: str = ""
    """A command that prepares a fresh worktree."""
    include: tuple[str, ...] = ()
    """Patterns of ignored files, such as `.env`, that are copied into a worktree."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables on the worker's machine that the commands get. Their values are never recorded."""
    container: str = Field(default="", pattern=IMAGE)
    """The image of the podman or docker container that attempts run in; empty means the sandbox."""
    may_touch: tuple[str, ...] = ()
    """Patterns of the files that may be changed; empty means all files."""
    base: NoOption = ""
    """The branch or commit to start from; empty means the commit that is checked out. Once the fleet has started, this
    is a full commit id."""
    onto: NoOption = ""
    """The branch that was checked out at the start, onto which `merge` puts the result."""
    pick: Literal["ask", "best"] = "ask"
    cancel_losers: bool = False
    """True to cancel attempts that still run when another attempt is clearly good."""
    instance: str = ""
    """The id of the benchmark instance that the task was made from. The task has another name if that id was taken."""
    remote: NoOption = ""
    """The address from which the repository is cloned; empty for a repository on this machine."""
    after: tuple[str, ...] = ()
    """Tasks of the fleet that must be done before. If exactly one of them is in the same repository, its result is the
    base of this task."""
    priority: int = Field(default=0, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)
    """Tasks with a larger number are begun first."""
    deliver: Delivery = "branch"
    """The way in which the task's result leaves the machine."""

    @property
    def origin(self) -> str:
        return self.remote or self.repository


class AttemptOrder(FrozenData):
    """An order to attempt a task."""

    fleet: str = Field(pattern=r"^\w[\w.-]*$")
    task: FleetTask
    number: int = Field(ge=1)
    go: int = 1
    """Number of times that the attempt was begun. From the second time on it continues on its branch, from the work
    that was saved when it was cut off."""
    mend: str = Field(default="", pattern=COMMIT)
    """A commit with which the attempt's branch has conflicts. It is merged into the worktree, and the attempt has to
    resolve the conflicts."""

    @property
    def branch(self) -> str:
        return f"{BRANCHES}{self.task.name}-{self.number}"

    @property
    def attempt_id(self) -> str:
        return id_of_attempt(self.fleet, self.task.name, self.number)


def id_of_attempt(fleet: str, task: str, number: int) -> str:
    return f"{fleet}.{task}.{number}"


def free_name(name: str, *taken: Container[str]) -> str:
    numbered_names = (f"{name}.{number}" for number in count(2))
    return next(
        candidate for candidate in chain([name], numbered_names) if not any(candidate in names for names in taken)
    )


def under_names(tasks: Sequence[FleetTask], names: Sequence[str]) -> list[FleetTask]:
    """Returns the tasks under new names. Lists of tasks to wait for get the new names, too."""
    new_names = dict(zip((task.name for task in tasks), names, strict=True))
    return [
        task.model_copy(
            update={"name": name, "after": tuple(new_names.get(other_name, other_name) for other_name in task.after)}
        )
        for task, name in zip(tasks, names, strict=True)
    ]


class CheckResult(FrozenData):
    """The result of a check that the fleet has run."""

    command: str
    code: int
    output: str = ""
    """The end of the command's output."""


class FileChange(FrozenData):
    """A file that differs from the task's base."""

    path: str
    added: int = 0
    removed: int = 0


class AttemptReport(FrozenData):
    """The result of an attempt."""

    order: AttemptOrder
    outcome: AttemptOutcome
    branch: str = ""
    """The attempt's branch; empty where the attempt changed nothing."""
    commit: str = Field(default="", pattern=COMMIT)
    checks: tuple[CheckResult, ...] = ()
    evidence: tuple[str, ...] = ()
    """Commands with their exit codes that the attempt ran itself after its last change."""
    proof: ProofVerdict | None = None
    """The verdict on the attempt's tests, where it has changed tests together with code."""
    files: tuple[FileChange, ...] = ()
    touched_outside: tuple[str, ...] = ()
    """Files that the attempt changed although the task does not allow it."""
    findings: tuple[str, ...] = ()
    """Findings of the review."""
    rating: int = Field(default=0, ge=0, le=10)
    """The review's rating; 0 where there was no review."""
    said: str = ""
    """The model's last message."""
    cost_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    session_id: str = ""
    open: Phrase | None = None
    """The reason why the attempt is not done; None where it is."""

    @model_validator(mode="after")
    def _names_its_own_branch(self) -> "AttemptReport":
        if self.branch not in ("", self.order.branch):
            raise ValueError(self.branch)
        return self

    @property
    def passed(self) -> bool:
        """Says whether the attempt may be merged."""
        checks_passed = len(self.checks) == len(self.order.task.checks) and not any(check.code for check in self.checks)
        return self.outcome == "done" and bool(self.commit) and checks_passed and not self.touched_outside

    @property
    def lines_changed(self) -> int:
        return sum(file.added + file.removed for file in self.files)


class Asked(FrozenData):
    """A question of an attempt, in the inbox."""

    asked_id: str = Field(default_factory=new_id("ask"))
    fleet: str
    task: str
    attempt: int
    question: Question
    """The whole question of the attempt: a Gate (before a risky action) with its diff, a Duck Call (the Pacemaker has
    stopped the work and asks how to go on), or a question of the model."""
    same: str = ""
    """A key that is equal for equal questions."""


class Answered(FrozenData):
    """A person's answer to a question: the key of a choice, or text that is read like typed input."""

    asked_id: str
    text: str = ""
    choice: str = ""
    for_all_same: bool = False
    """True if the answer also holds for all equal questions."""


class Note(NamedTuple):
    """A line to be written to the log of an attempt."""

    fleet: str
    task: str
    attempt: int
    said: Phrase


class AttemptPort(Protocol):
    """The interface through which an attempt reports progress, asks questions and gets leave for model calls."""

    async def ask(self, asked: Asked) -> Answered:
        """Puts a question to people and waits for the answer."""
        ...

    def withdraw(self, asked: Asked) -> None:
        """Takes a question back that was answered elsewhere or is not needed any more."""
        ...

    def note(self, text: str) -> None:
        """Writes a line for `fleet logs`."""
        ...

    def progress(self, doing: str) -> None:
        """Reports the current stage in one word: setup, working, waiting, checks, review."""
        ...

    async def allow(self, wanted: CallWanted) -> int:
        """Waits until a call to a model may be made, and returns its number. Raises BudgetSpent if it may not."""
        ...

    async def used(self, call: int, used: CallUsed | None) -> None:
        """Reports the usage of a call by its number; None where the usage is unknown."""
        ...


CarryOut = Callable[[AttemptOrder, AttemptPort], Awaitable[AttemptReport]]
"""A function that carries out an attempt. When cancelled, it ends all processes of the attempt and leaves the work so
far on the attempt's branch."""

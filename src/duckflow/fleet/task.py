"""Tasks of a fleet, orders to attempt them, and reports. All are passed between processes and machines as JSON."""

import re
from collections.abc import Awaitable, Callable, Container, Sequence
from itertools import chain, count
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import DuckflowError
from duckflow.state.checks import ProofVerdict
from duckflow.state.data import FrozenData, new_id, shorten
from duckflow.state.mode import Mode
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


Row = TypeVar("Row", bound=FrozenData)


def read_row(kind: type[Row], text: str) -> Row:
    """Reads a value from its JSON in the database, with a clear error: other machines write there too."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as problem:
        first_error = problem.errors()[0]
        field, value = (
            ".".join(map(str, first_error["loc"])) or kind.__name__,
            shorten(str(first_error["input"]), LONGEST_TOLD),
        )
        raise DuckflowError("fleet.row", field=field, value=value) from None


def require_branch_name(name: str) -> str:
    """Checks a name that becomes part of branches and folders."""
    if not NAME.fullmatch(name) or ".." in name or name.endswith((".lock", ".")):
        raise ValueError(name)
    return name


def require_no_option(value: str) -> str:
    """Checks a value that is put into command lines, so that it is not read as an option."""
    if value.startswith("-") or not value.isprintable():
        raise ValueError(value)
    return value


NoOption = Annotated[str, AfterValidator(require_no_option)]


class FleetTask(FrozenData):
    """One piece of work in one repository."""

    name: Annotated[str, AfterValidator(require_branch_name)]
    repository: str
    """The absolute path of its top folder."""
    prompt: str
    checks: tuple[str, ...] = ()
    """Commands that the fleet itself runs in the end; each must exit with 0."""
    mode: Mode = Mode.FULL_AUTO
    model: NoOption = ""
    budget_usd: float = Field(default=0.0, ge=0)
    """Dollars for all attempts together; 0 means no limit."""
    budget_tokens: int = Field(default=0, ge=0)
    """Tokens of prompts and replies for all attempts together; 0 means no limit."""
    minutes: float = Field(default=60.0, gt=0)
    """Minutes for each attempt, without the time in which it waits for an answer."""
    attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS)
    setup: str = ""
    """A command that is run in a fresh worktree."""
    include: tuple[str, ...] = ()
    """Patterns of ignored files, such as `.env`, that are copied into a worktree."""
    secrets: tuple[str, ...] = ()
    """Names of variables on the worker's machine that its commands get. Their values are never recorded."""
    container: str = Field(default="", pattern=IMAGE)
    """The image of the podman or docker container that attempts run in; empty means the sandbox."""
    may_touch: tuple[str, ...] = ()
    """Patterns of the files that may change; empty means all."""
    base: NoOption = ""
    """The branch or commit to start from; empty means what is checked out. Once the fleet has been started, it is the
    full commit."""
    onto: NoOption = ""
    """The branch that was checked out at the start, onto which `merge` puts the result."""
    pick: Literal["ask", "best"] = "ask"
    cancel_losers: bool = False
    """Cancel attempts that still run when one is clearly good."""
    instance: str = ""
    """The id of the benchmark instance it was made from. Its name differs where that name was taken."""
    remote: NoOption = ""
    """The address that the repository is cloned from; empty for one on this machine."""
    after: tuple[str, ...] = ()
    """Tasks of the fleet that must be done before. If exactly one of them is in the same repository, it starts from the
    result of that one."""
    priority: int = 0
    """Tasks with a larger number are begun first."""
    deliver: Delivery = "branch"
    """How its result leaves the machine."""


class AttemptOrder(FrozenData):
    """An order to attempt a task."""

    fleet: str = Field(pattern=r"^\w[\w.-]*$")
    task: FleetTask
    number: int = Field(ge=1)
    go_on: str | None = None
    """The branch to continue from, where an earlier try of the same attempt was cut off; else it begins at the base."""
    mend: str = Field(default="", pattern=COMMIT)
    """A commit with which the branch has conflicts. It is merged into the worktree, and the work is to resolve the
    conflicts."""

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
    """Returns the tasks under new names, also in the lists of tasks that others wait for."""
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
    """The end of its output."""


class FileChange(FrozenData):
    """A file that differs from the base."""

    path: str
    added: int = 0
    removed: int = 0


class AttemptReport(FrozenData):
    """The result of an attempt."""

    order: AttemptOrder
    outcome: AttemptOutcome
    branch: str = ""
    """The attempt's branch; empty where nothing was changed."""
    commit: str = Field(default="", pattern=COMMIT)
    checks: tuple[CheckResult, ...] = ()
    evidence: tuple[str, ...] = ()
    """Commands with their exit codes that the attempt ran itself after its last change."""
    proof: ProofVerdict | None = None
    """The verdict on its tests, where it has changed tests together with code."""
    files: tuple[FileChange, ...] = ()
    touched_outside: tuple[str, ...] = ()
    """Files that it changed but should not have."""
    findings: tuple[str, ...] = ()
    """Findings of the review."""
    rating: int = Field(default=0, ge=0, le=10)
    """Rating by the review; 0 where there was none."""
    said: str = ""
    """The model's last message."""
    cost_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    session_id: str = ""
    open: Phrase | None = None
    """The reason why it is not done."""

    @model_validator(mode="after")
    def _names_its_own_branch(self) -> "AttemptReport":
        if self.branch not in ("", self.order.branch):
            raise ValueError(self.branch)
        return self

    @property
    def passed(self) -> bool:
        """Says whether it may be merged."""
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
    """The whole question of the attempt: a Gate with its diff, a Duck Call, or a question of the model."""
    same: str = ""
    """A key that is equal for questions that ask the same."""


class Answered(FrozenData):
    """A person's answer to a question: the key of a choice, or text that is read like typed input."""

    asked_id: str
    text: str = ""
    choice: str = ""
    for_all_same: bool = False
    """The answer also holds for all questions that ask the same."""


class Note(NamedTuple):
    """A line to be written to the log."""

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
        """Takes a question back that was answered elsewhere or is not asked any more."""
        ...

    def note(self, text: str) -> None:
        """Writes a line for `fleet logs`."""
        ...

    def progress(self, doing: str) -> None:
        """Reports the current stage in one word: setup, working, waiting, checks, review."""
        ...

    async def allow(self, wanted: CallWanted) -> int:
        """Waits until a call to a model may be made, and returns its number. Raises BudgetSpent when it may not."""
        ...

    async def used(self, call: int, used: CallUsed | None) -> None:
        """Reports the usage of that call; None where it is unknown."""
        ...


CarryOut = Callable[[AttemptOrder, AttemptPort], Awaitable[AttemptReport]]
"""Carries out an attempt. When cancelled, it ends all its processes and leaves the work so far on its branch."""

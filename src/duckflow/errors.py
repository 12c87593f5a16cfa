"""The errors, drawn as a tree.

DuckflowError                  has a phrase for people (`key`, `values`) and an outcome, which has an exit code
├── UsageError                 the command line or a setting makes no sense            (exit 2)
├── ModelError                 a model could not be used                               (exit 1)
│   ├── ProviderUnreachable    no answer: network, time-out, server down               (exit 5)
│   ├── ProviderRefused        the server refused: key, unknown model, quota, content  (exit 5)
│   ├── ContextTooLong         the request does not fit the model's window
│   ├── ToolsRefused           the model takes no tools and is asked for JSON instead
│   ├── PicturesRefused        the model cannot see pictures, or not this one
│   └── ReplyUnusable          a reply that stayed unreadable; `correction` is for the model
├── ToolError                  an action could not be done; `for_model` says why
│   └── PathRefused            the path leaves the work folder or is not a plain file
├── JournalError               the session's journal cannot be read or written
│   ├── JournalInUse           another process has it open
│   └── JournalDamaged         a part of it cannot be read; undamaged events can be saved
├── LeaseLost                  a worker of a fleet counts as dead; others continue its work
└── BudgetSpent                the allowed money or tokens are used up                 (exit 6)

People never see a traceback: every error ends as one phrase in their language.
"""

from typing import ClassVar, Literal, NamedTuple

Outcome = Literal[
    "done", "pending_user", "deferred", "exit",
    "failed", "usage", "provider", "unproven",
    "interrupted", "gate", "pacemaker", "budget",
]  # fmt: skip


class OutcomeMeaning(NamedTuple):
    """The meaning of an outcome. `kind` is `stopped` if somebody or a limit has ended the work, and `failed` if the
    work could not be done. `key` finds the words for people; `exit_code` is for shells."""

    kind: Literal["well", "stopped", "failed"]
    exit_code: int
    key: str


OUTCOMES: dict[Outcome, OutcomeMeaning] = {
    "done": OutcomeMeaning("well", 0, "outcome.done"),
    "pending_user": OutcomeMeaning("well", 7, "outcome.pending_user"),
    "deferred": OutcomeMeaning("well", 0, "outcome.deferred"),
    "exit": OutcomeMeaning("well", 0, "outcome.exit"),
    "failed": OutcomeMeaning("failed", 1, "outcome.failed"),
    "usage": OutcomeMeaning("failed", 2, "outcome.usage"),
    "gate": OutcomeMeaning("stopped", 3, "outcome.gate"),
    "pacemaker": OutcomeMeaning("stopped", 4, "outcome.pacemaker"),
    "provider": OutcomeMeaning("failed", 5, "outcome.provider"),
    "budget": OutcomeMeaning("stopped", 6, "outcome.budget"),
    "unproven": OutcomeMeaning("failed", 8, "outcome.unproven"),
    "interrupted": OutcomeMeaning("stopped", 130, "outcome.interrupted"),
}


def ended_well(outcome: Outcome) -> bool:
    return OUTCOMES[outcome].kind == "well"


def exit_code_of(outcome: Outcome) -> int:
    return OUTCOMES[outcome].exit_code


class DuckflowError(Exception):
    """Base of the errors that Duckflow raises on purpose. If the error ends a turn, `outcome` is the outcome of that
    turn."""

    outcome: ClassVar[Outcome] = "failed"

    def __init__(self, key: str, **values: str | int | float) -> None:
        self.key = key
        self.values = values
        super().__init__(key + "".join(f" {name}={value}" for name, value in values.items()))

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.outcome)


class UsageError(DuckflowError):
    outcome = "usage"


class ModelError(DuckflowError):
    pass


class ProviderUnreachable(ModelError):
    outcome = "provider"


class ProviderRefused(ModelError):
    outcome = "provider"


class ContextTooLong(ModelError):
    pass


class ToolsRefused(ModelError):
    pass


class PicturesRefused(ModelError):
    pass


class ReplyUnusable(ModelError):
    """The model's reply cannot be read as a Decision (a reply with actions). `correction` is the message to the
    model."""

    def __init__(self, correction: str, key: str = "model.unusable") -> None:
        self.correction = correction
        super().__init__(key, reason=correction)


class ToolError(DuckflowError):
    """An action could not be done. `for_model` tells the model why, and what to do instead."""

    def __init__(self, for_model: str, key: str = "tool.failed", **values: str | int | float) -> None:
        self.for_model = for_model
        super().__init__(key, **({"reason": for_model} | values))


class PathRefused(ToolError):
    pass


class JournalError(DuckflowError):
    pass


class JournalInUse(JournalError):
    pass


class JournalDamaged(JournalError):
    pass


class LeaseLost(DuckflowError):
    pass


class BudgetSpent(DuckflowError):
    outcome = "budget"

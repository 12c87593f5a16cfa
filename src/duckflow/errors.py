"""The errors, drawn as a tree.

DuckflowError                  has a phrase for people (`key`, `values`) and an outcome, which has an exit code
├── UsageError                 the command line or a setting makes no sense            (exit 2)
├── ModelError                 a model could not be used                               (exit 1)
│   ├── ProviderUnreachable    no answer: network, time-out, server down               (exit 5)
│   ├── ProviderRefused        it answered no: bad key, unknown model, quota, content  (exit 5)
│   ├── ContextTooLong         the request does not fit the model's window
│   ├── ToolsRefused           it takes no tools: it is asked for JSON instead
│   ├── PicturesRefused        it cannot see, or not this picture
│   └── ReplyUnusable          a reply that stayed unreadable; `correction` is for the model
├── ToolError                  an action could not be done; `for_model` says why
│   └── PathRefused            the path leaves the work folder or is not a plain file
├── JournalError               the session's journal cannot be read or written
│   ├── JournalInUse           another process has it open
│   └── JournalDamaged         what is in it cannot be read; what comes before can be saved
├── LeaseLost                  a worker of a fleet counts as dead; others go on with what it did
└── BudgetSpent                the allowed money or tokens are used up                 (exit 6)

People never see a traceback: every error ends as one phrase in their language.
"""

from typing import ClassVar

from duckflow.outcome import Outcome, exit_code_of


class DuckflowError(Exception):
    """Base of everything Duckflow raises on purpose. `outcome` is how a turn ends that the error breaks off."""

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
    """A reply that is no Decision. `correction` is what the model is told."""

    def __init__(self, correction: str, key: str = "model.unusable") -> None:
        self.correction = correction
        super().__init__(key, reason=correction)


class ToolError(DuckflowError):
    """An action that could not be done. `for_model` says why, and what to do instead."""

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

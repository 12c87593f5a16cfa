"""The ways a turn can end, and what each means to the outside. This table is the only place that knows.

A run without a person may turn a good ending into `unproven` or `failed` afterwards (ui/turn_report.py).
"""

from typing import Literal, NamedTuple

Outcome = Literal[
    "done", "pending_user", "deferred", "exit",
    "failed", "usage", "provider", "unproven",
    "interrupted", "gate", "pacemaker", "budget",
]  # fmt: skip


class OutcomeMeaning(NamedTuple):
    """The meaning of an outcome. `kind` is `stopped` if somebody or a limit has ended the work, and `failed` if it
    could not be done. `key` finds the words for people; `exit_code` is for shells."""

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

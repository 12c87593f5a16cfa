"""What the shell is told at the end."""

from duckflow.events.types import Outcome

EXIT_CODES: dict[Outcome, int] = {
    "done": 0,
    "pending_user": 0,
    "deferred": 0,
    "exit": 0,
    "failed": 1,
    "usage": 2,
    "gate": 3,
    "pacemaker": 4,
    "provider": 5,
    "budget": 6,
    "interrupted": 130,
}

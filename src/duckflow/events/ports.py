"""The two ports through which the agent knows the outside, and what hears of everything that happened."""

from collections.abc import Callable
from typing import Protocol

from duckflow.events.types import Event
from duckflow.state.question import Answer, Question

Listener = Callable[[Event], None]


class Emit(Protocol):
    """Tell the outside, and the state, that something happened."""

    def __call__(self, event: Event) -> None: ...


class Ask(Protocol):
    """Put a question to the person and wait for the answer."""

    async def __call__(self, question: Question) -> Answer: ...

"""What the screen needs from the conversation."""

from collections.abc import Callable
from typing import Protocol

from duckflow.events.types import Event, Outcome
from duckflow.pacemaker.health import Health
from duckflow.safety.policy import Mode
from duckflow.state.agent import AgentState
from duckflow.state.phrase import Phrase


class Memory(Protocol):
    """What the conversation remembers."""

    def report(self) -> tuple[Phrase, ...]: ...

    def find(self, question: str) -> tuple[int, str]: ...

    def compact(self, focus: str) -> Phrase: ...

    def forget(self, words: str) -> Phrase: ...


class Desk(Protocol):
    """One conversation, as seen from the screen."""

    @property
    def state(self) -> AgentState: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def memory(self) -> Memory: ...

    def change_mode(self, mode: Mode) -> None: ...

    def change_language(self, language: str) -> None: ...

    def health(self) -> Health: ...

    def why(self) -> tuple[Phrase, ...]: ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]: ...

    async def say(self, text: str) -> Outcome: ...

    def interrupt(self) -> bool: ...

"""What the screen needs from the conversation."""

from collections.abc import Callable, Iterator
from typing import Protocol

from duckflow.events.types import Event, Outcome
from duckflow.pacemaker.health import Health
from duckflow.safety.permissions import Permissions
from duckflow.safety.policy import Mode
from duckflow.state.agent import AgentState
from duckflow.state.phrase import Phrase


class Desk(Protocol):
    """One conversation, as seen from the screen."""

    @property
    def state(self) -> AgentState: ...

    @property
    def mode(self) -> Mode: ...

    def change_mode(self, mode: Mode) -> None: ...

    def change_language(self, language: str) -> None: ...

    @property
    def permissions(self) -> Permissions: ...

    def health(self) -> Health: ...

    def why(self) -> tuple[Phrase, ...]: ...

    def events(self) -> Iterator[Event]: ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]: ...

    async def say(self, text: str) -> Outcome: ...

    def interrupt(self) -> bool: ...

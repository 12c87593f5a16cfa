"""What commands and the screen need from the conversation."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, Protocol

from duckflow.events.types import Event
from duckflow.events.types import Outcome as TurnOutcome
from duckflow.pacemaker.health import Health
from duckflow.safety.mode import Mode
from duckflow.safety.permissions import Permissions
from duckflow.state.agent import AgentState
from duckflow.state.phrase import Phrase
from duckflow.state.plan import Plan

if TYPE_CHECKING:
    from duckflow.prompts.layers import Layer
    from duckflow.safety.undo.desk import Outcome
    from duckflow.safety.undo.preview import UndoPreview


class Kept(Protocol):
    """What was kept before each change."""

    async def diff(self, turn: int | None = None) -> "UndoPreview": ...

    async def preview(self, back: bool) -> "UndoPreview": ...

    async def restore(self, back: bool) -> "Outcome": ...


class Forgetting(Protocol):
    """What holds some words, and how to be rid of it."""

    def holding(self, words: str) -> tuple[Phrase, ...]: ...

    def forget(self, words: str) -> Phrase: ...


class Memory(Protocol):
    """What the conversation remembers."""

    @property
    def forgetting(self) -> Forgetting: ...

    def report(self) -> tuple[Phrase, ...]: ...

    def find(self, question: str, in_context: bool = False) -> tuple[int, str]: ...

    def compact(self, focus: str) -> Phrase: ...


class Desk(Protocol):
    """One conversation, as seen from the screen."""

    @property
    def state(self) -> AgentState: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def memory(self) -> Memory: ...

    def change_mode(self, mode: Mode) -> None: ...

    @property
    def budget_usd(self) -> float: ...

    async def change_model(self, name: str) -> str: ...

    def change_language(self, language: str) -> None: ...

    @property
    def safekeeping(self) -> Kept: ...

    @property
    def permissions(self) -> Permissions: ...

    def health(self) -> Health: ...

    def why(self) -> tuple[Phrase, ...]: ...

    async def context(self) -> "tuple[Layer, ...]": ...

    def events(self) -> Iterator[Event]: ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]: ...

    async def say(self, text: str) -> TurnOutcome: ...

    def ran(self, command: str, code: int, output: str, seconds: float) -> None: ...

    def aside(self, text: str) -> tuple[Phrase, ...] | None: ...

    def control(self, wish: Literal["pause", "resume", "cancel"], job_id: str = "") -> None: ...

    def change_plan(self, plan: Plan) -> None: ...

    def drop_plan(self, plan: Plan) -> None: ...

    def interrupt(self) -> bool: ...

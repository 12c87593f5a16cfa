"""The actor: the conversation itself, or a job in the background. It is passed to everything that acts in its name."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from duckflow.clock import PausableTimeout, PauseControl
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    Event,
    MessageAdded,
    OutputStreamed,
    UsageReported,
)
from duckflow.state.question import Answer, Question
from duckflow.tools.tool import CallContext


@dataclass(frozen=True, slots=True)
class Actor:
    """Emits events and asks questions for the conversation or for a job. Those of a job carry its id."""

    emit_event: Emit
    put_question: Ask
    job_id: str = ""
    name: str = ""
    step_id: str = ""
    """The step of a plan that is carried out. Messages that belong to it carry its id, and are a context of their
    own."""
    for_user: bool = False
    """True if the actor carries out a command of the user's own. Such a command belongs to no step and leaves the
    current step as it is."""
    pause: PauseControl = field(default_factory=PauseControl)
    timeout: PausableTimeout | None = None
    """A time limit that stands still while the user is being asked."""
    hearing: asyncio.Event | None = None
    """An event that is cleared while the user's words are being heard. No task is begun until it is set again."""
    unheard: Callable[[], str] | None = None
    """Returns the user's words that the model must read before the next action."""
    inner: bool = False
    """True if the actor emits into an agent's own context. Events that leave that context get the job's id there."""

    @property
    def follows_steps(self) -> bool:
        """Says whether the actor follows the conversation's phases. A job carries out an approved plan and does not."""
        return not (self.job_id or self.for_user)

    def emit(self, event: Event) -> None:
        self.emit_event(self._signed(event) if self.job_id and not self.inner else event)

    async def wait_while_paused(self) -> None:
        """Waits during a pause. Only a job can be paused: while its text was written, or a yes was waited for."""
        if self.job_id:
            await self.pause.wait_while_paused()

    async def wait_until_clear(self) -> None:
        """Waits before a task until there is no pause and the user's words have been heard."""
        await self.pause.wait_while_paused()
        while self.hearing and not self.hearing.is_set():
            await self.hearing.wait()
            await self.pause.wait_while_paused()

    async def is_spoken_to(self) -> bool:
        """Says whether the user has said something that the model must read first. A list of actions stops then."""
        if self.unheard is None:
            return False
        await self.wait_until_clear()
        return bool(self.unheard())

    async def ask(self, question: Question) -> Answer:
        question = self._signed_question(question)
        if self.timeout is None:
            return await self.put_question(question)
        with self.timeout.standing_still():
            return await self.put_question(question)

    def call(self) -> CallContext:
        """Returns the part of the actor that a tool may use: its pause, and how to show output."""
        return CallContext(self.pause, self._show)

    @asynccontextmanager
    async def at_most(self, seconds: float | None) -> "AsyncGenerator[Actor]":
        """Yields the same actor with a time limit. Raises TimeoutError after it; answers and pauses do not count."""
        async with asyncio.timeout(seconds) as timeout:
            with self.pause.timing(timeout) as pausable:
                yield replace(self, timeout=pausable)

    def _show(self, text: str, left_out: int) -> None:
        self.emit(OutputStreamed(text=text, left_out=left_out))

    def _signed(self, event: Event) -> Event:
        match event:
            case ActionStarted() | ActionFinished() | OutputStreamed() | UsageReported():
                return event.model_copy(update={"job": self.job_id})
            case MessageAdded():
                signed = event.message.model_copy(update={"job": self.job_id, "step": self.step_id})
                return event.model_copy(update={"message": signed})
            case _:
                return event

    def _signed_question(self, question: Question) -> Question:
        return question.model_copy(update={"job": self.job_id, "job_name": self.name})

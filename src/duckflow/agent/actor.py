"""Who acts: the conversation itself, or a job in the background. It is passed to whatever acts in its name."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from duckflow.clock import PausableTimeout
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
from duckflow.tools.pausing import PauseControl
from duckflow.tools.tool import CallContext


@dataclass(frozen=True, slots=True)
class Actor:
    """What it emits and asks carries its job's id; without a job it is the conversation."""

    emit_event: Emit
    put_question: Ask
    job_id: str = ""
    name: str = ""
    step_id: str = ""
    """The step that is carried out: what is said in its name is its own context."""
    for_user: bool = False
    """What a command of the user's own asks for: it belongs to no step, and leaves the step as it is."""
    pause: PauseControl = field(default_factory=PauseControl)
    timeout: PausableTimeout | None = None
    """Stands still while the user is being asked."""
    hearing: asyncio.Event | None = None
    """Not set while the user's words are being heard: until then no task is begun."""
    inner: bool = False
    """It emits into a context of its own; what leaves that is signed there."""

    @property
    def follows_steps(self) -> bool:
        """A job carries out an approved plan: it always executes, and does not change what the conversation does."""
        return not (self.job_id or self.for_user)

    def emit(self, event: Event) -> None:
        self.emit_event(self._signed(event) if self.job_id and not self.inner else event)

    async def wait_until_clear(self) -> None:
        """Before every task: for the end of a pause, and until the user's words have been heard."""
        await self.pause.wait_while_paused()
        while self.hearing and not self.hearing.is_set():
            await self.hearing.wait()
            await self.pause.wait_while_paused()

    async def ask(self, question: Question) -> Answer:
        question = self._signed_question(question)
        if self.timeout is None:
            return await self.put_question(question)
        with self.timeout.standing_still():
            return await self.put_question(question)

    def call(self) -> CallContext:
        """What a tool may know of who runs it."""
        return CallContext(self.pause, self._show)

    @asynccontextmanager
    async def at_most(self, seconds: float | None) -> "AsyncGenerator[Actor]":
        """The same actor for what is inside; TimeoutError when that takes longer, answers and pauses not counted."""
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

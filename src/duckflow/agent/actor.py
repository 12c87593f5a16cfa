"""Defines the actor, in whose name actions run: the conversation itself, or a job in the background."""

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
from duckflow.tools.tool import CallContext, ChangeLimit


@dataclass(frozen=True, slots=True)
class Actor:
    """Emits events and asks questions for the conversation or for a job. Events and questions of a job carry the job's
    id."""

    emit_event: Emit
    put_question: Ask
    job_id: str = ""
    name: str = ""
    step_id: str = ""
    """The id of the plan's step that is carried out. The step's messages carry this id, and form a separate context."""
    for_user: bool = False
    """True if the actor carries out a command that the user typed. Such a command belongs to no step, and the current
    step stays the same."""
    pause: PauseControl = field(default_factory=PauseControl)
    timeout: PausableTimeout | None = None
    """A time limit that stands still while the user is being asked."""
    hearing: asyncio.Event | None = None
    """An event that is not set while Duckflow finds out whether the user's latest words concern this job. No task
    begins meanwhile."""
    unheard: Callable[[], str] | None = None
    """A function that returns what the user has said and no request contains yet. The model must read it before the
    next action."""
    inner: bool = False
    """True if the actor's events go into an agent's own context. There they carry no job id; they get it when they
    leave that context."""

    @property
    def follows_steps(self) -> bool:
        """Says whether the conversation's phase changes with the actor's work. A job does not change it, since its plan
        is already approved; nor does a command that the user typed."""
        return not (self.job_id or self.for_user)

    def emit(self, event: Event) -> None:
        self.emit_event(self._signed(event) if self.job_id and not self.inner else event)

    async def wait_while_paused(self) -> None:
        """Waits until a pause is over. Only a job can be paused, for example while its text is written or the user is
        asked about its actions."""
        if self.job_id:
            await self.pause.wait_while_paused()

    async def wait_until_clear(self) -> None:
        """Waits before a task while the job is paused, and until it is clear whether the user's latest words concern
        the job."""
        await self.pause.wait_while_paused()
        while self.hearing and not self.hearing.is_set():
            await self.hearing.wait()
            await self.pause.wait_while_paused()

    async def is_spoken_to(self) -> bool:
        """Says whether the user has said something that the model must read first. The remaining actions are then not
        run."""
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

    def call(self, limit: ChangeLimit | None = None) -> CallContext:
        """Returns what a tool may use of the actor: a control that can pause the call, and a function that shows its
        output. `limit` says which files the call may change."""
        return CallContext(self.pause, self._show, limit)

    @asynccontextmanager
    async def at_most(self, seconds: float | None) -> "AsyncGenerator[Actor]":
        """Yields a copy of the actor with a time limit, after which TimeoutError is raised. Time spent in pauses, or
        waiting for an answer, does not count."""
        async with asyncio.timeout(seconds) as timeout:
            with self.pause.timing(timeout) as pausable_timeout:
                yield replace(self, timeout=pausable_timeout)

    def _show(self, text: str, left_out: int) -> None:
        self.emit(OutputStreamed(text=text, left_out=left_out))

    def _signed(self, event: Event) -> Event:
        match event:
            case ActionStarted() | ActionFinished() | OutputStreamed() | UsageReported():
                return event.model_copy(update={"job": self.job_id})
            case MessageAdded():
                signed_message = event.message.model_copy(update={"job": self.job_id, "step": self.step_id})
                return event.model_copy(update={"message": signed_message})
            case _:
                return event

    def _signed_question(self, question: Question) -> Question:
        return question.model_copy(update={"job": self.job_id, "job_name": self.name})
